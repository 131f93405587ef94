/** How much time a leader has lost by standing still (rule S6): too much, and another one should lead. */

/** Shorter ones do not count: they are the ordinary jitter of a machine. */
export const STALL_MS = 500;
const WINDOW_MS = 30_000;
const LOST_MS_MAX = 2_000;

export class Stalls {
  readonly #leadsSinceMs: number;
  /** Of the last 30 s: at most one in 500 ms. */
  #stalls: { readonly forMs: number; readonly endedMs: number }[] = [];

  constructor(leadsSinceMs: number) {
    this.#leadsSinceMs = leadsSinceMs;
  }

  /** The loop or the commits stood still for so long, until now. */
  add(forMs: number, nowMs: number): void {
    if (forMs <= STALL_MS) return;
    this.#forgetBefore(nowMs - WINDOW_MS);
    this.#stalls.push({ forMs, endedMs: nowMs });
  }

  /**
   * Over 2 s of the last 30 s are lost. Not before `pauseMs` of leading: a hand-over begins a leadership, so there is at most one in that
   * time, whoever leads.
   */
  callForHandOver(nowMs: number, pauseMs: number): boolean {
    if (this.#stalls.length === 0 || nowMs - this.#leadsSinceMs < pauseMs) return false;
    this.#forgetBefore(nowMs - WINDOW_MS);
    return this.#stalls.reduce((sum, { forMs }) => sum + forMs, 0) > LOST_MS_MAX;
  }

  #forgetBefore(ms: number): void {
    if ((this.#stalls[0]?.endedMs ?? ms) < ms) {
      this.#stalls = this.#stalls.filter(({ endedMs }) => endedMs >= ms);
    }
  }
}
