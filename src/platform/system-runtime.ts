/**
 * The real Runtime: the machine's clocks, Node's timers, the system's randomness, JSON log lines on stderr.
 *
 * Which clock: `performance.now` is CLOCK_MONOTONIC on Linux (and its like elsewhere). It runs on while the process is stopped (SIGSTOP,
 * a debugger, a long garbage collection) and is never set back. While a Linux machine sleeps it stands still; that shows as wall time
 * running ahead of it, which rule A2 watches for.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { destination, pino, stdSerializers, stdTimeFunctions } from 'pino';
import type { Clock, Logger, Random, Runtime, Timer, Timers } from './runtime.ts';

/** Longest delay of one timer of Node: beyond it, Node would fire after 1 ms (case E02). 24.8 days. */
const NODE_TIMER_MS_MAX = 2 ** 31 - 1;
/** Most steps that randomInt can draw from. */
const FRACTION_STEPS = 2 ** 48 - 1;
const STDERR = 2;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Node counts `performance.now` from the start of the process; deadlines are told on the machine's own scale. */
const MONOTONIC_AT_START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const systemClock: Clock = {
  monotonicMs: () => MONOTONIC_AT_START_MS + performance.now(),
  wallMs: () => Date.now(),
};

export const systemTimers: Timers = {
  after: (delayMs, action) => new SystemTimer(delayMs, action),
  soon: (action) => void setImmediate(action),
};

export const systemRandom: Random = {
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  fraction: () => randomInt(FRACTION_STEPS) / FRACTION_STEPS,
};

/** A chain of Node's timers up to a deadline: any delay is right, and none fires early by Node's rounding. */
class SystemTimer implements Timer {
  readonly #deadlineMs: number;
  readonly #action: () => void;
  #handle: NodeJS.Timeout | undefined;

  constructor(delayMs: number, action: () => void) {
    if (Number.isNaN(delayMs)) throw new RangeError('a delay is a number of milliseconds');
    this.#deadlineMs = performance.now() + Math.max(0, delayMs);
    this.#action = action;
    this.#arm(Math.max(0, delayMs));
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(remainingMs: number): void {
    this.#handle = setTimeout(() => this.#wake(), Math.min(Math.ceil(remainingMs), NODE_TIMER_MS_MAX));
  }

  #wake(): void {
    const remainingMs = this.#deadlineMs - performance.now();
    if (remainingMs > 0) this.#arm(remainingMs);
    else this.#action();
  }
}

/** Written at once, also when the process dies on the next line: log lines are rare (no line per operation). */
export function createLogger(level: LogLevel): Logger {
  const lines = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: stdSerializers.err },
    },
    destination({ dest: STDERR, sync: true }),
  );
  return {
    debug: (fields, message) => lines.debug(fields, message),
    info: (fields, message) => lines.info(fields, message),
    warn: (fields, message) => lines.warn(fields, message),
    error: (fields, message) => lines.error(fields, message),
  };
}

export function createSystemRuntime(options: { readonly logLevel: LogLevel }): Runtime {
  return {
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    logger: createLogger(options.logLevel),
  };
}
