/** Waiting as a promise, over the timer port. */
import type { Timers } from '../platform/runtime.ts';

export function pauseWith(timers: Timers): (delayMs: number) => Promise<void> {
  return (delayMs) => new Promise((resolve) => void timers.after(delayMs, resolve));
}
