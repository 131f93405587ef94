/**
 * The Unix socket of the admin services: open to the account of this process and to nobody else.
 *
 * It is made inside a private folder, closed to others, and only then renamed to its place. So there is no moment at which
 * another account could connect, and what a killed predecessor left there is replaced in one step. Two processes never come
 * here for one data folder: the second one is stopped by the folder's lock.
 */
import { Buffer } from 'node:buffer';
import { chmodSync, lstatSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { platform } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { bindQuietly } from './bind.ts';

/** In the data folder of `leasehold dev`. */
export const ADMIN_SOCKET = 'admin.sock';

/** `sun_path` without its closing zero byte. */
const PATH_BYTES_MAX = platform() === 'linux' ? 107 : 103;
/** Together with `/s` and the six characters of mkdtemp as long as `admin.sock`, so that one limit holds for both. */
const PRIVATE_FOLDER = '.a';

export interface BoundSocket {
  /** Takes the socket away, unless somebody has put another in its place. */
  remove(): void;
}

/** The shorter way to write `path`: the limit is on what is written, not on where it leads. Throws when it is too long. */
export function socketPath(path: string): string {
  const fromHere = relative('', path);
  const shorter = fromHere.length > 0 && fromHere.length < path.length ? fromHere : path;
  const bytes = Buffer.byteLength(shorter);
  if (bytes <= PATH_BYTES_MAX) return shorter;
  throw new Error(
    `the path of the admin socket has ${bytes} bytes and a system call takes ${PATH_BYTES_MAX}: ${path}; choose a data folder with a shorter path`,
  );
}

/** What gRPC dials to reach the socket at `path`. Throws when the path is too long. */
export function socketTarget(path: string): string {
  return `unix:${socketPath(path)}`;
}

/** Rejects with a message for people. */
export async function bindSocket(server: Server, path: string): Promise<BoundSocket> {
  const place = socketPath(path);
  refuseForeign(place);
  const folder = mkdtempSync(join(dirname(place), PRIVATE_FOLDER));
  try {
    const made = join(folder, 's');
    await listen(server, `unix:${made}`);
    chmodSync(made, 0o600);
    renameSync(made, place);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const { ino } = lstatSync(place);
  return {
    remove: () => {
      if (lstatSync(place, { throwIfNoEntry: false })?.ino === ino) rmSync(place);
    },
  };
}

function refuseForeign(place: string): void {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found === undefined || found.isSocket()) return;
  throw new Error(
    `${place} is in the way of the admin socket ${basename(place)}: it is no socket; move it away`,
  );
}

function listen(server: Server, address: string): Promise<void> {
  return bindQuietly(server, address, ServerCredentials.createInsecure()).catch((error: Error) => {
    throw new Error(`the admin socket cannot be opened: ${error.message}`, { cause: error });
  });
}
