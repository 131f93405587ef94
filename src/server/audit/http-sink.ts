/**
 * An HTTP receiver as a sink: each batch is one POST of NDJSON, and counts once it was answered 2xx. Everything else is sent again: a receiver
 * that is away or overloaded comes back, and one that refuses (4xx) is mended by a person, not by leaving out what it refused. A batch that is
 * too large for it (413) is sent in halves.
 */
import type { Timers } from '../../platform/runtime.ts';
import { type AuditBatch, batchOf } from './records.ts';
import type { AuditSink } from './sink.ts';

const TOO_LARGE = 413;
/** Of an answer that refuses, for the log. */
const SHOWN_CHARACTERS_MAX = 500;

export interface HttpSinkOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** An answer takes no longer. */
  readonly timeoutMs: number;
  readonly timers: Timers;
}

export class HttpSink implements AuditSink {
  readonly kind = 'http';
  readonly #options: HttpSinkOptions;

  constructor(options: HttpSinkOptions) {
    this.#options = options;
  }

  async write(batch: AuditBatch, signal: AbortSignal): Promise<void> {
    const { status, text } = await this.#post(batch, signal);
    if (status >= 200 && status < 300) return;
    const { length } = batch.records;
    if (status === TOO_LARGE && length > 1) {
      const middle = Math.ceil(length / 2);
      await this.write(part(batch, 0, middle), signal);
      await this.write(part(batch, middle, length), signal);
      return;
    }
    const what = `entries ${batch.firstIndex} to ${batch.lastIndex}`;
    throw new Error(`${what} were answered ${status}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`);
  }

  async #post(
    { group, lineage, lines, firstIndex, lastIndex }: AuditBatch,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { url, headers, timeoutMs, timers } = this.#options;
    const late = new AbortController();
    const timer = timers.after(timeoutMs, () => late.abort(new Error(`no answer within ${timeoutMs} ms`)));
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/x-ndjson',
          'leasehold-group': encodeURIComponent(group),
          'leasehold-lineage': lineage,
          'leasehold-first-index': String(firstIndex),
          'leasehold-last-index': String(lastIndex),
        },
        body: `${lines.join('\n')}\n`,
        // A redirection would carry the secrets of the headers elsewhere.
        redirect: 'error',
        signal: AbortSignal.any([signal, late.signal]),
      });
      return { status: response.status, text: await response.text() };
    } finally {
      timer.cancel();
    }
  }

  async close(): Promise<void> {
    // Idle connections end by themselves.
  }
}

function part({ records, lines }: AuditBatch, from: number, to: number): AuditBatch {
  return batchOf(records.slice(from, to), lines.slice(from, to));
}
