/**
 * When the keepalives of the sessions on one line are sent, and when each of them was: its answer counts from that very moment, not from
 * another one's or its own (rules S2, S8).
 */
import { TTL_MS_MAX } from '../api/limits.ts';
import type { Runtime, Timer } from '../platform/runtime.ts';
import { type Moment, momentOf } from './lease-clock.ts';

/** Keepalives remembered until their answer; older ones cannot move a deadline any more. */
const REMEMBERED_MAX = 64;
const EVERY_MS_MAX = TTL_MS_MAX / 5;

export class Keepalives {
  readonly #runtime: Runtime;
  readonly #beat: () => void;
  readonly #sent = new Map<number, Moment>();
  #last = 0;
  #everyMs = EVERY_MS_MAX;
  #timer: Timer | null = null;

  /** `beat`: the next one is due. */
  constructor(runtime: Runtime, beat: () => void) {
    this.#runtime = runtime;
    this.#beat = beat;
  }

  /** A fifth of the shortest TTL. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** There is a session of this TTL to keep alive. */
  cover(ttlMs: number): void {
    const everyMs = ttlMs / 5;
    if (everyMs >= this.#everyMs && this.#timer !== null) return;
    this.#everyMs = Math.min(everyMs, this.#everyMs);
    this.#plan();
  }

  /** There is none any more. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#everyMs = EVERY_MS_MAX;
  }

  /** One is sent now; its number. */
  number(): number {
    this.#sent.set(++this.#last, momentOf(this.#runtime.clock));
    for (const old of this.#sent.keys()) {
      if (this.#sent.size <= REMEMBERED_MAX) break;
      this.#sent.delete(old);
    }
    return this.#last;
  }

  /** When the one of this number was sent, whose answer this is; undefined: none such is on its way. */
  takeSent(number: number): Moment | undefined {
    const sent = this.#sent.get(number);
    this.#sent.delete(number);
    return sent;
  }

  /** The stream is gone, and with it every answer. */
  forget(): void {
    this.#sent.clear();
  }

  #plan(): void {
    this.#timer?.cancel();
    this.#timer = this.#runtime.timers.after(this.#everyMs, () => {
      this.#beat();
      this.#plan();
    });
  }
}
