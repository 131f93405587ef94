/**
 * A token bucket: so many operations a second, with a burst of one second's worth.
 */
export class RateLimiter {
  /** Full at first, whatever the rate turns out to be. */
  #tokens = Number.POSITIVE_INFINITY;
  #filledAtMs: number;
  #perSecond = 0;

  constructor(nowMs: number) {
    this.#filledAtMs = nowMs;
  }

  /** Takes one operation. Returns 0 when it may go on, else after how many ms one more will be free. */
  take(perSecond: number, nowMs: number): number {
    this.#perSecond = perSecond;
    const gained = ((nowMs - this.#filledAtMs) / 1000) * perSecond;
    this.#tokens = Math.min(perSecond, this.#tokens + gained);
    this.#filledAtMs = nowMs;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return 0;
    }
    return ((1 - this.#tokens) / perSecond) * 1000;
  }

  /** Gives one back that was taken for nothing. */
  giveBack(): void {
    this.#tokens = Math.min(this.#perSecond, this.#tokens + 1);
  }
}
