/**
 * A standby's eye on the leader: looks every so often whether a suspicion is due, and ends the leadership then (rule S7). When to suspect
 * is `Suspicion`'s to say; here is what it judges by, and what follows.
 */
import { ok as assert } from 'node:assert';
import type { LockLog } from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import type { LeaderLink } from '../front-end/leader-link.ts';
import { IDLE_BEAT_MS } from '../leader/pulse.ts';
import type { Standby } from './standby.ts';
import { SUSPICION_REASON, Suspicion, type SuspicionSettings } from './suspicion.ts';

/** How often a standby judges a leader that it does not hear. */
const WATCH_MS = 50;
/** While entries come, somebody leads, whether this replica can reach it or not. */
const LEADER_SEEN_MS = 700;
/** An answer of the log about who leads counts for so long. */
const ANSWER_MS = 1_000;

export interface LeaderWatchOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly suspicion: SuspicionSettings;
  /** Who leads by the log, and what is heard of it on the stream. */
  readonly link: Pick<LeaderLink, 'isUnheard' | 'heardForMs' | 'epochAgeMs' | 'epoch' | 'answerAgeMs'>;
  /** What sees its entries; null: this replica leads, or does not follow yet. */
  readonly standby: () => Pick<Standby, 'silentMs' | 'state'> | null;
  readonly isLeading: () => boolean;
}

export class LeaderWatch {
  readonly #options: LeaderWatchOptions;
  readonly #suspicion: Suspicion;
  #timer: Timer | null = null;
  /** The next look is further away than usual, since the leader is heard. */
  #isAtEase = false;
  /** This replica has ended a leadership and not seen the next one yet. */
  #hasEvicted = false;

  constructor(options: LeaderWatchOptions) {
    this.#options = options;
    this.#suspicion = new Suspicion(options.suspicion);
  }

  /**
   * Whether this replica knows that nobody leads. One that is cut off from the log knows nothing, and its clients must go elsewhere
   * (rule S8).
   */
  get isLeaderless(): boolean {
    const { link, standby } = this.#options;
    if (link.answerAgeMs > ANSWER_MS) return false;
    return link.epoch === 0 || (standby() !== null && this.#silenceMs >= LEADER_SEEN_MS);
  }

  /** Whether the log names a leader, and entries of it keep coming. */
  get isLedElsewhere(): boolean {
    const { link, standby } = this.#options;
    if (link.answerAgeMs > ANSWER_MS || link.epoch === 0) return false;
    return (standby()?.silentMs ?? LEADER_SEEN_MS) < LEADER_SEEN_MS;
  }

  /**
   * How long looks at the log have found no entry, beyond the time in which none is due: without sessions a leader has little to write. A
   * standstill of this process is no silence: it did not look.
   */
  get #silenceMs(): number {
    const standby = this.#options.standby();
    if (standby === null) return 0;
    const { silentMs, state } = standby;
    return state.sessions.size > 0 ? silentMs : silentMs - IDLE_BEAT_MS;
  }

  /** Why this replica would lead, if it won now: goes into the log. */
  get reasonToLead(): string {
    return this.#hasEvicted ? SUSPICION_REASON : 'nobody led';
  }

  /** Nothing is due for as long as the leader is heard on its stream; `lostStream` tells when that is over sooner. */
  start(): void {
    this.#timer?.cancel();
    const { runtime, link } = this.#options;
    const { heardForMs } = link;
    this.#isAtEase = heardForMs > WATCH_MS;
    this.#timer = runtime.timers.after(Math.max(WATCH_MS, heardForMs), () => {
      this.#judge();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** The stream to the leader is gone. */
  lostStream(): void {
    if (this.#timer !== null && this.#isAtEase) this.start();
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
    const { log, runtime, link, isLeading } = this.#options;
    const { isUnheard, epochAgeMs, epoch } = link;
    const now = this.#nowMs();
    const silentMs = this.#silenceMs;
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
