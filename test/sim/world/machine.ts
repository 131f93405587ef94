/**
 * A machine's clocks: a monotonic one at its own rate and from its own start, a wall clock that can be set. Processes of
 * one machine share them, as a sidecar and its applications do.
 */
import { US_PER_MS, type World } from './world.ts';

export interface MachineOptions {
  /** Milliseconds the monotonic clock counts in one real millisecond; within 1 % of 1 (promise 5). */
  readonly rate: number;
  readonly monotonicAtStartMs: number;
  readonly wallAtStartMs: number;
}

export class Machine {
  readonly rate: number;
  readonly #world: World;
  readonly #startMs: number;
  #wallMinusWorldMs: number;
  /** Time asleep so far: the monotonic clock does not count it. */
  #asleepUs = 0;

  constructor(world: World, { rate, monotonicAtStartMs, wallAtStartMs }: MachineOptions) {
    this.#world = world;
    this.rate = rate;
    this.#startMs = monotonicAtStartMs;
    this.#wallMinusWorldMs = wallAtStartMs;
  }

  monotonicMs(): number {
    return this.#startMs + ((this.#world.nowUs - this.#asleepUs) / US_PER_MS) * this.rate;
  }

  wallMs(): number {
    return Math.floor(this.#world.nowMs + this.#wallMinusWorldMs);
  }

  /** Somebody sets the wall clock (cases E10 to E12). */
  stepWall(byMs: number): void {
    this.#wallMinusWorldMs += byMs;
  }

  /** The machine has slept for so long (rule A2); its processes must have been paused meanwhile. */
  slept(forUs: number): void {
    this.#asleepUs += forUs;
  }

  /** The first moment of the run at which the monotonic clock shows `monotonicMs` or more, if the machine does not sleep. */
  usAt(monotonicMs: number): number {
    const exact = ((monotonicMs - this.#startMs) / this.rate) * US_PER_MS + this.#asleepUs;
    return Math.ceil(exact - 1e-3);
  }
}
