/** Waiting as a promise, over the timer port. */
import type { Timers } from './runtime.ts';

export function pause(timers: Pick<Timers, 'after'>, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.after(delayMs, resolve));
}
