/**
 * Rings when nothing has been acknowledged for too long: jeopardy after half a TTL, the deadline after that. From this
 * machine's clock alone, with no network.
 */
import type { Runtime, Timer } from '../platform/runtime.ts';
import { LeaseClock, type Moment } from './lease-clock.ts';

export interface LeaseListener {
  /** No acknowledgement for TTL/2. */
  jeopardy(): void;
  /** The deadline passed unacknowledged: final for every grant (rule A1). */
  deadlinePassed(): void;
}

export class LeaseAlarm {
  readonly lease: LeaseClock;
  readonly #runtime: Runtime;
  readonly #listener: LeaseListener;
  #timer: Timer | null = null;
  #isInJeopardy = false;

  constructor(runtime: Runtime, ttlMs: number, listener: LeaseListener) {
    this.lease = new LeaseClock(runtime.clock, ttlMs);
    this.#runtime = runtime;
    this.#listener = listener;
  }

  /** What was sent at `sent` is acknowledged. True: until now a suspend had taken "held" away (rule A2). */
  acknowledge(sent: Moment): boolean {
    // It may have passed while this process stood still, before the alarm could ring: final all the same.
    if (this.#isDeadlinePassed) this.#listener.deadlinePassed();
    const wasSuspected = this.lease.isSuspected;
    this.lease.acknowledge(sent);
    this.#isInJeopardy = false;
    return wasSuspected && !this.lease.isSuspected;
  }

  /** Rings at the next moment that matters, and goes on from there until it is cancelled. */
  set(): void {
    this.#timer?.cancel();
    const nextMs = this.#isInJeopardy ? this.lease.giveUpAtMs : this.lease.jeopardyAtMs;
    const delayMs = Math.max(0, nextMs - this.#nowMs());
    this.#timer = this.#runtime.timers.after(delayMs, () => this.#ring());
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #ring(): void {
    this.#timer = null;
    if (this.#isDeadlinePassed) {
      this.#listener.deadlinePassed();
      return;
    }
    const isNews = this.#nowMs() >= this.lease.jeopardyAtMs && !this.#isInJeopardy;
    if (isNews) this.#isInJeopardy = true;
    this.set();
    // Last, since whoever hears of it may cancel.
    if (isNews) this.#listener.jeopardy();
  }

  get #isDeadlinePassed(): boolean {
    return this.#nowMs() >= this.lease.giveUpAtMs;
  }

  #nowMs(): number {
    return this.#runtime.clock.monotonicMs();
  }
}
