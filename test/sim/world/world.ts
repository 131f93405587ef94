/**
 * Virtual time: one queue of what is to happen, run as fast as the machine can. Between two steps all promises that can
 * settle do settle, as between two turns of a real event loop, so the code under test notices nothing.
 * The same seed gives the same run: every choice comes from here, and the hash over all steps proves it.
 */
import { Random } from '../../support/random.ts';
import { EventQueue, type Planned } from './event-queue.ts';

export const US_PER_MS = 1_000;

/** The event loop of this process has its turn after so many of ours. */
const TURNS_PER_LOOP = 1_000;

/** A microtask behind it is as good as `queueMicrotask`, which makes an async resource for each and costs several times as much. */
const SETTLED = Promise.resolve();

/** A line of the story of a run, for people. */
export type TraceLine = (nowMs: number, text: string) => void;

export class World {
  readonly seed: number;
  /** Undefined in most runs: lines cost time, and a run can be repeated. Call as `world.trace?.(...)`. */
  readonly trace: ((text: string) => void) | undefined;
  /** Microseconds since the run began, always whole. */
  nowUs = 0;
  readonly #queue = new EventQueue();
  #steps = 0;
  #hash = 0x811c9dc5;
  #hash2 = 0x1b873593;
  #isStopped = false;
  #mustSettle = false;

  /** `seed`: a whole number from 0 to 2^32 - 1. */
  constructor(seed: number, onTrace?: TraceLine) {
    this.seed = seed;
    this.trace = onTrace === undefined ? undefined : (text) => onTrace(this.nowMs, text);
  }

  get nowMs(): number {
    return this.nowUs / US_PER_MS;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Over the times and the order of all steps, and over what was given to `mix`. */
  get hash(): string {
    return (
      (this.#hash >>> 0).toString(16).padStart(8, '0') + (this.#hash2 >>> 0).toString(16).padStart(8, '0')
    );
  }

  /** A stream of choices of its own, so that more choices in one place do not shift those of another. */
  random(stream: string): Random {
    let salt = 0x811c9dc5;
    for (let i = 0; i < stream.length; i++) salt = Math.imul(salt ^ stream.charCodeAt(i), 0x01000193);
    const low = (Math.imul(this.seed | 0, 0x9e3779b1) ^ salt) >>> 0;
    const high = (Math.imul(salt ^ (this.seed >>> 7), 0x85ebca6b) >>> 12) % 2 ** 20;
    return new Random(high * 2 ** 32 + low);
  }

  at(atUs: number, action: () => void): Planned {
    return this.#queue.push(Math.max(atUs, this.nowUs), action);
  }

  afterMs(delayMs: number, action: () => void): Planned {
    return this.at(this.nowUs + Math.ceil(delayMs * US_PER_MS), action);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.afterMs(delayMs, () => {
        this.mustSettle();
        resolve();
      });
    });
  }

  /** Code that uses promises ran in this step: they must settle before the next one. */
  mustSettle(): void {
    this.#mustSettle = true;
  }

  mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193);
    this.#hash2 = Math.imul(this.#hash2 ^ (this.#hash >>> 15) ^ value, 0x85ebca6b);
  }

  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Runs until `stop`, or until nothing is left to happen. Rejects with what a step throws. A tick planned by a microtask comes after all
   * microtasks: as good as `setImmediate` for promises to settle, and much cheaper; now and then the event loop has its turn.
   */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      let turns = 0;
      const turn = (): void => {
        if (this.#isStopped || this.#queue.size === 0) {
          resolve();
          return;
        }
        try {
          this.#untilPromises();
        } catch (error) {
          reject(error);
          return;
        }
        if (++turns % TURNS_PER_LOOP === 0) setImmediate(turn);
        else void SETTLED.then(next);
      };
      const next = (): void => process.nextTick(turn);
      setImmediate(turn);
    });
  }

  /** Steps up to one after which promises must settle, which they do before the next `setImmediate`. */
  #untilPromises(): void {
    this.#mustSettle = false;
    while (!this.#mustSettle && !this.#isStopped) {
      const next = this.#queue.pop();
      if (next === undefined) return;
      this.nowUs = next.atUs;
      this.#steps++;
      this.mix(next.atUs & 0x7fffffff);
      this.mix(next.order & 0x7fffffff);
      next.action?.();
    }
  }
}
