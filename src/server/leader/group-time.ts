/**
 * Group time as its leader makes it: that of the last entry, and the monotonic time since (rule S6). At the beginning of a lineage that
 * follows a rolled-back one there is a quiet time, in which holders from before may still believe (rule S10).
 */
import type { Clock } from '../../platform/runtime.ts';

export class GroupTime {
  readonly #clock: Clock;
  readonly #offsetMs: number;
  /** Group time before which nothing is granted; 0 once it is over. */
  #quietUntilMs: number;

  /** `at`: of the last entry of the log. */
  constructor(clock: Clock, at: number, quietUntilMs: number) {
    this.#clock = clock;
    this.#offsetMs = at - clock.monotonicMs();
    this.#quietUntilMs = quietUntilMs;
  }

  /** Never before `at`, the time of the newest entry. */
  nowMs(at: number): number {
    return Math.max(at, Math.floor(this.#clock.monotonicMs() + this.#offsetMs));
  }

  isQuietAt(groupMs: number): boolean {
    return groupMs < this.#quietUntilMs;
  }

  /** What is left of the quiet time; 0 = there is none. */
  quietMs(at: number): number {
    if (this.#quietUntilMs === 0) return 0;
    const leftMs = this.#quietUntilMs - this.nowMs(at);
    if (leftMs <= 0) this.#quietUntilMs = 0;
    return Math.max(0, leftMs);
  }
}
