/**
 * The outside world as ports: clocks, timers and randomness. Everything above this folder takes a `Runtime`, so that the
 * simulator can run the same code on virtual time. The real one is in system-runtime.ts.
 */

export interface Clock {
  /** Milliseconds since an arbitrary start, never going back, running on while the process is stopped. Fractions allowed. */
  monotonicMs(): number;
  /** Milliseconds since 1970. For people, for token floors and for noticing a suspend; never for a lease. */
  wallMs(): number;
}

export interface Timer {
  cancel(): void;
}

export interface Timers {
  /** Runs `action` once, not before `delayMs` have passed. Any delay is right, also over 24.8 days (case E02). */
  after(delayMs: number, action: () => void): Timer;
  /** Runs `action` soon, after what is already waiting; never inside the caller. */
  soon(action: () => void): void;
}

export interface Random {
  /** `bytes` random bytes as lower-case hex. */
  hex(bytes: number): string;
  /** Uniform in [0, 1). For jitter. */
  fraction(): number;
}

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Runtime {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
}

/** The same logger, with these fields in every line. */
export function labelled(logger: Logger, label: object): Logger {
  return {
    debug: (fields, message) => logger.debug({ ...label, ...fields }, message),
    info: (fields, message) => logger.info({ ...label, ...fields }, message),
    warn: (fields, message) => logger.warn({ ...label, ...fields }, message),
    error: (fields, message) => logger.error({ ...label, ...fields }, message),
  };
}
