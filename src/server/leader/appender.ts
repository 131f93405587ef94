/**
 * The leader's pen: encodes entries, chains them by hash, and keeps at an append until its outcome is known (rule L2). While
 * the storage does not answer, work pauses: nothing is answered, nothing expires (rule S11).
 */
import type { Entry } from '../../api/entry.ts';
import { encodeEntry } from '../../core/index.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import type { AppendOutcome, Leadership, LockLog, LogPosition, StoredEntry } from '../../log/port.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';

/** The log has tried several times by itself before it gives up. */
const RETRY_MS = 50;

export interface Appended {
  readonly outcome: AppendOutcome;
  readonly bytes: number;
}

export class Appender {
  readonly #runtime: Runtime;
  readonly #log: LockLog;
  readonly #leadership: Leadership;
  #head: LogPosition;
  #hasGivenUp = false;

  constructor(runtime: Runtime, log: LockLog, leadership: Leadership, head: LogPosition) {
    this.#runtime = runtime;
    this.#log = log;
    this.#leadership = leadership;
    this.#head = head;
  }

  /** The last committed entry. */
  get head(): LogPosition {
    return this.#head;
  }

  /** Resolves when the outcome is known, however long that takes. Rejects when the log cannot be written any more. */
  async append(entry: Omit<Entry, 'previous'>): Promise<Appended> {
    const previous = this.#head.hash;
    const { bytes, hash } = encodeEntry({ ...entry, previous });
    const outcome = await this.#keepAt({ index: entry.index, bytes, hash, previous });
    if (outcome === 'committed') this.#head = { index: entry.index, hash };
    return { outcome, bytes: bytes.length };
  }

  /** The append under way is not sent again; its outcome stays unknown, as it would if this process ended now. */
  giveUp(): void {
    this.#hasGivenUp = true;
  }

  async #keepAt(stored: StoredEntry): Promise<AppendOutcome> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#log.append(this.#leadership, stored);
      } catch (error) {
        if (!(error instanceof LogUnavailableError) || this.#hasGivenUp) throw error;
        if (tries === 1) {
          this.#runtime.logger.warn({ index: stored.index, error }, 'the log does not answer; work pauses');
        }
      }
      await pause(this.#runtime.timers, RETRY_MS);
    }
  }
}
