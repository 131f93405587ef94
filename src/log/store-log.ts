/**
 * The half of a log handle that all engines share: it turns the port's promises into steps of a store that may answer late,
 * not at all, or with an unknown outcome. So the simulator runs the very code that the embedded engine runs.
 */
import { LogClosedError, LogUnavailableError } from './errors.ts';
import {
  CALL_TRIES,
  PAGE_BYTES_MAX,
  PAGE_ENTRIES_MIN,
  RETRY_DELAY_MS_MAX,
  RETRY_DELAY_MS_MIN,
  STORED_ENTRY_BYTES_MAX,
} from './limits.ts';
import type {
  AppendOutcome,
  Birth,
  LeaderRecord,
  Leadership,
  LockLog,
  LogPosition,
  LogSpace,
  OpenSnapshot,
  RollBackProof,
  SnapshotManifest,
  Standing,
  StoredEntry,
} from './port.ts';
import { checkReadFrom } from './rules.ts';
import type { StoreArguments, StoreCaller, StoreMethod, StoreReply } from './store.ts';

export interface StoreLogPorts {
  /** Waits before a call is repeated. */
  readonly pause: (delayMs: number) => Promise<void>;
  /** A new random id, for a snapshot or a lineage. */
  readonly newId: () => string;
  /** Told when calls begin to stay without an answer, and when the first is answered again: once each per outage. */
  readonly onOutage?: (change: OutageChange) => void;
}

export type OutageChange =
  | { readonly type: 'began'; readonly method: StoreMethod; readonly error: LogUnavailableError }
  | { readonly type: 'ended'; readonly method: StoreMethod };

/** What is known of the newest entry handed to `append`. */
type AppendState =
  | { readonly at: 'idle' }
  | { readonly at: 'inFlight' }
  /** Its outcome is unknown: nothing but this entry may be sent until that is settled (rule L2). */
  | { readonly at: 'inDoubt'; readonly index: number; readonly hash: string };

const IDLE: AppendState = { at: 'idle' };
const IN_FLIGHT: AppendState = { at: 'inFlight' };

export class StoreLog implements LockLog {
  readonly lineage: string;
  readonly #caller: StoreCaller;
  readonly #ports: StoreLogPorts;
  #append: AppendState = IDLE;
  /** The newest append, whether it has ended or not. */
  #appending: Promise<unknown> = Promise.resolve();
  #closed = false;
  #unknownOutcomes = 0;
  #outage = false;

  constructor(lineage: string, caller: StoreCaller, ports: StoreLogPorts) {
    this.lineage = lineage;
    this.#caller = caller;
    this.#ports = ports;
  }

  /** Calls so far that were repeated because their outcome was unknown. */
  get unknownOutcomes(): number {
    return this.#unknownOutcomes;
  }

  async campaign(serverId: string): Promise<Leadership> {
    const leadership = await this.#call('campaign', [serverId]);
    // A leader that was told to go in an outage has left it under way: it ends now that the log answers.
    await this.#appending.catch(() => undefined);
    // The fence has moved on: an append still in doubt can no longer get through, and its outcome is read from the log.
    if (this.#append.at === 'inDoubt') this.#append = IDLE;
    return leadership;
  }

  async append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome> {
    const state = this.#append;
    if (state.at === 'inFlight') throw new RangeError('an append is in flight: one at a time');
    if (state.at === 'inDoubt' && (state.index !== entry.index || state.hash !== entry.hash)) {
      throw new RangeError(
        `the outcome of entry ${state.index} is unknown: only that very entry may be sent again`,
      );
    }
    this.#append = IN_FLIGHT;
    try {
      const appending = this.#call('append', [leadership, entry]);
      this.#appending = appending;
      const outcome = await appending;
      this.#append = IDLE;
      return outcome;
    } catch (error) {
      const unknown = error instanceof LogUnavailableError || error instanceof LogClosedError;
      this.#append = unknown ? { at: 'inDoubt', index: entry.index, hash: entry.hash } : IDLE;
      throw error;
    }
  }

  leader(): Promise<LeaderRecord | null> {
    return this.#call('leader', []);
  }

  evict(epoch: number): Promise<boolean> {
    return this.#call('evict', [epoch]);
  }

  head(): Promise<LogPosition> {
    return this.#call('head', []);
  }

  entryHash(index: number): Promise<string | null> {
    checkReadFrom(index);
    return this.#call('entryHash', [index]);
  }

  birth(): Promise<Birth> {
    return this.#call('birth', []);
  }

  standing(): Promise<Standing> {
    return this.#call('standing', []);
  }

  halt(proof: RollBackProof): Promise<void> {
    return this.#call('halt', [proof]);
  }

  async beginLineage(life: Pick<Birth, 'tokenFloor' | 'quietMs'>): Promise<string> {
    const lineage = this.#ports.newId();
    await this.#call('beginLineage', [this.lineage, { ...life, lineage }]);
    return lineage;
  }

  async *read(fromIndex: number): AsyncIterable<StoredEntry> {
    checkReadFrom(fromIndex);
    let next = fromIndex;
    for (;;) {
      const page = await this.#call('readPage', [next]);
      yield* page;
      if (endsTheLog(page)) return;
      next += page.length;
    }
  }

  retainedBytes(aboveIndex = 0): Promise<number> {
    return this.#call('retainedBytes', [aboveIndex]);
  }

  async openSnapshot(leadership: Leadership): Promise<string> {
    const id = this.#ports.newId();
    await this.#call('openSnapshot', [leadership, id]);
    return id;
  }

  openedSnapshot(): Promise<OpenSnapshot | null> {
    return this.#call('openedSnapshot', []);
  }

  claimSnapshot(id: string, serverId: string): Promise<boolean> {
    return this.#call('claimSnapshot', [id, serverId]);
  }

  writeChunk(id: string, number: number, chunk: Uint8Array): Promise<void> {
    return this.#call('writeChunk', [id, number, chunk]);
  }

  offerSnapshot(manifest: SnapshotManifest): Promise<void> {
    return this.#call('offerSnapshot', [manifest]);
  }

  commitSnapshot(
    leadership: Leadership,
    manifest: SnapshotManifest,
    keepFrom = Number.MAX_SAFE_INTEGER,
  ): Promise<void> {
    return this.#call('commitSnapshot', [leadership, manifest, keepFrom]);
  }

  snapshots(): Promise<readonly SnapshotManifest[]> {
    return this.#call('snapshots', []);
  }

  readChunk(manifest: SnapshotManifest, chunk: number): Promise<Uint8Array> {
    return this.#call('readChunk', [manifest, chunk]);
  }

  async trim(leadership: Leadership, upTo = Number.MAX_SAFE_INTEGER): Promise<void> {
    while (await this.#call('trimStep', [leadership, upTo])) {
      // In steps, so that appends get their turn in between.
    }
  }

  auditCursor(): Promise<number | null> {
    return this.#call('auditCursor', []);
  }

  setAuditCursor(leadership: Leadership, index: number | null): Promise<void> {
    return this.#call('setAuditCursor', [leadership, index]);
  }

  compareMembers(): Promise<readonly string[] | null> {
    return this.#call('compareMembers', []);
  }

  space(): Promise<LogSpace | null> {
    return this.#call('space', []);
  }

  reclaim(): Promise<void> {
    return this.#call('reclaim', []);
  }

  resign(leadership: Leadership, successor?: string): Promise<void> {
    return this.#call('resign', successor === undefined ? [leadership] : [leadership, successor]);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#caller.close();
  }

  /** Repeats the identical call while its outcome is unknown, a bounded number of times (rule L2). */
  async #call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw new LogClosedError('this log is closed');
      try {
        const reply = await this.#caller.call(method, args);
        if (this.#outage) this.#setOutage({ type: 'ended', method });
        return reply;
      } catch (error) {
        if (!(error instanceof LogUnavailableError)) throw error;
        this.#unknownOutcomes += 1;
        if (!this.#outage) this.#setOutage({ type: 'began', method, error });
        if (tries >= CALL_TRIES) throw error;
      }
      await this.#ports.pause(Math.min(RETRY_DELAY_MS_MIN * 2 ** (tries - 1), RETRY_DELAY_MS_MAX));
    }
  }

  #setOutage(change: OutageChange): void {
    this.#outage = change.type === 'began';
    this.#ports.onOutage?.(change);
  }
}

/** Whether the log had no more when this page was read: who follows it closely is spared a call that finds nothing. */
function endsTheLog(page: readonly StoredEntry[]): boolean {
  if (page.length >= PAGE_ENTRIES_MIN) return false;
  const bytes = page.reduce((sum, entry) => sum + entry.bytes.byteLength, 0);
  return bytes + STORED_ENTRY_BYTES_MAX <= PAGE_BYTES_MAX;
}
