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

/** A process as its machine sees it. */
interface Sleeper {
  pause(by: object): void;
  resume(by: object, options: { readonly timersFirst: boolean }): void;
}

export class Machine {
  readonly rate: number;
  readonly #world: World;
  readonly #startMs: number;
  #wallMinusWorldMs: number;
  readonly #processes = new Set<Sleeper>();
  /** Time asleep so far: the monotonic clock does not count it. */
  #asleepUs = 0;
  #fellAsleepUs: number | null = null;
  /** How often it has slept. */
  sleeps = 0;

  constructor(world: World, { rate, monotonicAtStartMs, wallAtStartMs }: MachineOptions) {
    this.#world = world;
    this.rate = rate;
    this.#startMs = monotonicAtStartMs;
    this.#wallMinusWorldMs = wallAtStartMs;
  }

  monotonicMs(): number {
    const awakeUs = (this.#fellAsleepUs ?? this.#world.nowUs) - this.#asleepUs;
    return this.#startMs + (awakeUs / US_PER_MS) * this.rate;
  }

  wallMs(): number {
    return Math.floor(this.#world.nowMs + this.#wallMinusWorldMs);
  }

  /** Somebody sets the wall clock (cases E10 to E12). */
  stepWall(byMs: number): void {
    this.#wallMinusWorldMs += byMs;
  }

  get isAsleep(): boolean {
    return this.#fellAsleepUs !== null;
  }

  runs(process: Sleeper): void {
    this.#processes.add(process);
  }

  /** All its processes stand still, and its monotonic clock does not count the time (rule A2). */
  fallAsleep(): void {
    this.#fellAsleepUs ??= this.#world.nowUs;
    for (const process of this.#processes) process.pause(this);
  }

  wakeUp(options: { readonly timersFirst: boolean }): void {
    if (this.#fellAsleepUs === null) return;
    this.#asleepUs += this.#world.nowUs - this.#fellAsleepUs;
    this.#fellAsleepUs = null;
    this.sleeps++;
    for (const process of this.#processes) process.resume(this, options);
  }

  /** The first moment of the run at which the monotonic clock shows `monotonicMs` or more, if the machine does not sleep again. */
  usAt(monotonicMs: number): number {
    const exact = ((monotonicMs - this.#startMs) / this.rate) * US_PER_MS + this.#asleepUs;
    return Math.ceil(exact - 1e-3);
  }
}
