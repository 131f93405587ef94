/**
 * What the program counts, as ports: HTTP, sidecar and lock server write through the small interfaces here, so that the
 * simulator runs the same code silently and nobody but prometheus.ts knows prom-client.
 */
import type { SessionEndCause } from '../api/entry.ts';
import type { ErrorCode } from '../api/errors.ts';

/** `OK`, a code of the error table, or `HANG_UP`: the caller left before its answer was written. */
export type HttpOutcome = 'OK' | 'HANG_UP' | ErrorCode;

export interface HttpMetrics {
  /** `route` is a route's template, or `unknown`. */
  answered(request: {
    readonly route: string;
    readonly status: number;
    readonly outcome: HttpOutcome;
    readonly durationMs: number;
  }): void;
  /** +1 when an event stream opens, -1 when it ends. */
  streamsChanged(by: 1 | -1): void;
}

export interface SidecarGauges {
  readonly sessions: number;
  readonly grants: number;
  readonly waits: number;
}

/** One namespace as its applications see it through the sidecar. */
export interface SidecarMetrics {
  /** An acquire ended. `durationMs`: from the call to its answer, waiting included. */
  acquired(outcome: 'granted' | ErrorCode, durationMs: number): void;
  /** No acknowledged keepalive for TTL/2. */
  jeopardy(): void;
  /** A grant was reported lost to its application. */
  lost(): void;
  /** A grant was lost and its application worked on: the metric that matters most. */
  leaseExpiredWhileWorking(): void;
  /** Read at each scrape; call the answer to stop. */
  observe(read: () => SidecarGauges): () => void;
}

export interface ServerGauges {
  readonly sessions: number;
  readonly heldLocks: number;
  readonly waiters: number;
  readonly longestQueue: number;
  readonly logBytes: number;
  readonly snapshotBytes: number;
}

/**
 * What became of a client's mark. `trimmed`: it lies below the log's start. `otherLineage`: of another life of the log, where it proves
 * nothing. `forged`: no leader of this group made it. `unchecked`: too many waited.
 */
export type MarkOutcome = 'matched' | 'trimmed' | 'otherLineage' | 'forged' | 'unchecked' | 'rolledBack';

/** The storage of a group's log, as this replica sees it. */
export interface SpaceGauges {
  readonly quotaBytes: number;
  readonly usedBytes: number;
  readonly fileBytes: number;
  readonly isRefusing: boolean;
  /** Members whose data are corrupt or differ. */
  readonly corrupt: number;
}

/** One namespace's lock group as its leader sees it. */
export interface ServerMetrics {
  granted(waitedMs: number): void;
  /** A grant ended in whatever way. */
  held(durationMs: number): void;
  refused(code: ErrorCode): void;
  sessionExpired(cause: SessionEndCause): void;
  fencingRejected(): void;
  /** One entry was committed. `commands`: how many it carried. */
  committed(durationMs: number, commands: number): void;
  /** The loop or the commits stood still (rule S6). */
  stalled(durationMs: number): void;
  leaderChanged(): void;
  /** A client showed a mark (rule S10). */
  markShown(outcome: MarkOutcome): void;
  /** This replica found the log rolled back and serves nothing. */
  halted(): void;
  /** Read at each scrape; call the answer to stop. */
  observe(read: () => ServerGauges): () => void;
  /** Likewise; null: nothing is known yet. */
  observeSpace(read: () => SpaceGauges | null): () => void;
}

export interface AuditGauges {
  readonly lagEntries: number;
  readonly lagMs: number;
}

/** The audit exporter of one namespace, in the replica that leads. */
export interface AuditMetrics {
  /** Entries and gaps that the sink has taken. */
  exported(entries: number): void;
  /** The sink did not take a batch; it is sent again. */
  failed(): void;
  /** So many entries were trimmed before they were exported. */
  gap(entries: number): void;
  /** Read at each scrape; call the answer to stop. */
  observe(read: () => AuditGauges): () => void;
}

export interface Metrics {
  readonly http: HttpMetrics;
  sidecar(namespace: string): SidecarMetrics;
  server(namespace: string): ServerMetrics;
  audit(namespace: string): AuditMetrics;
  readonly contentType: string;
  /** Everything in the Prometheus text format. */
  text(): Promise<string>;
}
