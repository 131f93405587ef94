/**
 * How long an append waits for its answer before the same bytes are sent again, to another member (rule L2). A follower passes a write on
 * to etcd's leader, and when that one has died it is lost without a word, while the others elect another within one to two seconds: whoever
 * waits out the deadline of an ordinary call starts a second too late. But an etcd that is slow, not dead, must not get everything twice:
 * each entry that needed more than one attempt makes those after it more patient, for a while. And an etcd that answers every call late is
 * waited for as long as it takes: an answer comes to its own attempt alone, so whoever never waits for one learns nothing, however often he
 * asks, and every entry would cost the time of all quick attempts.
 */
import { ok as assert } from 'node:assert';
import type { Clock } from '../../platform/runtime.ts';

export const APPEND_MS_MIN = 300;
const APPEND_MS_MAX = 5_000;
/** So many attempts at one entry come quickly; each one after them waits twice as long as the one before. */
export const QUICK_ATTEMPTS = 8;
const EASE_PER_ENTRY = 0.95;
/** So much later than the last answer the next one may be. */
const LATER = 2;

export class Patience {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #withinMs = APPEND_MS_MIN;
  #attempts = 0;
  #attemptedMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Another attempt at the entry begins; returns how long to wait for it. */
  attempt(): number {
    this.#attempts += 1;
    this.#attemptedMs = this.#clock.monotonicMs();
    const withinMs = Math.min(
      APPEND_MS_MAX,
      this.#withinMs * 2 ** Math.max(0, this.#attempts - QUICK_ATTEMPTS),
    );
    assert(withinMs >= APPEND_MS_MIN, 'an attempt gets some time');
    return withinMs;
  }

  /** The newest attempt was answered: the outcome is known. */
  settled(): void {
    assert(this.#attempts > 0, 'what is settled was attempted');
    const tookMs = this.#clock.monotonicMs() - this.#attemptedMs;
    const factor = this.#attempts === 1 ? EASE_PER_ENTRY : 2;
    this.#withinMs = Math.min(
      APPEND_MS_MAX,
      Math.max(APPEND_MS_MIN, this.#withinMs * factor, LATER * tookMs),
    );
    this.#attempts = 0;
  }
}
