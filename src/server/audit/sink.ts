/** Where the audit goes. */
import type { AuditBatch } from './records.ts';

export interface AuditSink {
  /** For log lines and metrics. */
  readonly kind: 'stdout' | 'file' | 'http' | 'postgresql';
  /**
   * Resolves when all of the batch is safe there. Rejects when it is not, or when nobody knows: the same batch is then written again, whole.
   * `signal`: the exporter stops, and waits no longer.
   */
  write(batch: AuditBatch, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The sink says itself when to come again. */
export class BusySinkError extends Error {
  readonly retryAfterMs: number;
  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.name = 'BusySinkError';
    this.retryAfterMs = retryAfterMs;
  }
}

/** Settles as `promise` does, or rejects once `signal` fires; what was begun goes on behind it. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort));
}
