/**
 * The machine's clocks and Node's timers, apart from the rest of the real Runtime: programs that must start quickly need no more.
 *
 * Which clock: `performance.now` is CLOCK_MONOTONIC on Linux (and its like elsewhere). It runs on while the process is stopped (SIGSTOP,
 * a debugger, a long garbage collection) and is never set back. While a Linux machine sleeps it stands still; that shows as wall time
 * running ahead of it, which rule A2 watches for.
 */
import type { Clock, Timer, Timers } from './runtime.ts';

/** Longest delay of one timer of Node: beyond it, Node would fire after 1 ms (case E02). 24.8 days. */
const NODE_TIMER_MS_MAX = 2 ** 31 - 1;

/** Node counts `performance.now` from the start of the process; deadlines are told on the machine's own scale. */
const MONOTONIC_AT_START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const systemClock: Clock = {
  monotonicMs: () => MONOTONIC_AT_START_MS + performance.now(),
  wallMs: () => Date.now(),
};

export const systemTimers: Timers = {
  after: (delayMs, action) => new SystemTimer(delayMs, action),
  soon: (action) => void setImmediate(action),
};

/** A chain of Node's timers up to a deadline: any delay is right, and none fires early by Node's rounding. */
class SystemTimer implements Timer {
  readonly #deadlineMs: number;
  readonly #action: () => void;
  #handle: NodeJS.Timeout | undefined;

  constructor(delayMs: number, action: () => void) {
    if (Number.isNaN(delayMs)) throw new RangeError('a delay is a number of milliseconds');
    this.#deadlineMs = performance.now() + Math.max(0, delayMs);
    this.#action = action;
    this.#arm(Math.max(0, delayMs));
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(remainingMs: number): void {
    this.#handle = setTimeout(() => this.#wake(), Math.min(Math.ceil(remainingMs), NODE_TIMER_MS_MAX));
  }

  #wake(): void {
    const remainingMs = this.#deadlineMs - performance.now();
    if (remainingMs > 0) this.#arm(remainingMs);
    else this.#action();
  }
}
