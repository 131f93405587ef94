/**
 * The decisions that make a log safe, as pure functions, so that both engines decide alike: who may write, what may follow what,
 * and whether what was read is what was written.
 */
import { hash } from 'node:crypto';
import { CHUNK_BYTES_MAX, SNAPSHOT_CHUNKS_MAX, SNAPSHOTS_KEPT, STORED_ENTRY_BYTES_MAX } from './limits.ts';
import {
  CorruptLogError,
  DeposedError,
  type Leadership,
  type LogPosition,
  type SnapshotManifest,
  type StoredEntry,
} from './port.ts';

/** What every write is compared with, read inside its own transaction. */
export interface WriteState {
  readonly epoch: number;
  /** Fence of the leader; empty when nobody leads. */
  readonly fence: string;
  readonly head: LogPosition;
}

/** Where the kept part of a log begins. */
export interface LogStart {
  readonly firstIndex: number;
  /** Hash of the entry before `firstIndex`; empty for index 1. */
  readonly firstPrevious: string;
}

export const EMPTY_HEAD: LogPosition = { index: 0, hash: '' };

/** SHA-256, lower-case hex. */
export function hashOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}

function leads(state: WriteState, leadership: Leadership): boolean {
  return state.fence !== '' && state.fence === leadership.fence && state.epoch === leadership.epoch;
}

/** @throws DeposedError */
export function requireLeader(state: WriteState, leadership: Leadership, what: string): void {
  if (!leads(state, leadership)) throw new DeposedError(what);
}

/**
 * Rules L1 and L2 in one place. The fence comes first, whatever the head says. `repeat`: this very entry is the head already, so an
 * earlier try of it got through.
 * @throws RangeError when the entry neither is nor follows the head.
 */
export function judgeAppend(
  state: WriteState,
  leadership: Leadership,
  entry: StoredEntry,
): 'append' | 'repeat' | 'deposed' {
  if (!leads(state, leadership)) return 'deposed';
  if (entry.bytes.byteLength > STORED_ENTRY_BYTES_MAX) {
    throw new RangeError(`entry ${entry.index} has more than ${STORED_ENTRY_BYTES_MAX} bytes`);
  }
  const { head } = state;
  if (entry.index === head.index && entry.hash === head.hash && entry.index > 0) return 'repeat';
  if (entry.index !== head.index + 1 || entry.previous !== head.hash) {
    throw new RangeError(`entry ${entry.index} does not follow the head at ${head.index}`);
  }
  return 'append';
}

/**
 * Entries as read from storage: consecutive from `fromIndex`, each hash right and chained to the one before.
 * @throws CorruptLogError naming the first index that is wrong.
 */
export function checkChain(entries: readonly StoredEntry[], fromIndex: number, previous: string): void {
  let expectedIndex = fromIndex;
  let expectedPrevious = previous;
  for (const entry of entries) {
    if (entry.index !== expectedIndex) {
      throw new CorruptLogError(`entry ${expectedIndex} is missing: the log goes on at ${entry.index}`);
    }
    if (entry.previous !== expectedPrevious) {
      throw new CorruptLogError(`entry ${entry.index} does not continue the hash chain`);
    }
    if (hashOf(entry.bytes) !== entry.hash) {
      throw new CorruptLogError(`entry ${entry.index} does not match its hash`);
    }
    expectedIndex += 1;
    expectedPrevious = entry.hash;
  }
}

/**
 * A page must not end before the head for want of entries, nor differ from the head where it reaches it.
 * @throws CorruptLogError
 */
export function checkPageEnd(page: readonly StoredEntry[], fromIndex: number, head: LogPosition): void {
  const last = page.at(-1);
  if (last === undefined) {
    if (fromIndex <= head.index) {
      throw new CorruptLogError(
        `entry ${fromIndex} is missing: the log ends before its head at ${head.index}`,
      );
    }
    return;
  }
  if (last.index > head.index || (last.index === head.index && last.hash !== head.hash)) {
    throw new CorruptLogError(`entry ${last.index} contradicts the head at ${head.index}`);
  }
}

/** @throws RangeError */
export function checkReadFrom(fromIndex: number): void {
  if (!Number.isSafeInteger(fromIndex) || fromIndex < 1) {
    throw new RangeError(`a log is read from index 1 upwards, not from ${fromIndex}`);
  }
}

/** @throws RangeError */
export function checkNewChunk(number: number, written: number, chunk: Uint8Array): void {
  if (number !== written) throw new RangeError(`chunk ${number} does not follow ${written} written chunks`);
  checkChunk(number, chunk);
}

/** @throws RangeError */
export function checkChunk(number: number, chunk: Uint8Array): void {
  if (number >= SNAPSHOT_CHUNKS_MAX || chunk.byteLength > CHUNK_BYTES_MAX) {
    throw new RangeError(`a snapshot has at most ${SNAPSHOT_CHUNKS_MAX} chunks of ${CHUNK_BYTES_MAX} bytes`);
  }
}

/**
 * The audit cursor only moves upwards; `null` stands for no exporter, before as after.
 * @throws RangeError
 */
export function checkAuditCursor(before: number | null, index: number | null): void {
  if (index === null) return;
  if (!Number.isSafeInteger(index) || index < 0) {
    throw new RangeError(`an audit cursor is the index of an entry, or 0, not ${index}`);
  }
  if (before !== null && index < before) {
    throw new RangeError(`the audit cursor stands at ${before} and does not go back to ${index}`);
  }
}

/**
 * A snapshot stands on an entry of this log and only ever moves upwards (rule L3). `stored` = hash of the entry at that index.
 * @throws RangeError
 */
export function checkSnapshotPlace(at: LogPosition, newestIndex: number, stored: string | undefined): void {
  if (at.index <= newestIndex) {
    throw new RangeError(`a snapshot at ${at.index} is not above the newest one at ${newestIndex}`);
  }
  if (stored === undefined || stored !== at.hash) {
    throw new RangeError(`a snapshot at ${at.index} does not stand on an entry of this log`);
  }
}

/** A manifest names every chunk that was written, and no other. @throws RangeError */
export function checkManifest({ id, chunkHashes }: SnapshotManifest, written: number): void {
  if (chunkHashes.length !== written) {
    throw new RangeError(
      `snapshot ${id} has ${written} chunks, and its manifest names ${chunkHashes.length}`,
    );
  }
}

/**
 * Rules L3 and L4: the two newest stay, and the newest at or below `keepFrom`: events are made by replay, and whoever has read the log up to
 * there begins it at that snapshot.
 */
export function keptSnapshots(
  newestFirst: readonly SnapshotManifest[],
  keepFrom: number,
): readonly SnapshotManifest[] {
  const basis = newestFirst.find(({ index }) => index <= keepFrom);
  return newestFirst.filter((manifest, at) => at < SNAPSHOTS_KEPT || manifest === basis);
}

/** Rule L4: up to the older of two snapshots, so that losing the newest one costs nothing. 0 = nothing may go. */
export function lastTrimmed(newestFirst: readonly SnapshotManifest[], upTo: number): number {
  const older = newestFirst[SNAPSHOTS_KEPT - 1];
  return older === undefined ? 0 : Math.min(older.index, upTo);
}
