/**
 * What an engine has to do, as plain synchronous steps, each atomic and durable when it returns. Everything else (repeating after an
 * unknown outcome, one append at a time, paging) is the same for all engines and lives in store-log.ts.
 *
 * Every method may be repeated with the same arguments: after an unknown outcome that is what happens (rule L2).
 */
import type {
  AppendOutcome,
  Birth,
  LeaderRecord,
  Leadership,
  LogPosition,
  LogSpace,
  OpenSnapshot,
  RollBackProof,
  SnapshotManifest,
  Standing,
  StoredEntry,
} from './port.ts';

/** A new life of a log; its seal key stays. */
export interface NewLife extends Pick<Birth, 'tokenFloor' | 'quietMs'> {
  readonly lineage: string;
}

/** Steps that read; also what a read-only opener can do. */
export interface LogReader {
  head(): LogPosition;
  entryHash(index: number): string | null;
  /** Checked entries from `fromIndex` on, at most a page; none = `fromIndex` is above the head. */
  readPage(fromIndex: number): readonly StoredEntry[];
  retainedBytes(aboveIndex: number): number;
  snapshots(): readonly SnapshotManifest[];
  readChunk(manifest: SnapshotManifest, chunk: number): Uint8Array;
}

export interface LogStore extends LogReader {
  birth(): Birth;
  standing(): Standing;
  halt(proof: RollBackProof): void;
  /** `from`: the lineage that ends. @throws ReplacedError when it is neither that nor `life.lineage`. */
  beginLineage(from: string, life: NewLife): void;
  campaign(serverId: string): Leadership;
  leader(): LeaderRecord | null;
  /** True when the leadership of `epoch` was in force until now. */
  evict(epoch: number): boolean;
  append(leadership: Leadership, entry: StoredEntry): AppendOutcome;
  /** Opens snapshot `id` and gives up any other open one. */
  openSnapshot(leadership: Leadership, id: string): void;
  openedSnapshot(): OpenSnapshot | null;
  claimSnapshot(id: string, serverId: string): boolean;
  /** `number` counts from 0. Create-only: the same chunk again is fine, another one under its number is not. */
  writeChunk(id: string, number: number, chunk: Uint8Array): void;
  offerSnapshot(manifest: SnapshotManifest): void;
  commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): void;
  /** One bounded step of deleting what is no longer needed up to `upTo`; true = there is more to do. */
  trimStep(leadership: Leadership, upTo: number): boolean;
  auditCursor(): number | null;
  setAuditCursor(leadership: Leadership, index: number | null): void;
  compareMembers(): readonly string[] | null;
  space(): LogSpace | null;
  reclaim(): void;
  /** No effect when `leadership` is over already. */
  resign(leadership: Leadership, successor?: string): void;
}

export type StoreMethod = keyof LogStore;
export type StoreArguments<M extends StoreMethod> = Parameters<LogStore[M]>;
export type StoreReply<M extends StoreMethod> = ReturnType<LogStore[M]>;

/** The way from a handle to its store: a function call, a thread, a simulated network. */
export interface StoreCaller {
  /** Rejects with LogUnavailableError when the outcome is unknown: the step may have happened or not. */
  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>>;
  close(): Promise<void>;
}

/** Calls `method` on `store`; the types of arguments and reply belong together. */
export function invoke<M extends StoreMethod>(
  store: LogStore,
  method: M,
  args: StoreArguments<M>,
): StoreReply<M> {
  return Reflect.apply(store[method], store, args);
}
