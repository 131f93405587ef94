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
/** Of lines that cannot be written, as on a full disk: so much waits until there is room, and what is more is lost. */
const UNWRITTEN_BYTES_MAX = 1024 * 1024;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export const systemRandom: Random = {
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  fraction: () => randomInt(FRACTION_STEPS) / FRACTION_STEPS,
};

/** A disk that is full ends nobody: unheard, its error would be thrown at whoever logs, in the middle of something else. */
function standardError(): ReturnType<typeof destination> {
  const stderr = destination({ dest: STDERR, sync: true, maxLength: UNWRITTEN_BYTES_MAX });
  stderr.on('error', () => undefined);
  // Only what it takes makes it try again to write what waits; `flushSync` would do so until there is room, and nothing else meanwhile.
  stderr.on('drop', () => void stderr.write(''));
  return stderr;
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
    standardError(),
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
