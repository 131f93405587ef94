/**
 * A replica that does not lead: it reads what the leader commits and applies it, so that it can lead at once. It checks each
 * event hash on the way; one that computes something else than the leader did halts itself and says so (rule C14).
 */
import { ok as assert } from 'node:assert';
import type { HistoryEntry } from '../../api/entry.ts';
import { LogClosedError, LogUnavailableError } from '../../log/errors.ts';
import { type LockLog, type LogPosition, TrimmedError } from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { type Recovered, recover, replay } from '../snapshots/recovery.ts';
import type { SnapshotDuty } from '../snapshots/snapshot-duty.ts';

/** How often it looks for new entries, at most: the work left at a take-over is what one look has not seen yet. */
const LOOK_MS = 100;
/** With sessions open an entry comes every 250 ms. */
const OVERDUE_MS = 300;
const OVERDUE_LOOK_MS = 25;
/** By then the leader has been suspected, if it can be. */
const OVERDUE_MS_MAX = 2_000;

export interface StandbyOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  /** Left out: it writes no snapshots. */
  readonly snapshots?: SnapshotDuty;
  /** Told of each entry that it applied after its start, in order. */
  readonly onEntry?: (entry: HistoryEntry) => void;
  /**
   * For how long the leader is going to be heard on its stream, at least: it tells of entries there, so that nothing need be looked for
   * meanwhile but what is overdue. Left out: it is never heard.
   */
  readonly heardForMs?: () => number;
  /** It cannot follow: the log contradicts itself or this program. It stays as it is and must not lead. */
  readonly onHalted: (error: unknown) => void;
}

export class Standby {
  readonly #options: StandbyOptions;
  #recovered: Recovered;
  /** The look that is under way; looks never overlap. */
  #look: Promise<void> = Promise.resolve();
  #timer: Timer | null = null;
  #isStopped = false;
  #isHalted = false;
  /** It writes a snapshot: the state stays at one index (rule L3), while it hears on whether the leader lives. */
  #isFrozen = false;
  #heardIndex = 0;
  /** A look is under way. */
  #isLooking = false;
  /** The leader has told of this entry. */
  #toldIndex = 0;
  #lookStartedMs = Number.NEGATIVE_INFINITY;
  /** Monotonic time at which the newest entry was seen (rule S7). */
  #lastEntryMs: number;
  /** When the last look began that has come back. */
  #lookedAtMs: number;

  private constructor(options: StandbyOptions, recovered: Recovered) {
    this.#options = options;
    this.#recovered = recovered;
    this.#lastEntryMs = options.runtime.clock.monotonicMs();
    this.#lookedAtMs = this.#lastEntryMs;
    this.#plan();
  }

  /** Reads the log to its end and follows it from then on. */
  static async start(options: StandbyOptions): Promise<Standby> {
    return new Standby(options, await recover(options.log, options.runtime.logger));
  }

  /** The newest entry applied. */
  get index(): number {
    return this.#recovered.head.index;
  }

  /** That entry, with its hash. */
  get head(): LogPosition {
    return this.#recovered.head;
  }

  /**
   * How long no new entry has been seen, up to the last look that has come back: what was committed since is not known yet, and must not
   * count as silence.
   */
  get silentMs(): number {
    return Math.max(0, this.#lookedAtMs - this.#lastEntryMs);
  }

  get state(): Recovered['state'] {
    return this.#recovered.state;
  }

  /** Ends the following: what it knows now, read to the end of the log. The state belongs to the caller from then on. */
  async finish(): Promise<Recovered> {
    this.stop();
    await this.#look;
    await this.#follow();
    return this.#recovered;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** The leader is at this entry: it is looked for at once, unless a look was just now. */
  heardOf(index: number): void {
    this.#toldIndex = index;
    if (index > this.index && !this.#isLooking && !this.#isStopped && !this.#isHalted) this.#plan();
  }

  #plan(): void {
    const { clock, timers } = this.#options.runtime;
    this.#timer?.cancel();
    this.#timer = timers.after(this.#nextLookMs(), () => {
      const startedMs = clock.monotonicMs();
      this.#lookStartedMs = startedMs;
      this.#isLooking = true;
      this.#look = this.#lookOnce().then(
        () => {
          this.#lookedAtMs = startedMs;
          this.#looked();
        },
        (error: unknown) => this.#failed(error),
      );
    });
  }

  /**
   * Sooner while a beat is overdue, so that a dead leader is noticed on time; later while the leader would tell of entries. What it has told
   * of is due at a moment that is fixed by the last look: however often it tells, the look is not put off.
   */
  #nextLookMs(): number {
    const now = this.#options.runtime.clock.monotonicMs();
    const hasSessions = this.state.sessions.size > 0;
    const sinceMs = now - this.#lastEntryMs;
    const isOverdue = hasSessions && sinceMs >= OVERDUE_MS && sinceMs < OVERDUE_MS_MAX;
    const everyMs = isOverdue ? OVERDUE_LOOK_MS : LOOK_MS;
    if (this.#toldIndex > this.index) return Math.max(0, this.#lookStartedMs + everyMs - now);
    const heardForMs = this.#options.heardForMs?.() ?? 0;
    if (heardForMs === 0 || isOverdue) return everyMs;
    if (!hasSessions) return Math.max(LOOK_MS, heardForMs);
    // It is heard and commits nothing: more looks than usual would find nothing either.
    return sinceMs >= OVERDUE_MS ? LOOK_MS : Math.max(OVERDUE_LOOK_MS, OVERDUE_MS - sinceMs);
  }

  async #lookOnce(): Promise<void> {
    if (this.#isFrozen) {
      await this.#hear();
      return;
    }
    await this.#follow();
    if (this.#isStopped) return;
    const snapshot = (await this.#options.snapshots?.claim()) ?? null;
    if (snapshot !== null) this.#freeze(snapshot);
  }

  #freeze(snapshot: string): void {
    this.#isFrozen = true;
    this.#heardIndex = this.index;
    const frozen = this.#recovered;
    const isOver = (): boolean => this.#isStopped;
    const thaw = (): void => {
      assert(this.#isStopped || this.#recovered === frozen, 'a snapshot shows one index');
      this.#isFrozen = false;
    };
    void this.#options.snapshots?.write(snapshot, frozen, isOver).then(thaw);
  }

  async #hear(): Promise<void> {
    const { index } = await this.#options.log.head();
    if (index <= this.#heardIndex) return;
    this.#heardIndex = index;
    this.#lastEntryMs = this.#options.runtime.clock.monotonicMs();
  }

  #looked(): void {
    this.#isLooking = false;
    if (!this.#isStopped && !this.#isHalted) this.#plan();
  }

  #failed(error: unknown): void {
    if (error instanceof LogUnavailableError) {
      this.#looked();
      return;
    }
    // Whoever has stopped it has closed the log meanwhile.
    if (this.#isStopped && error instanceof LogClosedError) return;
    this.#isHalted = true;
    this.#options.runtime.logger.error(
      { index: this.index, error },
      'this replica cannot follow the log and halts',
    );
    this.#options.onHalted(error);
  }

  /** Applies what has been committed since. A part of it may be done when it rejects; the rest follows next time. */
  async #follow(): Promise<void> {
    const { log, runtime } = this.#options;
    try {
      for await (const stored of log.read(this.index + 1)) {
        const { state, bytes, snapshot } = this.#recovered;
        const { entry, applied } = replay(state, stored);
        const head = { index: stored.index, hash: stored.hash };
        const { wallMs } = entry;
        this.#recovered = { state, head, wallMs, snapshot, bytes: bytes + stored.bytes.byteLength };
        this.#lastEntryMs = runtime.clock.monotonicMs();
        this.#tell(entry, applied.events);
      }
    } catch (error) {
      if (!(error instanceof TrimmedError)) throw error;
      // It was behind for so long that the leader has trimmed what comes next (rule L4).
      this.#recovered = await recover(log, runtime.logger);
    }
  }

  #tell(
    { lineage, epoch, index, at, wallMs, eventHash }: Omit<HistoryEntry, 'events'>,
    events: HistoryEntry['events'],
  ): void {
    this.#options.onEntry?.({ lineage, epoch, index, at, wallMs, eventHash, events });
  }
}
