/**
 * An HTTP receiver as a sink: each batch is one POST of NDJSON, and counts once its answer begins with 2xx. Everything else is sent again: a
 * receiver that is away or overloaded comes back, and one that refuses (4xx) is mended by a person, not by leaving out what it refused. A
 * batch that is too large for it (413) is sent in halves.
 *
 * Nothing in an answer is trusted: no more of it is read than a log line shows, and for no longer than the answer may take.
 */
import type { Clock, Timers } from '../../platform/runtime.ts';
import { type AuditBatch, batchOf } from './records.ts';
import { type AuditSink, BusySinkError } from './sink.ts';

const TOO_LARGE = 413;
/** Of an answer that refuses, for the log. */
const SHOWN_CHARACTERS_MAX = 500;
/** So much of an answer is read, to keep the connection; one that is longer, or takes longer, costs its connection. */
const ANSWER_BYTES_MAX = 16 * 1024;
const ANSWER_REST_MS_MAX = 500;

export interface HttpSinkOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** An answer begins within this time. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
}

export class HttpSink implements AuditSink {
  readonly kind = 'http';
  readonly #options: HttpSinkOptions;

  constructor(options: HttpSinkOptions) {
    this.#options = options;
  }

  async write(batch: AuditBatch, signal: AbortSignal): Promise<void> {
    const response = await this.#post(batch, signal);
    const { status, ok, headers } = response;
    const text = await this.#beginningOf(response);
    if (ok) return;
    const { length } = batch.records;
    if (status === TOO_LARGE && length > 1) {
      const middle = Math.ceil(length / 2);
      await this.write(part(batch, 0, middle), signal);
      await this.write(part(batch, middle, length), signal);
      return;
    }
    const what = `entries ${batch.firstIndex} to ${batch.lastIndex}`;
    const message = `${what} were answered ${status}${hintOn(status)}: ${text}`;
    const retryAfterMs = this.#retryAfterMs(headers.get('retry-after'));
    throw retryAfterMs === null ? new Error(message) : new BusySinkError(message, retryAfterMs);
  }

  /** Resolves with the beginning of an answer; its body is still to come. */
  async #post(
    { group, lineage, lines, firstIndex, lastIndex }: AuditBatch,
    signal: AbortSignal,
  ): Promise<Response> {
    const { url, headers, timeoutMs, timers } = this.#options;
    const late = new AbortController();
    const timer = timers.after(timeoutMs, () => late.abort(new Error(`no answer within ${timeoutMs} ms`)));
    try {
      return await fetch(url, {
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
        redirect: 'manual',
        signal: AbortSignal.any([signal, late.signal]),
      });
    } finally {
      timer.cancel();
    }
  }

  /** What is shown of it. Never rejects: what it says is decided by its first line. */
  async #beginningOf({ body }: Response): Promise<string> {
    if (body === null) return '';
    const reader = body.getReader();
    const late = this.#options.timers.after(
      ANSWER_REST_MS_MAX,
      () => void reader.cancel().catch(() => undefined),
    );
    const decoder = new TextDecoder();
    let text = '';
    let bytes = 0;
    try {
      while (bytes < ANSWER_BYTES_MAX) {
        const { done, value } = await reader.read();
        if (done) break;
        bytes += value.byteLength;
        if (text.length < SHOWN_CHARACTERS_MAX) {
          text += decoder.decode(value.subarray(0, 4 * SHOWN_CHARACTERS_MAX), { stream: true });
        }
      }
    } catch {
      text += ' (the rest did not come)';
    } finally {
      late.cancel();
      void reader.cancel().catch(() => undefined);
    }
    return text.slice(0, SHOWN_CHARACTERS_MAX);
  }

  /** Null: it does not say. */
  #retryAfterMs(value: string | null): number | null {
    if (value === null) return null;
    const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - this.#options.clock.wallMs();
    return Number.isFinite(ms) && ms > 0 ? ms : null;
  }

  async close(): Promise<void> {
    // Idle connections end by themselves.
  }
}

/** What to do about an answer that will not mend itself. */
function hintOn(status: number): string {
  if (status >= 300 && status < 400)
    return ' (redirections are not followed: set audit.url to the last address)';
  if (status === 401 || status === 403) return ' (look at audit.headers)';
  if (status === 404 || status === 405) return ' (look at audit.url)';
  if (status === TOO_LARGE) return ' (it takes less than one entry: raise its limit)';
  return '';
}

function part({ records, lines }: AuditBatch, from: number, to: number): AuditBatch {
  return batchOf(records.slice(from, to), lines.slice(from, to));
}
