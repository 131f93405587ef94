/**
 * A connection to whoever serves operators: the address or the socket that is named, the socket of a `leasehold dev` in its data folder, or
 * that of any running server of a group made by `leasehold group up`.
 */
import { existsSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { ADMIN_SOCKET, socketPath } from '../../server/grpc/socket.ts';
import { AdminClient } from '../admin-client.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import { readGroupState } from '../group/state.ts';
import type { AdminTarget } from '../options.ts';
import { dialRemote, flagOf, remoteError } from './remote.ts';

/** Throws UnavailableError when nobody serves there. */
export async function withAdminClient<T>(
  target: AdminTarget,
  work: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const client = await connect(target);
  try {
    return await work(client);
  } catch (error) {
    const { endpoint } = target;
    if (endpoint !== undefined) throw remoteError(endpoint, error);
    if (isRefused(error)) throw new UnavailableError(nobodyServes(target), { cause: error });
    throw error;
  } finally {
    client.close();
  }
}

async function connect(target: AdminTarget): Promise<AdminClient> {
  const { endpoint } = target;
  if (endpoint !== undefined) return new AdminClient(endpoint, dialRemote({ ...target, endpoint }));
  const alone = (['ca', 'cert', 'key', 'serverName'] as const).filter(
    (option) => target[option] !== undefined,
  );
  if (alone.length > 0)
    throw new UsageError(`${alone.map(flagOf).join(', ')}: for --endpoint, which is missing`);
  for (const path of socketsOf(target)) {
    if (await isServed(path)) return new AdminClient(path);
  }
  throw new UnavailableError(nobodyServes(target));
}

/** A call would not say at once that nobody listens. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath(path));
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** Sockets that are there, the likeliest first. One whose server was killed stays behind. */
function socketsOf({ data, adminSocket }: AdminTarget): readonly string[] {
  if (adminSocket !== undefined) return existsSync(adminSocket) ? [adminSocket] : [];
  const ofGroups = [data, join(data, 'group')].flatMap((folder) => socketsOfGroup(folder));
  return [join(data, ADMIN_SOCKET), ...ofGroups].filter((path) => existsSync(path));
}

function socketsOfGroup(folder: string): readonly string[] {
  const state = readGroupState(folder);
  return (state?.plan.processes ?? []).flatMap(({ adminSocket }) => adminSocket ?? []);
}

function nobodyServes({ data, adminSocket }: AdminTarget): string {
  if (adminSocket !== undefined) {
    return `nobody serves ${adminSocket}: it is "admin.socket" in the configuration of a running lock server`;
  }
  return (
    `nobody serves ${data}: start one with "leasehold dev -d ${data} -f ..." or "leasehold group up", ` +
    'name its folder with --data, the socket of a lock server with --admin-socket, or its address with --endpoint'
  );
}

function isRefused(error: unknown): boolean {
  const isUnavailable = error instanceof Error && 'code' in error && error.code === status.UNAVAILABLE;
  return isUnavailable && /ECONNREFUSED|ENOENT/.test(error.message);
}
