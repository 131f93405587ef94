/**
 * The file of an embedded log: its tables, how it is made, and how a file that is not ours is refused untouched.
 *
 * A new file is made under another name and renamed when it is complete, so `log.db` is either absent or whole. `application_id` and
 * `user_version` in its header say that it is ours and which version wrote it (rule L6).
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder } from '../../platform/folders.ts';
import { LogFormatError } from '../errors.ts';

/** 2 added `event_hash`; a file of version 1 gets it when it is opened for writing, and is read as it is. */
const LOG_FORMAT_VERSION = 2;
const OLDEST_FORMAT_VERSION = 1;
/** "LhLg", in the header of every file of ours. */
const APPLICATION_ID = 0x4c684c67;
const DATABASE_FILE = 'log.db';
/** Longest wait for the locks of a reader that is just opening or closing the file. */
const BUSY_TIMEOUT_MS = 5_000;
/** The write-ahead log is cut back to this after a checkpoint. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;

const TABLES = `
  CREATE TABLE log_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    lineage TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    server_id TEXT NOT NULL,
    fence TEXT NOT NULL,
    head_index INTEGER NOT NULL,
    head_hash TEXT NOT NULL,
    first_index INTEGER NOT NULL,
    first_previous TEXT NOT NULL,
    retained_bytes INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE entries (
    entry_index INTEGER PRIMARY KEY,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('open', 'committed', 'dropped')),
    entry_index INTEGER NOT NULL,
    entry_hash TEXT NOT NULL,
    chunk_hashes TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    event_hash TEXT NOT NULL DEFAULT ''
  ) STRICT;
  CREATE TABLE snapshot_chunks (
    snapshot_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (snapshot_id, number)
  ) STRICT;
`;

/** Came later than the other tables: made where they are missing, and unknown to programs that do not need them. */
const LATER_TABLES = `
  CREATE TABLE IF NOT EXISTS log_life (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seal_key TEXT NOT NULL,
    token_floor INTEGER NOT NULL,
    quiet_ms INTEGER NOT NULL,
    -- Proof of a roll-back as JSON; empty: none.
    halted TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS audit_cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    entry_index INTEGER NOT NULL
  ) STRICT;
`;

export interface DatabaseOptions {
  /** The file never grows beyond this; writes that would need more fail as on a full disk. Default: no limit but the disk. */
  readonly databaseBytesMax?: number | undefined;
}

/** Makes the directory, readable by its owner only, and sees to it that it survives a power cut. */
export function makeDirectory(directory: string): void {
  for (const made of makeFolder(directory)) syncDirectory(dirname(made));
}

/**
 * Opens the log's file for its one writer; makes it when there is none. `lineage` is used only then.
 * @throws LogFormatError
 */
export function openForWriting(directory: string, lineage: string, options: DatabaseOptions): DatabaseSync {
  const path = join(directory, DATABASE_FILE);
  if (existsSync(path)) refuseForeign(path);
  else createDatabase(directory, path, lineage);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    // fullfsync only means something on macOS, where a plain fsync does not reach the platter.
    database.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA fullfsync = ON;
      PRAGMA checkpoint_fullfsync = ON;
      PRAGMA journal_size_limit = ${WAL_BYTES_KEPT};
    `);
    migrate(database);
    const mode = pragma(database, 'journal_mode');
    if (mode !== 'wal') throw new LogFormatError(`${path} is not in WAL mode but in ${mode}`);
    if (options.databaseBytesMax !== undefined) {
      const pages = Math.floor(options.databaseBytesMax / Number(pragma(database, 'page_size')));
      database.exec(`PRAGMA max_page_count = ${pages}`);
    }
    database.exec(LATER_TABLES);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens the log's file beside a running server, or without one.
 * @throws LogFormatError
 */
export function openForReading(directory: string): DatabaseSync {
  const path = join(directory, DATABASE_FILE);
  if (!existsSync(path)) throw new LogFormatError(`there is no log in ${directory}`);
  refuseForeign(path);
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
}

/** The value of a pragma that answers with one column. */
export function pragma(database: DatabaseSync, name: string): unknown {
  const row = database.prepare(`PRAGMA ${name}`).get();
  return row === undefined ? undefined : Object.values(row)[0];
}

function migrate(database: DatabaseSync): void {
  if (pragma(database, 'user_version') === LOG_FORMAT_VERSION) return;
  database.exec(`
    BEGIN;
    ALTER TABLE snapshots ADD COLUMN event_hash TEXT NOT NULL DEFAULT '';
    PRAGMA user_version = ${LOG_FORMAT_VERSION};
    COMMIT;
  `);
}

function createDatabase(directory: string, path: string, lineage: string): void {
  // SQLite would take the write-ahead log of a lost file for that of the new one.
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (wal !== undefined && wal.size > 0) {
    throw new LogFormatError(`${path} is missing although its write-ahead log is there; restore it`);
  }
  const unfinished = `${path}.new`;
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(unfinished + suffix, { force: true });
  const database = new DatabaseSync(unfinished);
  try {
    database.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA auto_vacuum = INCREMENTAL;
      BEGIN;
      PRAGMA application_id = ${APPLICATION_ID};
      PRAGMA user_version = ${LOG_FORMAT_VERSION};
      ${TABLES}
    `);
    database.prepare(`INSERT INTO log_state VALUES (1, ?, 0, '', '', 0, '', 1, '', 0)`).run(lineage);
    database.exec('COMMIT');
    // Last: from here on the file would be two files.
    database.exec('PRAGMA journal_mode = WAL');
  } finally {
    database.close();
  }
  renameSync(unfinished, path);
  syncDirectory(directory);
}

function refuseForeign(path: string): void {
  let applicationId: unknown;
  let version: unknown;
  try {
    const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    try {
      applicationId = pragma(database, 'application_id');
      version = pragma(database, 'user_version');
    } finally {
      database.close();
    }
  } catch (error) {
    if (sqliteCode(error) !== SQLITE_NOTADB) throw error;
    throw new LogFormatError(`${path} is not a database; ${UNCHANGED}`, { cause: error });
  }
  if (applicationId !== APPLICATION_ID) {
    throw new LogFormatError(`${path} is not a log of this program; ${UNCHANGED}`);
  }
  if (Number(version) < OLDEST_FORMAT_VERSION || Number(version) > LOG_FORMAT_VERSION) {
    throw new LogFormatError(
      `${path} has format ${version} and this program reads ${OLDEST_FORMAT_VERSION} to ${LOG_FORMAT_VERSION}; ${UNCHANGED}`,
    );
  }
}

const UNCHANGED = 'nothing was changed';

/** https://www.sqlite.org/rescode.html */
export const SQLITE_CORRUPT = 11;
export const SQLITE_NOTADB = 26;

/** SQLite's primary result code, or undefined when `error` is not one of SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number')
    return undefined;
  return error.errcode & 0xff;
}

/** A new name in a directory is durable only once the directory itself is written. */
function syncDirectory(directory: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(directory, 'r');
  } catch (error) {
    // Systems without this notion refuse to open a directory; they keep names durable by themselves.
    if (error instanceof Error && 'code' in error && (error.code === 'EISDIR' || error.code === 'EPERM'))
      return;
    throw error;
  }
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
