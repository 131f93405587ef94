/**
 * The time that leases are counted in: monotonic time that also runs on while the machine sleeps.
 *
 * CLOCK_MONOTONIC alone stands still during a suspend, and a lease does not. What the machine has been up (CLOCK_BOOTTIME on Linux)
 * is as steady and includes the sleep, but Node tells it in steps of up to a second: so monotonic time counts, and a sleep is added
 * when the two have parted by more than such a step. Wall time has no part in this.
 */
import { uptime } from 'node:os';
import { systemClock } from '../../platform/system-time.ts';

/** Sleeps shorter than this are not noticed. The sidecar's margin is never shorter. */
const SLEEP_MS_MIN = 1_000;

/** One moment on both clocks, the same for all processes of a machine. */
export interface Moment {
  readonly monotonicMs: number;
  readonly uptimeMs: number;
}

/** Monotonic time is read first: a process stopped between the two readings then sees too much time pass, never too little. */
export function systemMoment(): Moment {
  const monotonicMs = systemClock.monotonicMs();
  return { monotonicMs, uptimeMs: uptime() * 1000 };
}

/** Whether `deadline` has passed, by either clock. */
export function isPassed(deadline: Moment, now: Moment): boolean {
  return now.monotonicMs >= deadline.monotonicMs || now.uptimeMs >= deadline.uptimeMs + SLEEP_MS_MIN;
}

export class LeaseTime {
  readonly #read: () => Moment;
  readonly #start: Moment;
  #sleptMs = 0;

  constructor(read: () => Moment = systemMoment) {
    this.#read = read;
    this.#start = read();
  }

  nowMs(): number {
    return this.#of(this.#read());
  }

  /** `atMs` of this clock as a moment that another process can tell. */
  momentOf(atMs: number): Moment {
    const now = this.#read();
    const remainingMs = atMs - this.#of(now);
    return { monotonicMs: now.monotonicMs + remainingMs, uptimeMs: now.uptimeMs + remainingMs };
  }

  #of({ monotonicMs, uptimeMs }: Moment): number {
    const asleepMs = uptimeMs - this.#start.uptimeMs - (monotonicMs - this.#start.monotonicMs);
    if (asleepMs >= SLEEP_MS_MIN) this.#sleptMs = Math.max(this.#sleptMs, asleepMs);
    return monotonicMs + this.#sleptMs;
  }
}
