/** The committed history, what the applications believed and what the resource accepted: do they agree, and is every promise kept? */
import type { NamespaceConfig } from '../../src/api/config.ts';
import type { LockEvent } from '../../src/api/entry.ts';
import { HistoryChecker } from '../../src/history/checker.ts';
import type { Verdict } from '../../src/history/verdict.ts';
import type { KnownGrant } from './clients/ledger.ts';
import type { AcceptedWrite } from './fenced-resource.ts';
import type { TimedEntry } from './timeline.ts';

/** The moment of an entry is known to be no later than that behind the truth. */
const LATE_MS_MAX = 250;

type Granted = Extract<LockEvent, { type: 'granted' }>;

/** When a fault hindered the service. */
export interface Hindrance {
  readonly from: number;
  readonly to: number;
  readonly what: string;
}

export interface Evidence {
  readonly history: readonly TimedEntry[];
  readonly config: NamespaceConfig;
  readonly grants: readonly KnownGrant[];
  readonly writes: readonly AcceptedWrite[];
  readonly hindrances: readonly Hindrance[];
  /** Grants that a hindrance may delay: two TTL for a fail-over (promise 4). */
  readonly extraMs: number;
}

export interface Judgement {
  readonly verdict: Verdict;
  /** Told grants that the record does not have. */
  readonly unknown: readonly KnownGrant[];
  /** Accepted writes that came under an older token, or under one that was never granted. */
  readonly badWrites: readonly string[];
}

export function judge(evidence: Evidence): Judgement {
  const { history, config, grants, hindrances, extraMs } = evidence;
  const checker = new HistoryChecker({ configs: new Map([[1, config]]), rememberedRequests: 10_000_000 });
  const granted = new Map<number, { readonly event: Granted; readonly runAt: number }>();
  const pending = [...hindrances].sort((a, b) => a.from - b.from);
  for (const { entry, runAt } of history) {
    while (pending[0] !== undefined && pending[0].from <= runAt) {
      const { from, to, what: reason } = pending.shift() as Hindrance;
      checker.run({ type: 'pause', from, to, extraMs, reason });
    }
    checker.entry(entry, runAt);
    for (const event of entry.events)
      if (event.type === 'granted') granted.set(event.token, { event, runAt });
  }
  const lineage = history[0]?.entry.lineage ?? '';
  const unknown: KnownGrant[] = [];
  for (const grant of grants) {
    const known = granted.get(grant.token);
    if (known?.event.name !== grant.name) unknown.push(grant);
    else record(checker, grant, known, lineage);
  }
  const verdict = checker.finish({ quiet: true, clientsGone: true });
  return { verdict, unknown, badWrites: judgeWrites(evidence.writes, granted) };
}

function record(
  checker: HistoryChecker,
  grant: KnownGrant,
  { event, runAt }: { readonly event: Granted; readonly runAt: number },
  lineage: string,
): void {
  const { name, token, reportedAt, believedUntil, gaveUpAt, releasedAt, lostAt, ttlMs } = grant;
  const of = { lineage, session: event.session, name, token };
  checker.client({ type: 'grantReported', ...of, key: event.key, at: reportedAt });
  // The moment of a grant is known to a few milliseconds only; an answer cannot come before it.
  const from = Math.max(reportedAt, runAt);
  if (believedUntil > from) checker.client({ type: 'heldInterval', ...of, from, to: believedUntil });
  const sentAt = Math.max(0, ...grant.keptAt);
  // A millisecond for what was rounded on the way.
  if (sentAt > 0) {
    checker.client({ type: 'keepaliveAcknowledged', lineage, session: of.session, sentAt, ttlMs: ttlMs - 1 });
  }
  if (gaveUpAt !== null) checker.client({ type: 'gaveUp', ...of, at: gaveUpAt });
  if (lostAt !== null) checker.client({ type: 'lost', ...of, at: lostAt });
  if (releasedAt !== null) {
    checker.client({ type: 'releaseConfirmed', ...of, at: releasedAt + LATE_MS_MAX });
  }
}

function judgeWrites(
  writes: readonly AcceptedWrite[],
  granted: ReadonlyMap<number, { readonly event: Granted }>,
): string[] {
  const newest = new Map<string, number>();
  return writes.flatMap(({ lock, token }) => {
    const before = newest.get(lock) ?? 0;
    newest.set(lock, Math.max(before, token));
    if (token < before) return [`${lock}: ${token} was accepted after ${before}`];
    if (granted.get(token)?.event.name !== lock) return [`${lock}: ${token} was accepted and never granted`];
    return [];
  });
}
