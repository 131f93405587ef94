/**
 * A Runtime on virtual time: hours pass in milliseconds, and nothing happens but what a test lets happen. Between two steps
 * all promises that can settle do settle, as between two turns of a real event loop.
 */
import type { Logger, Runtime } from '../../src/platform/runtime.ts';
import { EventQueue } from '../sim/world/event-queue.ts';
import { Random } from './random.ts';

const US_PER_MS = 1_000;
/** 2025-01-01T00:00:00Z. */
const WALL_AT_START_MS = 1_735_689_600_000;
/** A step in which promises go on for ever would hang the test. */
const STEPS_MAX = 50_000_000;

export class VirtualRuntime implements Runtime {
  readonly clock: Runtime['clock'];
  readonly timers: Runtime['timers'];
  readonly random: Runtime['random'];
  readonly logger: Logger;
  /** Messages of level warn and error. */
  readonly logged: string[] = [];
  readonly #queue = new EventQueue();
  #nowUs = 0;
  #wallMinusMonotonicMs = WALL_AT_START_MS;
  #steps = 0;

  constructor(seed = 1) {
    const random = new Random(seed);
    this.clock = {
      monotonicMs: () => this.nowMs,
      wallMs: () => Math.floor(this.nowMs + this.#wallMinusMonotonicMs),
    };
    this.timers = {
      after: (delayMs, action) => {
        const planned = this.#queue.push(this.#nowUs + Math.ceil(Math.max(0, delayMs) * US_PER_MS), action);
        return {
          cancel: () => {
            planned.action = null;
          },
        };
      },
      soon: (action) => void this.#queue.push(this.#nowUs, action),
    };
    this.random = {
      hex: (bytes) =>
        Array.from({ length: bytes }, () => random.int(256).toString(16).padStart(2, '0')).join(''),
      fraction: () => random.int(2 ** 32) / 2 ** 32,
    };
    const told = (_fields: object, message: string) => void this.logged.push(message);
    this.logger = { debug: () => undefined, info: () => undefined, warn: told, error: told };
  }

  /** Milliseconds since the start. */
  get nowMs(): number {
    return this.#nowUs / US_PER_MS;
  }

  /** Timers and the like that have run so far: what does not spin takes few of them. */
  get steps(): number {
    return this.#steps;
  }

  /** Lets time pass, and everything happen that falls due in it. */
  async pass(ms: number): Promise<void> {
    let isOver = false;
    this.#queue.push(this.#nowUs + Math.ceil(ms * US_PER_MS), () => {
      isOver = true;
    });
    await promisesSettle();
    while (!isOver) await this.#step();
  }

  /** Lets time pass until `promise` has settled; fails if it has not after `limitMs`. */
  async until<T>(promise: Promise<T>, limitMs: number): Promise<T> {
    let isSettled = false;
    const settled = (): void => {
      isSettled = true;
    };
    promise.then(settled, settled);
    const endUs = this.#nowUs + limitMs * US_PER_MS;
    await promisesSettle();
    while (!isSettled) {
      if (this.#nowUs > endUs) throw new Error(`not within ${limitMs} ms of virtual time`);
      await this.#step();
    }
    return promise;
  }

  /** The whole process stands still (SIGSTOP, a long collection): timers that fall due meanwhile fire late. */
  stall(ms: number): void {
    this.#nowUs += ms * US_PER_MS;
  }

  /** Somebody sets the wall clock. */
  stepWall(byMs: number): void {
    this.#wallMinusMonotonicMs += byMs;
  }

  async #step(): Promise<void> {
    const next = this.#queue.pop();
    if (next === undefined) throw new Error('nothing is left that could happen');
    this.#nowUs = Math.max(this.#nowUs, next.atUs);
    if (++this.#steps > STEPS_MAX) throw new Error('it spins');
    next.action?.();
    await promisesSettle();
  }
}

/** Whatever promises have to do comes before the next turn of the real event loop. */
function promisesSettle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
