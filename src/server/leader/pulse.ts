/**
 * When the leader's loop wakes up without being asked: for the next beat, or for a timer of the state that falls due before.
 */
import type { Runtime, Timer } from '../../platform/runtime.ts';

/** Longest time a keepalive waits for a commit while sessions are open (rule S1). */
const BEAT_MS = 250;
/** Longest time between two entries of a leader of a group while no session is open. */
export const IDLE_BEAT_MS = 2_000;

interface Due {
  /** Sessions are open, or keepalives wait. */
  readonly isBusyHour: boolean;
  /** When the next timer of the state falls due. */
  readonly dueInMs: number;
}

export class Pulse {
  readonly #runtime: Runtime;
  readonly #beat: () => void;
  #timer: Timer | null = null;
  #plannedMs: number;

  constructor(runtime: Runtime, beat: () => void) {
    this.#runtime = runtime;
    this.#beat = beat;
    this.#plannedMs = runtime.clock.monotonicMs();
  }

  /** How much later than planned it is: over 500 ms, the loop stood still (rule S6). */
  latenessMs(): number {
    return this.#runtime.clock.monotonicMs() - this.#plannedMs;
  }

  /** Plans the next beat, replacing the one planned before. */
  plan({ isBusyHour, dueInMs }: Due): void {
    const delayMs = Math.max(0, Math.min(isBusyHour ? BEAT_MS : IDLE_BEAT_MS, dueInMs));
    this.#timer?.cancel();
    this.#plannedMs = this.#runtime.clock.monotonicMs() + delayMs;
    this.#timer = this.#runtime.timers.after(delayMs, () => {
      this.#timer = null;
      this.#beat();
    });
  }

  /** As `plan`, but a beat that is planned sooner stays: keepalives that follow each other closely must not put it off. */
  hasten(due: Due): void {
    const delayMs = due.isBusyHour ? BEAT_MS : IDLE_BEAT_MS;
    const isSoonEnough = this.#plannedMs <= this.#runtime.clock.monotonicMs() + delayMs;
    if (this.#timer === null || !isSoonEnough) this.plan(due);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
