/**
 * The audit exporter: while its replica leads, it reads the log from the cursor on, makes the events by replay on a state of its own, and
 * hands them to its sink. It takes nothing from the leader's loop, and the loop waits for nothing here: a slow or dead sink only leaves the
 * cursor behind, and the log keeps what it has not exported up to a bound (rule L4). What was trimmed all the same is a gap: counted, logged
 * and exported.
 *
 * The cursor is kept in the log, written under the leader's fence after the sink has taken a batch. So each entry is exported at least once,
 * by whoever leads, and twice only around a change of the leader or a crash.
 */
import { ok as assert } from 'node:assert';
import { LogClosedError, LogUnavailableError } from '../../log/errors.ts';
import { DeposedError, type Leadership, type LockLog, TrimmedError } from '../../log/port.ts';
import type { AuditMetrics } from '../../platform/metrics.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { followHistory } from '../snapshots/recovery.ts';
import { unhurried } from '../snapshots/unhurried-log.ts';
import { logOutages, type OutageLog, sinkOutages } from './outage-log.ts';
import { type AuditBatch, type AuditGap, type AuditRecord, batchOf, lineOf } from './records.ts';
import { type AuditSink, BusySinkError } from './sink.ts';

/** How often the log is looked at for what is new. */
const LOOK_MS = 250;
const BATCH_ENTRIES_MAX = 1_000;
const BATCH_CHARACTERS_MAX = 1024 * 1024;
/** The cursor is written so often at most: what is exported twice after a crash is what it was behind. */
const CURSOR_MS = 1_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 30_000;
/** Whatever a sink says of when to come again. */
const RETRY_AFTER_MS_MAX = 300_000;
/** A sink that takes longer over a batch is told of. It is waited for all the same: what it does with the batch is not known. */
const SLOW_MS = 30_000;

export interface AuditExporterOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly leadership: Leadership;
  /** `<Kubernetes namespace>/<LockNamespace>`. */
  readonly group: string;
  readonly sink: AuditSink;
  readonly metrics: AuditMetrics;
  /** Index of the newest committed entry. */
  readonly head: () => number;
}

export class AuditExporter {
  readonly #options: AuditExporterOptions;
  readonly #stopping = new AbortController();
  readonly #unobserve: () => void;
  #records: AuditRecord[] = [];
  #lines: string[] = [];
  #characters = 0;
  /** The last entry that the sink has. */
  #exported: number | null = null;
  /** The cursor as the log has it. */
  #saved: number | null = null;
  #savedAtMs = 0;
  /** Wall time of the oldest entry that waits for the sink. */
  #waitingSinceWallMs: number | null = null;
  readonly #sinkOutages: OutageLog;
  readonly #logOutages: OutageLog;
  #tries = 0;
  /** The log begins above this entry, or can be replayed from above it only. */
  #trimmedTo = 0;

  constructor(options: AuditExporterOptions) {
    this.#options = options;
    const { clock, logger } = options.runtime;
    this.#sinkOutages = sinkOutages(clock, logger);
    this.#logOutages = logOutages(clock, logger);
    this.#unobserve = options.metrics.observe(() => this.lag);
    this.#run().catch((error: unknown) => {
      if (!this.#isStopped) logger.error({ error }, 'the audit exporter has ended');
    });
  }

  /** How far it is behind the log. */
  get lag(): { readonly lagEntries: number; readonly lagMs: number } {
    const lagEntries = this.#exported === null ? 0 : Math.max(0, this.#options.head() - this.#exported);
    const since = this.#waitingSinceWallMs;
    const lagMs = since === null || lagEntries === 0 ? 0 : this.#options.runtime.clock.wallMs() - since;
    return { lagEntries, lagMs: Math.max(0, lagMs) };
  }

  /** Ends at once: what the sink may or may not have taken is exported again by the next leader. */
  stop(): void {
    if (this.#isStopped) return;
    this.#stopping.abort();
    this.#unobserve();
    // As far as it gets: it fails once this leadership is over, and then the next leader exports a little twice.
    this.#saveCursor().catch(() => undefined);
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        if (this.#exported === null) await this.#begin();
        if (this.#trimmedTo > (this.#exported ?? 0)) await this.#gap(this.#trimmedTo);
        await this.#follow();
      } catch (error) {
        if (this.#isStopped || error instanceof DeposedError || error instanceof LogClosedError) return;
        this.#clear();
        await this.#failed(error);
      }
    }
  }

  /** To one that stood still the log may look like anything: others have trimmed it, or begun it anew. */
  async #isDeposed(): Promise<boolean> {
    const exported = this.#exported;
    if (exported === null) return false;
    try {
      await this.#options.log.setAuditCursor(this.#options.leadership, exported);
      this.#saved = exported;
      return false;
    } catch (error) {
      return error instanceof DeposedError;
    }
  }

  async #failed(error: unknown): Promise<void> {
    if (error instanceof TrimmedError && error.below > (this.#exported ?? 0)) {
      this.#trimmedTo = error.below;
      return;
    }
    if (!(error instanceof LogUnavailableError || (await this.#isDeposed()))) {
      this.#logOutages.away({ index: this.#exported, error });
      this.#options.metrics.failed();
    }
    await this.#backOff();
  }

  /** From where the last exporter was; the first one begins with the oldest entry there is. */
  async #begin(): Promise<void> {
    const { log, leadership } = this.#options;
    const cursor = await log.auditCursor();
    // From now on trims stay behind it.
    if (cursor === null) await log.setAuditCursor(leadership, 0);
    this.#exported = cursor ?? 0;
    this.#saved = this.#exported;
  }

  async #follow(): Promise<void> {
    const { group, log, runtime } = this.#options;
    const from = (this.#exported ?? 0) + 1;
    const readable = unhurried(log, runtime.timers, () => this.#isStopped);
    for await (const entry of followHistory(readable, from)) {
      if (this.#isStopped) return;
      this.#tries = 0;
      this.#logOutages.back({ index: this.#exported });
      if (entry === null) {
        await this.#deliver();
        await this.#pause(LOOK_MS);
        continue;
      }
      this.#waitingSinceWallMs ??= entry.wallMs;
      this.#add({ type: 'entry', group, entry });
      const isFull = this.#records.length >= BATCH_ENTRIES_MAX || this.#characters >= BATCH_CHARACTERS_MAX;
      if (isFull) await this.#deliver();
    }
  }

  /**
   * The log begins above what was exported: that is said in its place. By the leader alone: to one that was deposed and stood still it may
   * look so, while its successor has exported all of it before the log let go of it.
   */
  async #gap(to: number): Promise<void> {
    const { group, leadership, log, metrics, runtime } = this.#options;
    const { lineage } = log;
    const exported = this.#exported ?? 0;
    await log.setAuditCursor(leadership, exported);
    this.#saved = exported;
    const from = exported + 1;
    assert(to >= from, 'what was trimmed was not exported');
    const gap: AuditGap = { from, to };
    metrics.gap(to - from + 1);
    runtime.logger.error({ from, to }, 'the log was trimmed before it was exported: the audit has a gap');
    this.#add({ type: 'gap', group, lineage, gap });
    await this.#deliver();
  }

  #add(record: AuditRecord): void {
    const line = lineOf(record);
    this.#records.push(record);
    this.#lines.push(line);
    this.#characters += line.length;
  }

  #clear(): void {
    this.#records = [];
    this.#lines = [];
    this.#characters = 0;
    this.#waitingSinceWallMs = null;
  }

  /** Until the sink has it, however long that takes. */
  async #deliver(): Promise<void> {
    if (this.#records.length === 0) return this.#saveCursorIfDue();
    const { metrics, sink } = this.#options;
    const batch = batchOf(this.#records, this.#lines);
    assert(batch.firstIndex === (this.#exported ?? 0) + 1, 'batches follow each other without a gap');
    assert(batch.lastIndex >= batch.firstIndex, 'a batch goes forward');
    while (!this.#isStopped) {
      try {
        await this.#write(batch);
        break;
      } catch (error) {
        if (this.#isStopped) return;
        metrics.failed();
        this.#sinkOutages.away({ sink: sink.kind, index: this.#exported, error });
        await this.#backOff(error instanceof BusySinkError ? error.retryAfterMs : 0);
      }
    }
    if (this.#isStopped) return;
    this.#sinkOutages.back({ sink: sink.kind, index: batch.lastIndex });
    this.#tries = 0;
    this.#exported = batch.lastIndex;
    metrics.exported(batch.records.length);
    this.#clear();
    await this.#saveCursorIfDue();
  }

  async #write(batch: AuditBatch): Promise<void> {
    const { runtime, sink } = this.#options;
    const slow = runtime.timers.after(SLOW_MS, () => {
      const error = new Error(`a batch has waited for it for ${SLOW_MS / 1_000} s`);
      this.#sinkOutages.away({ sink: sink.kind, index: this.#exported, error });
    });
    try {
      await sink.write(batch, this.#stopping.signal);
    } finally {
      slow.cancel();
    }
  }

  async #saveCursorIfDue(): Promise<void> {
    const nowMs = this.#options.runtime.clock.monotonicMs();
    if (nowMs - this.#savedAtMs < CURSOR_MS) return;
    this.#savedAtMs = nowMs;
    try {
      await this.#saveCursor();
    } catch (error) {
      // The next time will do. Losing the leadership will not.
      if (!(error instanceof LogUnavailableError)) throw error;
    }
  }

  async #saveCursor(): Promise<void> {
    const exported = this.#exported;
    if (exported === null || exported === this.#saved) return;
    await this.#options.log.setAuditCursor(this.#options.leadership, exported);
    this.#saved = exported;
  }

  /** Full jitter: anything up to a limit that doubles; at least as long as the sink asks for. */
  async #backOff(askedMs = 0): Promise<void> {
    const limitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** this.#tries);
    this.#tries = Math.min(this.#tries + 1, 20);
    const jitteredMs = limitMs * this.#options.runtime.random.fraction();
    await this.#pause(Math.max(jitteredMs, Math.min(askedMs, RETRY_AFTER_MS_MAX)));
  }

  /** Ends at once when the exporter stops. */
  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#stopping;
      if (signal.aborted) {
        resolve();
        return;
      }
      const timer = this.#options.runtime.timers.after(delayMs, done);
      function done(): void {
        timer.cancel();
        signal.removeEventListener('abort', done);
        resolve();
      }
      signal.addEventListener('abort', done);
    });
  }
}
