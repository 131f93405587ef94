/** Where the audit goes. */
import type { AuditBatch } from './records.ts';

export interface AuditSink {
  /** For log lines and metrics. */
  readonly kind: 'stdout' | 'file' | 'http' | 'postgresql';
  /**
   * Resolves when all of the batch is safe there. Rejects when it is not, or when nobody knows: it is then sent again, whole. `signal`: the
   * exporter stops, and waits no longer.
   */
  write(batch: AuditBatch, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
