/**
 * A standby's eye on the leader: looks every so often whether a suspicion is due, and ends the leadership then (rule S7). When to suspect
 * is `Suspicion`'s to say; here is what it judges by, and what follows.
 */
import { ok as assert } from 'node:assert';
import type { LockLog } from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { SUSPICION_REASON, Suspicion, type SuspicionSettings } from './suspicion.ts';

/** How often a standby judges its leader. */
const WATCH_MS = 50;

export interface LeaderWatchOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly suspicion: SuspicionSettings;
  /** Who leads by the log, and what is heard of it on the stream. */
  readonly link: { readonly isUnheard: boolean; readonly epochAgeMs: number; readonly epoch: number };
  /** How long looks at the log have found no entry of it although one was due. A standstill of this process is none: it did not look. */
  readonly silenceMs: () => number;
  readonly isLeading: () => boolean;
}

export class LeaderWatch {
  readonly #options: LeaderWatchOptions;
  readonly #suspicion: Suspicion;
  #timer: Timer | null = null;
  /** This replica has ended a leadership and not seen the next one yet. */
  #hasEvicted = false;

  constructor(options: LeaderWatchOptions) {
    this.#options = options;
    this.#suspicion = new Suspicion(options.suspicion);
  }

  /** Why this replica would lead, if it won now: goes into the log. */
  get reasonToLead(): string {
    return this.#hasEvicted ? SUSPICION_REASON : 'nobody led';
  }

  start(): void {
    this.#timer?.cancel();
    this.#timer = this.#options.runtime.timers.after(WATCH_MS, () => {
      this.#judge();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** This replica leads. */
  led(): void {
    this.stop();
    this.#hasEvicted = false;
  }

  /** By the log, another leadership has begun, for this reason. */
  sawTakeOver(reason: string): void {
    this.#hasEvicted = false;
    if (reason === SUSPICION_REASON) this.#suspicion.happened(this.#nowMs());
  }

  #judge(): void {
    const { log, runtime, link, silenceMs, isLeading } = this.#options;
    const { isUnheard, epochAgeMs, epoch } = link;
    const now = this.#nowMs();
    const silentMs = silenceMs();
    if (!this.#suspicion.isDue({ isUnheard, epochAgeMs, silentMs }, now)) return;
    assert(!isLeading(), 'no leader suspects itself');
    this.#suspicion.happened(now);
    runtime.logger.warn({ epoch, silentMs }, 'the leader seems dead; its leadership is ended');
    this.#hasEvicted = true;
    log.evict(epoch).then(
      (wasInForce) => {
        // It was over already: what follows is not this replica's doing.
        if (!wasInForce) this.#hasEvicted = false;
      },
      (error: unknown) => {
        runtime.logger.warn({ epoch, error }, 'the leadership could not be ended');
      },
    );
  }

  #nowMs(): number {
    return this.#options.runtime.clock.monotonicMs();
  }
}
