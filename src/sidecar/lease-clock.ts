/**
 * How long a session may be believed in, on this machine's own clocks (rules A1, A2). The deadline counts from the moment the
 * acknowledged keepalive was *sent*, so a slow answer never lengthens it; and once it has passed it is final.
 */
import { marginMs, suspendMs } from '../api/lease.ts';
import type { Clock } from '../platform/runtime.ts';

/** A moment on both clocks. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

export class LeaseClock {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** When the last acknowledged request was sent; until there is one, when waiting for it began. */
  #since: Moment;
  #isAcknowledged = false;

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#since = momentOf(clock);
  }

  /** The same as it stands, which no keepalive moves any more. */
  frozen(): LeaseClock {
    const frozen = new LeaseClock(this.#clock, this.#ttlMs);
    frozen.#since = this.#since;
    frozen.#isAcknowledged = this.#isAcknowledged;
    return frozen;
  }

  /** A keepalive sent at `sent` was acknowledged. An older one than the last changes nothing. */
  acknowledge(sent: Moment): void {
    if (this.#isAcknowledged && sent.monotonicMs <= this.#since.monotonicMs) return;
    this.#since = sent;
    this.#isAcknowledged = true;
  }

  /** On the monotonic clock, ms; in the past while nothing was acknowledged, as after a restart (rule A4). */
  get deadlineMs(): number {
    return this.#isAcknowledged ? this.giveUpAtMs : this.#since.monotonicMs;
  }

  get isPassed(): boolean {
    return this.#clock.monotonicMs() >= this.deadlineMs;
  }

  /** Without an acknowledgement until then, what is held is lost for good (rule A1). */
  get giveUpAtMs(): number {
    return this.#since.monotonicMs + this.#ttlMs - marginMs(this.#ttlMs);
  }

  /** No acknowledgement for TTL/2: told to the application while there is still time. */
  get jeopardyAtMs(): number {
    return this.#since.monotonicMs + this.#ttlMs / 2;
  }

  /** Rule A2: the wall clock may take "held" away, never give it. */
  get isSuspected(): boolean {
    const { monotonicMs, wallMs } = this.#since;
    return this.#clock.wallMs() - wallMs > this.#clock.monotonicMs() - monotonicMs + suspendMs(this.#ttlMs);
  }

  /** Time without acknowledgement so far, ms. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#since.monotonicMs;
  }
}
