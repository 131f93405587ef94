/**
 * One process per data directory. The lock is an SQLite transaction held open on a file of its own: the operating system drops it when
 * the process dies, however it dies, so a crash leaves nothing to clean up and a pid that was given out again misleads nobody.
 *
 * Nothing else in this process may open `lock.db` by other means than SQLite: on POSIX systems closing any descriptor of a file drops
 * all of the process's locks on it. That is why the owner's pid stands in a file beside it. For local disks, not for network shares.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isRunning, processId } from '../../platform/process.ts';
import { LogInUseError } from '../errors.ts';
import { sqliteCode } from './database.ts';

const LOCK_FILE = 'lock.db';
const OWNER_FILE = 'owner.json';
/** All that a lock puts into its folder. */
export const LOCK_FILES: readonly string[] = [
  LOCK_FILE,
  `${LOCK_FILE}-journal`,
  OWNER_FILE,
  `${OWNER_FILE}.new`,
];
const SQLITE_BUSY = 5;

export interface DirectoryLock {
  release(): void;
}

/**
 * Holds until released or until the process ends.
 * @throws LogInUseError at once when somebody else holds it.
 */
export function lockDirectory(directory: string): DirectoryLock {
  const database = new DatabaseSync(join(directory, LOCK_FILE), { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (sqliteCode(error) !== SQLITE_BUSY) throw error;
    throw new LogInUseError(directory, { cause: error, pid: readOwner(directory) });
  }
  recordOwner(directory);
  return {
    release: () => database.close(),
  };
}

/** For the message of whoever is refused; the lock itself does not depend on it, so a full disk keeps nobody from ending a group. */
function recordOwner(directory: string): void {
  const path = join(directory, OWNER_FILE);
  try {
    rmSync(path, { force: true });
    writeFileSync(`${path}.new`, `${JSON.stringify({ pid: processId })}\n`);
    renameSync(`${path}.new`, path);
  } catch {
    // Nobody is named: better than somebody else.
  }
}

/** The recorded owner if it is alive: the record of a dead one means that its successor has not written its own yet. */
function readOwner(directory: string): number | undefined {
  try {
    const owner: unknown = JSON.parse(readFileSync(join(directory, OWNER_FILE), 'utf8'));
    if (typeof owner !== 'object' || owner === null || !('pid' in owner)) return undefined;
    if (typeof owner.pid !== 'number' || !Number.isSafeInteger(owner.pid) || owner.pid < 1) return undefined;
    return isRunning(owner.pid) ? owner.pid : undefined;
  } catch {
    // Unreadable: told without a number.
    return undefined;
  }
}
