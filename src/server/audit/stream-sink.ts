/** Standard output as a sink: one line each, at the pace of whoever reads it. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { AuditBatch } from './records.ts';
import type { AuditSink } from './sink.ts';

export class StreamSink implements AuditSink {
  readonly kind = 'stdout';
  readonly #stream: Writable;

  constructor(stream: Writable) {
    this.#stream = stream;
    // A reader that has gone is told of by the next write.
    stream.on('error', () => undefined);
  }

  async write({ lines }: AuditBatch, signal: AbortSignal): Promise<void> {
    if (this.#stream.destroyed || !this.#stream.writable)
      throw new Error('nobody reads standard output any more');
    if (!this.#stream.write(`${lines.join('\n')}\n`)) await once(this.#stream, 'drain', { signal });
  }

  async close(): Promise<void> {
    // It belongs to the process.
  }
}
