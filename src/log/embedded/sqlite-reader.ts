/**
 * Reading an embedded log. Each step is one read transaction, so that it shows one moment of the log even while a server in another
 * process goes on writing, and is over quickly, so that the writer's checkpoints are not held up.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, SNAPSHOTS_KEPT_MAX } from '../limits.ts';
import {
  CorruptLogError,
  type LogPosition,
  type SnapshotManifest,
  type StoredEntry,
  TrimmedError,
} from '../port.ts';
import { checkChain, checkPageEnd, hashOf, type LogStart, type WriteState } from '../rules.ts';
import type { LogReader } from '../store.ts';
import { SQLITE_CORRUPT, SQLITE_NOTADB, sqliteCode } from './database.ts';
import { bytesOf, integerOf, type Row, textOf } from './rows.ts';

/** Length of one hash in `chunk_hashes`, which is nothing but hashes one after the other. */
const HASH_LENGTH = 64;

/** The one row of `log_state`. */
export interface LogState extends WriteState, LogStart {
  readonly lineage: string;
  readonly retainedBytes: number;
}

export class SqliteReader implements LogReader {
  readonly lineage: string;
  protected readonly database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #state: StatementSync;
  readonly #page: StatementSync;
  readonly #hashAt: StatementSync;
  readonly #committed: StatementSync;
  readonly #chunk: StatementSync;

  /** Reads and checks the state and the newest entry. @throws CorruptLogError */
  constructor(database: DatabaseSync) {
    this.database = database;
    this.#begin = database.prepare('BEGIN');
    this.#commit = database.prepare('COMMIT');
    this.#state = database.prepare('SELECT * FROM log_state');
    this.#page = database.prepare(
      'SELECT * FROM entries WHERE entry_index >= ? ORDER BY entry_index LIMIT ?',
    );
    this.#hashAt = database.prepare('SELECT hash FROM entries WHERE entry_index = ?');
    this.#committed = database.prepare(
      `SELECT * FROM snapshots WHERE status = 'committed' ORDER BY entry_index DESC LIMIT ?`,
    );
    this.#chunk = database.prepare('SELECT bytes FROM snapshot_chunks WHERE snapshot_id = ? AND number = ?');
    const state = this.#reading(() => this.readState());
    this.lineage = state.lineage;
    if (state.head.index >= state.firstIndex) this.readPage(state.head.index);
  }

  head(): LogPosition {
    return this.#reading(() => this.readState().head);
  }

  readPage(fromIndex: number): readonly StoredEntry[] {
    return this.#reading(() => {
      const state = this.readState();
      if (fromIndex < state.firstIndex) throw new TrimmedError(state.firstIndex - 1);
      const page = this.#takePage(fromIndex);
      const previous = fromIndex === state.firstIndex ? state.firstPrevious : this.hashAt(fromIndex - 1);
      checkPageEnd(page, fromIndex, state.head);
      if (page.length > 0) checkChain(page, fromIndex, previous ?? 'missing');
      return page;
    }, `reading entries from ${fromIndex} on`);
  }

  entryHash(index: number): string | null {
    return this.#reading(() => {
      const { firstIndex } = this.readState();
      if (index < firstIndex) throw new TrimmedError(firstIndex - 1);
      return this.hashAt(index) ?? null;
    }, `reading the hash of entry ${index}`);
  }

  retainedBytes(aboveIndex: number): number {
    return this.#reading(() => {
      const { firstIndex, retainedBytes } = this.readState();
      if (aboveIndex < firstIndex) return retainedBytes;
      const sum = this.database
        .prepare('SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM entries WHERE entry_index > ?')
        .get(aboveIndex);
      return sum === undefined ? 0 : integerOf(sum, 'bytes');
    });
  }

  snapshots(): readonly SnapshotManifest[] {
    return this.#reading(() => this.committedSnapshots());
  }

  readChunk(manifest: SnapshotManifest, chunk: number): Uint8Array {
    return this.#reading(() => {
      const what = `chunk ${chunk} of snapshot ${manifest.id}`;
      const row = this.#chunk.get(manifest.id, chunk);
      if (row === undefined) throw new CorruptLogError(`${what} is missing`);
      const bytes = bytesOf(row, 'bytes');
      if (hashOf(bytes) !== manifest.chunkHashes[chunk]) {
        throw new CorruptLogError(`${what} does not match its hash`);
      }
      return bytes;
    }, `reading chunk ${chunk} of snapshot ${manifest.id}`);
  }

  close(): void {
    this.database.close();
  }

  /** To be called inside a transaction. */
  protected readState(): LogState {
    const row = this.#state.get();
    if (row === undefined) throw new CorruptLogError('the state of the log is missing');
    return {
      lineage: textOf(row, 'lineage'),
      epoch: integerOf(row, 'epoch'),
      fence: textOf(row, 'fence'),
      head: { index: integerOf(row, 'head_index'), hash: textOf(row, 'head_hash') },
      firstIndex: integerOf(row, 'first_index'),
      firstPrevious: textOf(row, 'first_previous'),
      retainedBytes: integerOf(row, 'retained_bytes'),
    };
  }

  protected hashAt(index: number): string | undefined {
    const row = this.#hashAt.get(index);
    return row === undefined ? undefined : textOf(row, 'hash');
  }

  /** Newest first. */
  protected committedSnapshots(): readonly SnapshotManifest[] {
    return this.#committed.all(SNAPSHOTS_KEPT_MAX).map(manifestOf);
  }

  /** Also called before each step, for a roll-back that failed itself. */
  protected rollBack(): void {
    if (this.database.isTransaction) this.database.exec('ROLLBACK');
  }

  #takePage(fromIndex: number): StoredEntry[] {
    const page: StoredEntry[] = [];
    let bytes = 0;
    for (const row of this.#page.iterate(fromIndex, PAGE_ENTRIES_MAX)) {
      const entry = entryOf(row);
      bytes += entry.bytes.byteLength;
      if (page.length > 0 && bytes > PAGE_BYTES_MAX) break;
      page.push(entry);
    }
    return page;
  }

  /** One read transaction. Damage that SQLite itself notices is reported like damage that we notice. */
  #reading<T>(work: () => T, what = 'reading the log'): T {
    this.rollBack();
    try {
      this.#begin.run();
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // After an I/O error SQLite has done so itself.
      this.rollBack();
      throw asCorrupt(error, what);
    }
  }
}

/** A damaged file, as SQLite reports it, turned into the port's error; any other error as it is. */
export function asCorrupt(error: unknown, what: string): unknown {
  const code = sqliteCode(error);
  if (code !== SQLITE_CORRUPT && code !== SQLITE_NOTADB) return error;
  return new CorruptLogError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
}

function entryOf(row: Row): StoredEntry {
  return {
    index: integerOf(row, 'entry_index'),
    bytes: bytesOf(row, 'bytes'),
    hash: textOf(row, 'hash'),
    previous: textOf(row, 'previous'),
  };
}

function manifestOf(row: Row): SnapshotManifest {
  const hashes = textOf(row, 'chunk_hashes');
  const chunkHashes: string[] = [];
  for (let at = 0; at < hashes.length; at += HASH_LENGTH)
    chunkHashes.push(hashes.slice(at, at + HASH_LENGTH));
  return {
    id: textOf(row, 'id'),
    index: integerOf(row, 'entry_index'),
    entryHash: textOf(row, 'entry_hash'),
    // A file that an earlier version wrote and that is open for reading only.
    eventHash: row.event_hash === undefined ? '' : textOf(row, 'event_hash'),
    chunkHashes,
    bytes: integerOf(row, 'bytes'),
  };
}
