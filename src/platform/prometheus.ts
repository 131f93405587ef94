/**
 * The metrics, counted by prom-client. The registry belongs to one `Metrics` object, never to the module, so two programs in one
 * process (tests) do not share counters.
 * Labels are closed sets (route, code, cause) or LockNamespaces; never the name of a lock, of which there are millions.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { hotCounter, hotHistogram } from './hot-metrics.ts';
import type {
  AuditGauges,
  AuditMetrics,
  HttpMetrics,
  Metrics,
  ServerGauges,
  ServerMetrics,
  SidecarGauges,
  SidecarMetrics,
  SpaceGauges,
} from './metrics.ts';

const MS_PER_SECOND = 1_000;
const CALL_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600];
const WAIT_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 600, 3_600, 14_400, 86_400];
const COMMIT_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_COMMANDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];

/** `processMetrics`: also memory, CPU, event loop and garbage collection of this process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry });
  const make = instruments(registry);
  return {
    http: httpMetrics(make),
    sidecar: sidecarMetrics(make),
    server: serverMetrics(make),
    audit: auditMetrics(make),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}

type Instruments = ReturnType<typeof instruments>;

function instruments(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Counter<Label>({ name: `leasehold_${name}`, help, labelNames: [...labelNames], registers }),
    histogram: <Label extends string>(
      name: string,
      help: string,
      labelNames: readonly Label[],
      buckets: readonly number[],
    ) =>
      new Histogram<Label>({
        name: `leasehold_${name}`,
        help,
        labelNames: [...labelNames],
        buckets: [...buckets],
        registers,
      }),
    /** By namespace; for what comes with every operation. */
    hotCounter: (name: string, help: string) => hotCounter({ name: `leasehold_${name}`, help, registry }),
    hotHistogram: (name: string, help: string, buckets: readonly number[]) =>
      hotHistogram({ name: `leasehold_${name}`, help, registry }, buckets),
    gauge: (name: string, help: string) => new Gauge({ name: `leasehold_${name}`, help, registers }),
    /** One gauge per field, one sample per namespace that has a reader. */
    gauges: <Values extends object>(
      help: Readonly<Record<keyof Values & string, readonly [string, string]>>,
    ) => pulledGauges<Values>(registers, help),
  };
}

/** Gauges that cost nothing between scrapes: each reads its field from the namespaces' readers. */
function pulledGauges<Values extends object>(
  registers: Registry[],
  help: Readonly<Record<keyof Values & string, readonly [name: string, help: string]>>,
): (namespace: string, read: () => Values | null) => () => void {
  const readers = new Map<string, () => Values | null>();
  for (const field of Object.keys(help) as (keyof Values & string)[]) {
    const [name, text] = help[field];
    new Gauge({
      name: `leasehold_${name}`,
      help: text,
      labelNames: ['namespace'],
      registers,
      collect() {
        this.reset();
        for (const [namespace, read] of readers) {
          const values = read();
          if (values !== null) this.set({ namespace }, Number(values[field]));
        }
      },
    });
  }
  return (namespace, read) => {
    readers.set(namespace, read);
    return () => {
      if (readers.get(namespace) === read) readers.delete(namespace);
    };
  };
}

/** A counter that is not there before its first event has no growth that Prometheus could see: the first would page nobody. */
function beginAtZero(namespace: string, counters: readonly Counter<'namespace'>[]): void {
  for (const counter of counters) counter.inc({ namespace }, 0);
}

function httpMetrics(make: Instruments): HttpMetrics {
  const requests = make.counter('http_requests_total', 'HTTP requests by route, status and code.', [
    'route',
    'status',
    'code',
  ]);
  const seconds = make.histogram(
    'http_request_seconds',
    'Time from a request to its answer, waiting for a lock included.',
    ['route'],
    CALL_SECONDS,
  );
  const streams = make.gauge('http_event_streams', 'Open event streams.');
  return {
    answered({ route, status, outcome, durationMs }) {
      requests.inc({ route, status: String(status), code: outcome });
      seconds.observe({ route }, durationMs / MS_PER_SECOND);
    },
    streamsChanged: (by) => streams.inc(by),
  };
}

function sidecarMetrics(make: Instruments): (namespace: string) => SidecarMetrics {
  const acquires = make.histogram(
    'acquire_seconds',
    'Time from an acquire to its answer, by outcome.',
    ['namespace', 'outcome'],
    WAIT_SECONDS,
  );
  const jeopardy = make.counter('jeopardy_total', 'Times no keepalive was acknowledged for half a TTL.', [
    'namespace',
  ]);
  const lost = make.counter('grants_lost_total', 'Grants reported lost to their application.', ['namespace']);
  const expired = make.counter(
    'lease_expired_while_working_total',
    'Grants lost while their application worked on.',
    ['namespace'],
  );
  const gauges = make.gauges<SidecarGauges>({
    sessions: ['sidecar_sessions', 'Sessions of applications.'],
    grants: ['sidecar_grants', 'Grants held through this sidecar.'],
    waits: ['sidecar_waits', 'Acquires that wait.'],
  });
  return (namespace) => {
    beginAtZero(namespace, [jeopardy, lost, expired]);
    return {
      acquired: (outcome, durationMs) => acquires.observe({ namespace, outcome }, durationMs / MS_PER_SECOND),
      jeopardy: () => jeopardy.inc({ namespace }),
      lost: () => lost.inc({ namespace }),
      leaseExpiredWhileWorking: () => expired.inc({ namespace }),
      observe: (read) => gauges(namespace, read),
    };
  };
}

function serverMetrics(make: Instruments): (namespace: string) => ServerMetrics {
  const label = ['namespace'] as const;
  const waits = make.hotHistogram('wait_seconds', 'Time from an acquire to its grant.', WAIT_SECONDS);
  const holds = make.hotHistogram('hold_seconds', 'Time from a grant to its end.', WAIT_SECONDS);
  const grants = make.hotCounter('grants_total', 'Grants.');
  const refusals = make.counter('refusals_total', 'Refused acquires by code.', ['namespace', 'code']);
  const expiries = make.counter('session_expiries_total', 'Sessions ended without being closed.', [
    'namespace',
    'cause',
  ]);
  const rejections = make.counter('fencing_rejections_total', 'Stale tokens refused by resources.', label);
  const commits = make.histogram('commit_seconds', 'Time of one append to the log.', label, COMMIT_SECONDS);
  const batches = make.histogram('batch_commands', 'Commands in one entry.', label, BATCH_COMMANDS);
  const stalls = make.histogram('stall_seconds', 'Times the leader stood still.', label, COMMIT_SECONDS);
  const changes = make.counter('leader_changes_total', 'Take-overs of the group.', label);
  const marks = make.counter('marks_total', 'Marks that clients showed, by what the log says to them.', [
    'namespace',
    'outcome',
  ]);
  const halts = make.counter('halts_total', 'Times a replica found its log rolled back.', label);
  const gauges = make.gauges<ServerGauges>({
    sessions: ['sessions', 'Open sessions.'],
    heldLocks: ['held_locks', 'Held locks.'],
    waiters: ['waiters', 'Waiting acquires of all names.'],
    longestQueue: ['longest_queue', 'Length of the longest queue of one name.'],
    logBytes: ['log_bytes', 'Size of the log.'],
    snapshotBytes: ['snapshot_bytes', 'Size of the latest snapshot.'],
  });
  const space = make.gauges<SpaceGauges>({
    quotaBytes: ['log_quota_bytes', "Quota of the log's storage."],
    usedBytes: ['log_used_bytes', 'Storage in use, by the fullest member.'],
    fileBytes: ['log_file_bytes', 'Storage in use or free for reuse, by the largest member.'],
    isRefusing: ['acquires_refused_for_space', '1 while acquires are refused because the quota is used up.'],
    corrupt: ['storage_corrupt_members', 'Members of the storage whose data are corrupt or differ.'],
  });
  return (namespace) => {
    beginAtZero(namespace, [rejections, changes, halts]);
    const [addGrant, addWait, addHold] = [grants(namespace), waits(namespace), holds(namespace)];
    return {
      granted(waitedMs) {
        addGrant();
        addWait(waitedMs / MS_PER_SECOND);
      },
      held: (durationMs) => addHold(durationMs / MS_PER_SECOND),
      refused: (code) => refusals.inc({ namespace, code }),
      sessionExpired: (cause) => expiries.inc({ namespace, cause }),
      fencingRejected: () => rejections.inc({ namespace }),
      committed(durationMs, commands) {
        commits.observe({ namespace }, durationMs / MS_PER_SECOND);
        batches.observe({ namespace }, commands);
      },
      stalled: (durationMs) => stalls.observe({ namespace }, durationMs / MS_PER_SECOND),
      leaderChanged: () => changes.inc({ namespace }),
      markShown: (outcome) => marks.inc({ namespace, outcome }),
      halted: () => halts.inc({ namespace }),
      observe: (read) => gauges(namespace, read),
      observeSpace: (read) => space(namespace, read),
    };
  };
}

function auditMetrics(make: Instruments): (namespace: string) => AuditMetrics {
  const label = ['namespace'] as const;
  const exported = make.counter(
    'audit_exported_entries_total',
    'Entries that the audit sink has taken.',
    label,
  );
  const failures = make.counter('audit_failures_total', 'Batches that the audit sink did not take.', label);
  const gaps = make.counter(
    'audit_gaps_total',
    'Stretches of the log trimmed before they were exported.',
    label,
  );
  const missing = make.counter(
    'audit_gap_entries_total',
    'Entries trimmed before they were exported.',
    label,
  );
  const gauges = make.gauges<AuditGauges>({
    lagEntries: ['audit_lag_entries', 'Entries that the audit sink does not have yet.'],
    lagMs: ['audit_lag_ms', 'Age of the oldest entry that waits for the audit sink, ms.'],
  });
  return (namespace) => {
    beginAtZero(namespace, [exported, failures, gaps, missing]);
    return {
      exported: (entries) => exported.inc({ namespace }, entries),
      failed: () => failures.inc({ namespace }),
      gap(entries) {
        gaps.inc({ namespace });
        missing.inc({ namespace }, entries);
      },
      observe: (read) => gauges(namespace, read),
    };
  };
}
