/**
 * Work that clients cause, a little in each turn of the event loop. A socket that is readable gives up all that has arrived at once, and so do
 * all sockets together: a few clients that send what is costly to read could hold up timers, commits and everybody else's keepalives for
 * seconds. What is too much for a turn waits for the next, in order of arrival.
 */
import { ok as assert } from 'node:assert';
import type { Clock, Timers } from '../../platform/runtime.ts';

/** After so much of it the turn ends; one piece of work is never divided. */
const TURN_MS = 20;

export class FairTurns {
  readonly #clock: Clock;
  readonly #timers: Timers;
  #waiting: (() => void)[] = [];
  #usedMs = 0;
  #isPlanned = false;

  constructor({ clock, timers }: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /** Does it now or in a later turn. False: later; more of the same should not be read before it is done. */
  run(work: () => void): boolean {
    if (!this.#isPlanned) this.#plan();
    if (this.#waiting.length > 0 || this.#usedMs >= TURN_MS) {
      this.#waiting.push(work);
      return false;
    }
    this.#do(work);
    return true;
  }

  #plan(): void {
    this.#isPlanned = true;
    this.#timers.soon(() => {
      this.#isPlanned = false;
      this.#usedMs = 0;
      this.#goOn();
    });
  }

  #goOn(): void {
    let done = 0;
    while (done < this.#waiting.length && this.#usedMs < TURN_MS) {
      const work = this.#waiting[done++] as () => void;
      this.#do(work);
    }
    assert(done > 0 || this.#waiting.length === 0, 'each turn does something');
    this.#waiting = this.#waiting.slice(done);
    if (this.#waiting.length > 0) this.#plan();
  }

  #do(work: () => void): void {
    const startedMs = this.#clock.monotonicMs();
    work();
    this.#usedMs += this.#clock.monotonicMs() - startedMs;
  }
}
