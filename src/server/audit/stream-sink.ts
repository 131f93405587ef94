/**
 * Standard output as a sink: one line each, at the pace of whoever reads it. On Linux a full pipe makes nobody wait but the batch that was
 * written into it, and there is never more than one: the memory of this process is not the reader's buffer.
 */
import type { Writable } from 'node:stream';
import type { AuditBatch } from './records.ts';
import { type AuditSink, unlessAborted } from './sink.ts';

export class StreamSink implements AuditSink {
  readonly kind = 'stdout';
  readonly #stream: Writable;
  /** What was given to the stream last. */
  #last: Promise<void> = Promise.resolve();
  #error: Error | null = null;

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on('error', (error) => {
      this.#error = error;
    });
  }

  async write({ lines }: AuditBatch, signal: AbortSignal): Promise<void> {
    // Of an exporter that was stopped meanwhile, perhaps.
    await unlessAborted(this.#last, signal);
    if (this.#stream.destroyed || !this.#stream.writable) throw this.#gone(this.#error);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#last = promise.catch(() => undefined);
    this.#stream.write(`${lines.join('\n')}\n`, (error) => {
      if (error === null || error === undefined) resolve();
      else reject(this.#gone(error));
    });
    await unlessAborted(promise, signal);
  }

  async close(): Promise<void> {
    // It belongs to the process.
  }

  #gone(cause: Error | null): Error {
    const why = cause?.message ?? 'it is closed';
    return new Error(
      `standard output takes nothing any more (${why}): start this server again with one that does, or give the audit another sink`,
      { cause },
    );
  }
}
