/**
 * Says that something the exporter needs is away, and that it is back: at once, and again now and then while it lasts, never a line for each
 * try. A sink that takes every other batch is told of as seldom.
 */
import type { Clock, Logger } from '../../platform/runtime.ts';

const TELL_EVERY_MS = 60_000;

/** What is logged of an outage. */
interface OutageFields {
  /** Kind of the sink, where it is one. */
  readonly sink?: string;
  /** Entries that are exported. */
  readonly index: number | null;
  readonly error?: unknown;
}

export class OutageLog {
  readonly #clock: Clock;
  readonly #tell: (away: boolean, fields: OutageFields) => void;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #isTold = false;

  constructor(clock: Clock, tell: (away: boolean, fields: OutageFields) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  away(fields: OutageFields & { readonly error: unknown }): void {
    const now = this.#clock.monotonicMs();
    if (now - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#toldAtMs = now;
    this.#isTold = true;
    this.#tell(true, fields);
  }

  back(fields: OutageFields): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#tell(false, fields);
  }
}

export function sinkOutages(clock: Clock, logger: Logger): OutageLog {
  return new OutageLog(clock, (isAway, { sink, index, error }) => {
    if (isAway) logger.error({ sink, index, error }, 'the audit sink does not take');
    else logger.info({ sink, index }, 'the audit sink takes again');
  });
}

export function logOutages(clock: Clock, logger: Logger): OutageLog {
  return new OutageLog(clock, (isAway, { index, error }) => {
    if (isAway) logger.error({ index, error }, 'the audit cannot be read from the log');
    else logger.info({ index }, 'the audit is read from the log again');
  });
}
