/**
 * What goes between a log handle and its worker thread. Requests are answered in the order in which they were sent. Byte arrays are
 * moved, not copied, where the sender has no more use for them. Errors lose their class on the way, so it travels as `kind`.
 */
import { FolderError } from '../../platform/folders.ts';
import { LogClosedError, LogFormatError, LogInUseError, LogUnavailableError } from '../errors.ts';
import { CorruptLogError, DeposedError, ReplacedError, TrimmedError } from '../port.ts';
import type { StoreArguments, StoreMethod, StoreReply } from '../store.ts';
import { SQLITE_CORRUPT, SQLITE_NOTADB, sqliteCode } from './database.ts';

/** What the worker is started with. */
export interface WorkerOptions {
  readonly directory: string;
  readonly mode: 'write' | 'readOnly';
  /** Used only when the log is made. */
  readonly lineage: string;
  readonly sealKey: string;
  readonly databaseBytesMax: number | undefined;
  readonly freeBytesKept: number | undefined;
}

type StoreRequest = {
  [M in StoreMethod]: { readonly id: number; readonly method: M; readonly args: StoreArguments<M> };
}[StoreMethod];

interface CloseRequest {
  readonly id: number;
  readonly method: 'close';
}

export type WorkerRequest = StoreRequest | CloseRequest;

/** The first message of a worker is `opened` or a `failed` with id 0. */
export type WorkerMessage =
  | { readonly type: 'opened'; readonly lineage: string }
  | { readonly type: 'done'; readonly id: number; readonly value: StoreReply<StoreMethod> }
  | { readonly type: 'failed'; readonly id: number; readonly error: WireError };

export type WireError =
  | {
      readonly kind: 'range' | 'corrupt' | 'deposed' | 'unavailable' | 'format' | 'closed' | 'bug';
      readonly message: string;
    }
  | { readonly kind: 'trimmed'; readonly below: number }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'inUse'; readonly directory: string; readonly pid: number | undefined };

/**
 * SQLite's primary result codes that come from the state of the machine: BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN,
 * PROTOCOL (a race for the write-ahead log). After them a step may have happened or not, and may succeed later. All other codes are
 * damage or bugs.
 */
const UNAVAILABLE_CODES: ReadonlySet<number> = new Set([5, 6, 7, 8, 9, 10, 13, 14, 15]);

/** `directory`: of the log, for messages to people. */
export function encodeError(error: unknown, directory: string): WireError {
  if (error instanceof DeposedError) return { kind: 'deposed', message: error.message };
  if (error instanceof TrimmedError) return { kind: 'trimmed', below: error.below };
  if (error instanceof ReplacedError) return { kind: 'replaced' };
  if (error instanceof LogInUseError) return { kind: 'inUse', directory, pid: error.pid };
  if (error instanceof RangeError) return { kind: 'range', message: error.message };
  if (error instanceof CorruptLogError) return { kind: 'corrupt', message: `${directory}: ${error.message}` };
  if (error instanceof LogFormatError) return { kind: 'format', message: error.message };
  if (error instanceof LogClosedError) return { kind: 'closed', message: error.message };
  const text = error instanceof Error ? error.message : String(error);
  const code = sqliteCode(error);
  if (code !== undefined && UNAVAILABLE_CODES.has(code)) {
    return { kind: 'unavailable', message: `the log in ${directory} failed: ${text} (SQLite ${code})` };
  }
  // Met outside of a step: the first page holds the tables' definitions, which opening reads.
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return { kind: 'corrupt', message: `${directory}: ${text} (SQLite ${code})` };
  }
  // A system call of Node's own: making the directory, for one.
  if (error instanceof FolderError || (error instanceof Error && 'syscall' in error)) {
    return { kind: 'unavailable', message: `the log in ${directory} failed: ${text}` };
  }
  return { kind: 'bug', message: error instanceof Error ? (error.stack ?? text) : text };
}

export function decodeError(error: WireError): Error {
  switch (error.kind) {
    case 'range':
      return new RangeError(error.message);
    case 'corrupt':
      return new CorruptLogError(error.message);
    case 'unavailable':
      return new LogUnavailableError(error.message);
    case 'format':
      return new LogFormatError(error.message);
    case 'closed':
      return new LogClosedError(error.message);
    case 'bug':
      return new Error(`the log failed in a way it should not: ${error.message}`);
    case 'deposed':
      return Object.assign(new DeposedError(''), { message: error.message });
    case 'trimmed':
      return new TrimmedError(error.below);
    case 'replaced':
      return new ReplacedError();
    case 'inUse':
      return new LogInUseError(error.directory, { pid: error.pid });
  }
}
