/**
 * The committed history as it grows, with the run's own time. What leaders write into entries is of no use for that: their wall clocks are
 * stepped. Group time runs on the monotonic clock of whoever leads, so within one epoch it differs from the run's time by a constant; the
 * smallest difference seen is the one that was seen soonest.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { HistoryEntry } from '../../src/api/entry.ts';
import { createState } from '../../src/core/index.ts';
import { openEtcdLog } from '../../src/log/etcd/etcd-log.ts';
import type { LockLog } from '../../src/log/port.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { replay } from '../../src/server/snapshots/recovery.ts';
import { runMs } from './run-time.ts';

const LOOK_MS = 15;
const CALM_MS_MAX = 30_000;

export interface TimedEntry {
  readonly entry: HistoryEntry;
  readonly runAt: number;
}

export class Timeline {
  readonly #entries: { readonly entry: HistoryEntry; readonly seenAt: number }[] = [];
  readonly #log: LockLog;
  readonly #state: ReturnType<typeof createState>;
  readonly #following: Promise<void>;
  #isStopped = false;
  /** The log contradicts itself. */
  failure: unknown = null;

  private constructor(log: LockLog) {
    this.#log = log;
    this.#state = createState(log.lineage);
    this.#following = this.#follow().catch((error: unknown) => {
      this.failure = error;
    });
  }

  /** Straight from etcd, past all proxies. */
  static async start(endpoints: readonly string[], prefix: string): Promise<Timeline> {
    const runtime = createSystemRuntime({ logLevel: 'silent' });
    return new Timeline(await openEtcdLog({ endpoints, prefix, ...runtime }));
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Sessions, holds and waits now. */
  get counts(): { readonly sessions: number; readonly holds: number; readonly waits: number } {
    const { sessions, holds, waits } = this.#state;
    return { sessions: sessions.size, holds, waits };
  }

  /** Reads to the end, and gives everything. */
  async finish(): Promise<readonly TimedEntry[]> {
    const giveUpAt = runMs() + CALM_MS_MAX;
    const { index } = await this.#log.head();
    while (this.#state.index < index && this.failure === null && runMs() < giveUpAt) await pause(LOOK_MS);
    this.#isStopped = true;
    await this.#following;
    await this.#log.close();
    if (this.failure !== null) throw this.failure;
    return timed(this.#entries);
  }

  async #follow(): Promise<void> {
    while (!this.#isStopped) {
      try {
        for await (const stored of this.#log.read(this.#state.index + 1)) {
          const { entry, applied } = replay(this.#state, stored);
          const { lineage, epoch, index, at, wallMs, eventHash } = entry;
          const read = { lineage, epoch, index, at, wallMs, eventHash, events: applied.events };
          this.#entries.push({ entry: read, seenAt: runMs() });
        }
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'LogUnavailableError') throw error;
      }
      await pause(LOOK_MS);
    }
  }
}

function timed(entries: readonly { readonly entry: HistoryEntry; readonly seenAt: number }[]): TimedEntry[] {
  const offsets = new Map<number, number>();
  for (const { entry, seenAt } of entries) {
    const known = offsets.get(entry.epoch) ?? Number.POSITIVE_INFINITY;
    offsets.set(entry.epoch, Math.min(known, seenAt - entry.at));
  }
  let last = 0;
  return entries.map(({ entry }) => {
    last = Math.max(last, entry.at + (offsets.get(entry.epoch) ?? 0));
    return { entry, runAt: last };
  });
}
