/**
 * The real Runtime: the machine's clocks, Node's timers, the system's randomness, JSON log lines on stderr.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { destination, pino, stdSerializers, stdTimeFunctions } from 'pino';
import type { Logger, Random, Runtime } from './runtime.ts';
import { systemClock, systemTimers } from './system-time.ts';

export { systemClock, systemTimers };

/** Most steps that randomInt can draw from. */
const FRACTION_STEPS = 2 ** 48 - 1;
const STDERR = 2;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export const systemRandom: Random = {
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  fraction: () => randomInt(FRACTION_STEPS) / FRACTION_STEPS,
};

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
