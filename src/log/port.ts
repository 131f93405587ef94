/**
 * The log port: one writer, many readers, three engines (memory, embedded, etcd). Rules L1-L6.
 * The log does not look inside entries: it stores bytes under an index and chains them by hash. Whoever holds a
 * `Leadership` is the only one whose writes can succeed; a later `campaign` makes every earlier one fail for good.
 */

/** Proof of being the writer. `fence` is what every write is compared with inside its own transaction. */
export interface Leadership {
  readonly serverId: string;
  /** Greater than that of every earlier leadership of this log. */
  readonly epoch: number;
  readonly fence: string;
}

/** One encoded entry. `hash` = SHA-256 of `bytes`, hex; `previous` = hash of the entry before, '' for index 1. */
export interface StoredEntry {
  readonly index: number;
  readonly bytes: Uint8Array;
  readonly hash: string;
  readonly previous: string;
}

/** Who leads, as the log knows it. */
export interface LeaderRecord {
  readonly serverId: string;
  readonly epoch: number;
}

export interface LogPosition {
  /** 0 = the log is empty. */
  readonly index: number;
  readonly hash: string;
}

/** What holds for one life of a log from its first moment on. */
export interface Birth {
  /** Secret with which the group seals marks (rule S10): 64 hex digits, made with the first life and kept over all of them. */
  readonly sealKey: string;
  /** Every token of this life is greater (rule C12); 0: nothing is known of an earlier one. */
  readonly tokenFloor: number;
  /** Group time before which nothing is granted, since holders of the life before may still believe; 0 for a first life. */
  readonly quietMs: number;
}

/** Proof that this log was rolled back: what somebody saw committed, and what stands there now (rule S10). */
export interface RollBackProof {
  readonly lineage: string;
  readonly seenBy: 'client' | 'replica';
  readonly seen: LogPosition;
  /** Hash of the entry at that index now; empty: the log ends before it. */
  readonly found: string;
  readonly headIndex: number;
  /** Which replica found out, and when by its wall clock; for people. */
  readonly serverId: string;
  readonly wallMs: number;
}

/** Whether a log may be served, at one moment of it. */
export interface Standing {
  /** Another one than the handle's: a new life has begun, and the handle is of no more use. */
  readonly lineage: string;
  readonly head: LogPosition;
  readonly halted: RollBackProof | null;
}

/** A snapshot of the state after entry `index`, whole. */
export interface SnapshotManifest {
  readonly id: string;
  readonly index: number;
  /** Hash of the entry at `index`, so that reading can go on from there. */
  readonly entryHash: string;
  /** Event hash of the state at `index`: whoever loads the snapshot must arrive at it. '' = recorded before there was one. */
  readonly eventHash: string;
  readonly chunkHashes: readonly string[];
  readonly bytes: number;
}

/** The snapshot that the leader has opened and not committed. */
export interface OpenSnapshot {
  readonly id: string;
  /** The standby that writes it; null: none has claimed it. */
  readonly serverId: string | null;
  /** Chunks written so far. */
  readonly chunks: number;
  /** Set once its standby has written all of it. */
  readonly offer: SnapshotManifest | null;
}

export type AppendOutcome = 'committed' | 'deposed';

/** How full the storage is, by its fullest member, and what else its members say of themselves. */
export interface LogSpace {
  readonly quotaBytes: number;
  /** Without what is free for reuse. */
  readonly usedBytes: number;
  /** With it: the storage refuses writes once this reaches the quota. */
  readonly fileBytes: number;
  /** It refuses writes already. */
  readonly isFull: boolean;
  /** Members that answer. */
  readonly answering: number;
  /** Members whose data the storage itself has found corrupt; with one it refuses every write (case G16). */
  readonly corrupt: readonly string[];
}

/** The log was trimmed: entries up to `below` are gone; reload from the snapshot (rule L4). */
export class TrimmedError extends Error {
  readonly below: number;
  constructor(below: number, options?: ErrorOptions) {
    super(`the log starts above index ${below}`, options);
    this.name = 'TrimmedError';
    this.below = below;
  }
}

/** A write by a leader that has been deposed. */
export class DeposedError extends Error {
  constructor(what: string) {
    super(`${what}: another leader has taken over this log`);
    this.name = 'DeposedError';
  }
}

/** The log was found rolled back: nobody may serve it until somebody begins a new lineage (rule S10). */
export class HaltedError extends Error {
  readonly proof: RollBackProof;
  constructor(proof: RollBackProof) {
    super(`this log was rolled back: ${describeProof(proof)}`);
    this.name = 'HaltedError';
    this.proof = proof;
  }
}

/** A new lineage has begun under this handle: open the log again. */
export class ReplacedError extends Error {
  constructor() {
    super('a new lineage of this log has begun; it has to be opened again');
    this.name = 'ReplacedError';
  }
}

/** In words, for people. */
export function describeProof({ seenBy, seen, found, headIndex }: RollBackProof): string {
  const there = found === '' ? `the log ends at ${headIndex}` : 'another entry stands there now';
  return `a ${seenBy} saw entry ${seen.index} committed, and ${there}`;
}

/** The stored log contradicts itself (a gap, a wrong hash): never repaired silently. */
export class CorruptLogError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CorruptLogError';
  }
}

export interface LockLog {
  /** Random id of this life of the log, made when the log was made (rule M3). */
  readonly lineage: string;
  /** From the moment this resolves only this server's writes can succeed. */
  campaign(serverId: string): Promise<Leadership>;
  /**
   * Who leads at this moment; null: nobody. For finding the leader and for people, never for safety: it may be over by the time this
   * resolves, and a leader that is cut off still stands here.
   */
  leader(): Promise<LeaderRecord | null>;
  /** Ends the leadership of `epoch`, whoever has it, in one step (rule S7). False: it was over already. */
  evict(epoch: number): Promise<boolean>;
  /**
   * Appends the next entry. Rejects with RangeError when `entry` does not follow the head (a bug of the caller); resolves unknown outcomes
   * inside, by sending the identical transaction again (rule L2). One append at a time.
   */
  append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome>;
  head(): Promise<LogPosition>;
  /** Hash of the committed entry at `index`, from 1; null above the head. Throws TrimmedError. */
  entryHash(index: number): Promise<string | null>;
  birth(): Promise<Birth>;
  standing(): Promise<Standing>;
  /**
   * Nobody can write this log any more, in one step with the proof: the leadership there is ends, and whoever wins the log later
   * finds the proof (rule S10). The first proof stays. A proof about another lineage changes nothing.
   */
  halt(proof: RollBackProof): Promise<void>;
  /**
   * Ends this life of the log, in one step: entries, snapshots, leadership and halt go, and an empty log of a new random
   * lineage is there. Whoever has the log open must open it again. Returns the new lineage.
   * @throws ReplacedError another one has begun since this handle was opened.
   */
  beginLineage(life: Pick<Birth, 'tokenFloor' | 'quietMs'>): Promise<string>;
  /** Committed entries from `fromIndex` to the head at the time of each step, in order, without gaps. Throws TrimmedError. */
  read(fromIndex: number): AsyncIterable<StoredEntry>;
  /** Bytes of the entries that are kept (after trims) above `aboveIndex`, by default of all: decides what is due (rules L4, L5). */
  retainedBytes(aboveIndex?: number): Promise<number>;

  /** Opens a snapshot under a new random id, which it returns; gives up any other open one. A new leader closes it (rule L3). */
  openSnapshot(leadership: Leadership): Promise<string>;
  /** Null: the leader has opened none. */
  openedSnapshot(): Promise<OpenSnapshot | null>;
  /** A standby makes the open snapshot its own to write. False: it is another's, or not open any more. */
  claimSnapshot(id: string, serverId: string): Promise<boolean>;
  /** Needs no leadership, only that snapshot `id` is open; RangeError otherwise. Create-only; `number` counts from 0. */
  writeChunk(id: string, number: number, chunk: Uint8Array): Promise<void>;
  /** A standby has written all chunks of the open snapshot: the leader may commit it. RangeError when it is not open any more. */
  offerSnapshot(manifest: SnapshotManifest): Promise<void>;
  /**
   * Makes the open snapshot visible; only upwards, on an entry of this log; two are kept (rule L3), and the newest at or below `keepFrom`
   * (rule L4).
   */
  commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom?: number): Promise<void>;
  /** Newest first; at most three. */
  snapshots(): Promise<readonly SnapshotManifest[]>;
  /** Throws CorruptLogError when the chunk does not match its hash; the caller then takes the older snapshot. */
  readChunk(manifest: SnapshotManifest, chunk: number): Promise<Uint8Array>;
  /** Deletes entries with index <= the second newest snapshot's, and <= `upTo` (rule L4). Nothing to do with fewer than two. */
  trim(leadership: Leadership, upTo?: number): Promise<void>;

  /** Index of the last entry that the audit exporter has delivered; null: there is no exporter. Trims stay behind it (rule L4). */
  auditCursor(): Promise<number | null>;
  /**
   * Moves that cursor, only upwards; null removes it. The same index again is no error.
   * @throws RangeError it would move downwards.
   */
  setAuditCursor(leadership: Leadership, index: number | null): Promise<void>;

  /**
   * Compares what the members of the storage hold at one revision (case G16). Those that differ from a majority are asked no more until they
   * agree again; with no majority nobody is, and every other call fails as in an outage. Names those that answer and differ. Null: it could
   * not be compared now, or there is nothing to compare. May take seconds.
   */
  compareMembers(): Promise<readonly string[] | null>;
  /** Null: there is no quota, or no member says. */
  space(): Promise<LogSpace | null>;
  /**
   * Gives back what is deleted and overwritten, and ends an alarm for want of space (rule L5). Needs no leadership and changes nothing
   * that can be read. May take minutes.
   */
  reclaim(): Promise<void>;

  /** `successor`: server id of who should lead next. The others hold back for a moment, where the engine has any; it is no promise. */
  resign(leadership: Leadership, successor?: string): Promise<void>;
  close(): Promise<void>;
}
