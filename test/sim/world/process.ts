/**
 * A process on virtual time: the Runtime its code gets, and what can be done to a process from outside: stop it for a while
 * (SIGSTOP, a long collection), kill it, start it again. What arrives while it is stopped waits, and is then worked off
 * before anything newer, timers and messages in the order chosen by the run.
 */
import type { Logger, Runtime } from '../../../src/platform/runtime.ts';
import { Random } from '../../support/random.ts';
import type { Planned } from './event-queue.ts';
import type { Machine } from './machine.ts';
import type { World } from './world.ts';

/** Longest time by which a timer is late in a process that is not stopped, ms. */
const TIMER_LATENESS_MS_MAX = 1;
const SOON_US_MAX = 40;

interface Waiting {
  readonly kind: 'timer' | 'message';
  readonly life: Life;
  readonly action: () => void;
}

export interface ProcessOptions {
  readonly name: string;
  readonly machine: Machine;
  /** False: timers fire at the very microsecond, which makes things coincide (case B01). */
  readonly hasJitter: boolean;
  /** Log lines of level error. */
  readonly onError: (process: VirtualProcess, message: string, fields: object) => void;
}

/** One run of a program, from its start to its end. */
export class Life {
  readonly process: VirtualProcess;
  readonly runtime: Runtime;
  isOver = false;

  constructor(process: VirtualProcess, runtime: Runtime) {
    this.process = process;
    this.runtime = runtime;
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.runtime.timers.after(delayMs, resolve));
  }
}

export class VirtualProcess {
  readonly name: string;
  readonly machine: Machine;
  readonly world: World;
  readonly #options: ProcessOptions;
  readonly #random: Random;
  #life: Life | null = null;
  #lives = 0;
  /** Who has stopped it; it goes on when the last of them lets it. */
  readonly #pausedBy = new Set<object>();
  #pausedAtUs = 0;
  #pausedUs = 0;
  #waiting: Waiting[] = [];

  constructor(world: World, options: ProcessOptions) {
    this.world = world;
    this.name = options.name;
    this.machine = options.machine;
    this.machine.runs(this);
    this.#options = options;
    this.#random = world.random(`process ${options.name}`);
  }

  /** Null: it does not run. */
  get life(): Life | null {
    return this.#life;
  }

  /** How often it has been started. */
  get lives(): number {
    return this.#lives;
  }

  get isPaused(): boolean {
    return this.#pausedBy.size > 0;
  }

  /** Time it has been stopped so far. */
  get pausedUs(): number {
    return this.#pausedUs + (this.isPaused ? this.world.nowUs - this.#pausedAtUs : 0);
  }

  start(): Life {
    if (this.#life !== null) throw new Error(`${this.name} runs already`);
    this.#lives++;
    const life: Life = new Life(
      this,
      this.#runtime(() => life),
    );
    this.#life = life;
    this.world.trace?.(`${this.name} starts`);
    if (this.machine.isAsleep) this.pause(this.machine);
    return life;
  }

  /** Ends at once; nothing of this life happens any more. */
  kill(): void {
    if (this.#life === null) return;
    this.#life.isOver = true;
    this.#life = null;
    this.#waiting = [];
    if (this.isPaused) this.#pausedUs += this.world.nowUs - this.#pausedAtUs;
    this.#pausedBy.clear();
    this.world.trace?.(`${this.name} is dead`);
  }

  /** SIGSTOP; `by`: who must let it go on. Whoever stops a process that does not run does nothing. */
  pause(by: object): void {
    if (this.#life === null) return;
    if (!this.isPaused) this.#pausedAtUs = this.world.nowUs;
    this.#pausedBy.add(by);
    this.world.trace?.(`${this.name} is stopped`);
  }

  /** `timersFirst`: as a Node process does when it wakes up, before it reads its sockets. */
  resume(by: object, { timersFirst }: { readonly timersFirst: boolean }): void {
    if (!this.#pausedBy.delete(by) || this.isPaused) return;
    this.#pausedUs += this.world.nowUs - this.#pausedAtUs;
    this.world.trace?.(`${this.name} goes on`);
    if (timersFirst) {
      const timers = this.#waiting.filter(({ kind }) => kind === 'timer');
      this.#waiting = [...timers, ...this.#waiting.filter(({ kind }) => kind === 'message')];
    }
    this.#workOff();
  }

  /** Something for this life: at once, or after what waits; never once the life is over. */
  enter(life: Life, kind: Waiting['kind'], action: () => void): void {
    if (life.isOver) return;
    if (this.isPaused || this.#waiting.length > 0) this.#waiting.push({ kind, life, action });
    else this.#run(action);
  }

  #workOff(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.isPaused) return;
    this.world.at(this.world.nowUs, () => {
      if (this.isPaused || this.#waiting[0] !== first) return;
      this.#waiting.shift();
      if (!first.life.isOver) this.#run(first.action);
      this.#workOff();
    });
  }

  #run(action: () => void): void {
    this.world.mustSettle();
    action();
  }

  #runtime(life: () => Life): Runtime {
    const { machine } = this;
    const random = new Random(this.#random.int(2 ** 32) * 2 ** 20 + this.#lives);
    return {
      clock: { monotonicMs: () => machine.monotonicMs(), wallMs: () => machine.wallMs() },
      timers: {
        after: (delayMs, action) => this.#after(life(), delayMs, action),
        soon: (action) => {
          const planned = this.world.nowUs + 1 + this.#random.int(SOON_US_MAX);
          this.world.at(planned, () => this.enter(life(), 'message', action));
        },
      },
      random: {
        hex: (bytes) => hexOf(random, bytes),
        fraction: () => random.int(2 ** 32) / 2 ** 32,
      },
      logger: this.#logger(life),
    };
  }

  #after(life: Life, delayMs: number, action: () => void): { cancel(): void } {
    const latenessMs = this.#options.hasJitter ? (this.#random.int(1000) / 1000) * TIMER_LATENESS_MS_MAX : 0;
    const dueMs = this.machine.monotonicMs() + Math.max(0, delayMs) + latenessMs;
    return new VirtualTimer(life, dueMs, action);
  }

  #logger(life: () => Life): Logger {
    const line = (level: string) => (fields: object, message: string) => {
      this.world.trace?.(`${this.name} ${level}: ${message} ${JSON.stringify(fields)}`);
    };
    return {
      debug: line('debug'),
      info: line('info'),
      warn: line('warn'),
      error: (fields, message) => {
        line('error')(fields, message);
        if (!life().isOver) this.#options.onError(this, message, fields);
      },
    };
  }
}

/** One object and two functions for a timer: there are some hundred thousand of them in an hour of a group. */
class VirtualTimer {
  readonly #life: Life;
  readonly #dueMs: number;
  readonly #action: () => void;
  readonly #wake = (): void => this.#woken();
  #planned: Planned | null = null;
  #isOff = false;

  constructor(life: Life, dueMs: number, action: () => void) {
    this.#life = life;
    this.#dueMs = dueMs;
    this.#action = action;
    this.#plan();
  }

  cancel(): void {
    this.#isOff = true;
    if (this.#planned !== null) this.#planned.action = null;
  }

  #plan(): void {
    const { process } = this.#life;
    const { world, machine } = process;
    const atUs = Math.max(world.nowUs + 1, machine.usAt(this.#dueMs));
    this.#planned = world.at(atUs, () => process.enter(this.#life, 'timer', this.#wake));
  }

  /** A machine that slept has counted less than it seemed: then the time has not come yet. */
  #woken(): void {
    if (this.#isOff) return;
    if (this.#life.process.machine.monotonicMs() < this.#dueMs) this.#plan();
    else this.#action();
  }
}

function hexOf(random: Random, bytes: number): string {
  let text = '';
  while (text.length < 2 * bytes)
    text += random
      .int(2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return text.slice(0, 2 * bytes);
}
