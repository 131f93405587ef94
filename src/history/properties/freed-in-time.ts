/**
 * Promise 4, the other side: what has run out is over soon. A dead holder's locks are free within TTL + lock-delay + 1 s,
 * plus two TTL for each leader change, plus times without commits and pauses the run declared. Without client records the
 * same second bounds each consequence that is due: the end of an ending session, of a revoke, of a lock-delay; and permits
 * that were cut are called back at once. Holds on quarantined names are left aside meanwhile (rule C13).
 */
import type { Book } from '../book/book.ts';
import {
  type GrantBook,
  type NameBook,
  NEVER,
  type RequestBook,
  type SessionBook,
  usedPermits,
} from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

/** Promise 4's "+ 1 s". */
const LATE_MS = 1_000;
/** Promise 4's "at most two TTL for each fail-over". */
const TTLS_PER_TAKE_OVER = 2;

interface Due {
  readonly what: string;
  readonly name?: string;
  readonly tokens?: readonly number[];
  readonly since: PlacedEvent;
  /** Group time. */
  readonly due: number;
  /** Null: it has not happened at all. */
  readonly done: Done;
}

export function freedInTime(): Property {
  return {
    name: 'freed-in-time',
    rules: 'promise 4, rules C1, C2, C9, C10, S6',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type === 'sessionEnded') {
        const session = book.sessions.get(event.session);
        if (session !== undefined) judgeEnding(session, placed, book, report);
      } else if (event.type === 'revoked' && !event.unsafe) {
        const page = book.names.get(event.name);
        const hold = book.hold(event.name, event.token);
        if (page !== undefined && hold !== undefined) judgeRevoke(page, hold, placed, book, report);
      } else if (event.type === 'granted' && event.fromQueue) {
        const page = book.names.get(event.name);
        const request = book.request(event.session, event.key);
        if (page !== undefined && request !== undefined) judgeDelay(page, request, placed, book, report);
      }
    },
    onEntryEnd(book, report) {
      if (book.mayBeFull) return;
      for (const page of book.touched) judgeCut(page, book, report);
    },
    onLastSession(session, book, report) {
      judgeDeadHolder(session, book, report);
    },
    onFinish(_options, book, report) {
      judgeLeftovers(book, report);
    },
  };
}

type Done = PlacedEvent | null;

/** The holds of a session on quarantined names are left aside until they come back into service. */
function judgeEnding({ id, ending, unparkedAt }: SessionBook, done: Done, book: Book, report: Report): void {
  if (ending === null) return;
  const due = Math.max(ending.at, unparkedAt);
  judgeDue({ what: `session ${id}`, since: ending, due, done }, book, report);
}

/** Whether all that an ending session has left are holds on quarantined names. */
function isParked(session: SessionBook, book: Book): boolean {
  const names = [...session.holds].map(({ name }) => book.names.get(name));
  return session.waits.size === 0 && names.length > 0 && names.every((page) => page?.quarantined === true);
}

/** The timer of a revoke stands still while the name is quarantined. */
function judgeRevoke(page: NameBook, hold: GrantBook, done: Done, book: Book, report: Report): void {
  const { revoking: since, token } = hold;
  if (since?.event.type !== 'revoking' || page.quarantined) return;
  const due = Math.max(since.event.until, page.quarantineEndedAt);
  judgeDue({ what: `token ${token}`, name: page.name, tokens: [token], since, due, done }, book, report);
}

/** Its end serves the head, unless something else still kept it waiting: then that counts, and liveness judges the rest. */
function judgeDelay(page: NameBook, first: RequestBook, done: Done, book: Book, report: Report): void {
  const { name, delayed: since, delayedUntil, touchedAt } = page;
  if (since === null || first.queued === null) return;
  const tokens = done?.event.type === 'granted' ? [done.event.token] : [];
  const due = Math.max(delayedUntil, touchedAt, book.configuredAt);
  judgeDue({ what: 'the lock-delay', name, tokens, since, due, done }, book, report);
}

/**
 * Rule C9: what is out beyond the permits of now is called back, but for what is being called back already. Permits that were
 * too many when they were given out are no matter of a cut, and reported as such.
 */
function judgeCut(page: NameBook, book: Book, report: Report): void {
  const allowed = book.permitsOf(page.name);
  if (allowed == null || page.quarantined) return;
  const held = page.holds.filter(({ mode }) => mode === 'semaphore');
  const used = usedPermits(held, 'lasting');
  if (used <= allowed) return;
  if (held.some((grant) => grant.allowed != null && grant.used > grant.allowed)) return;
  const lasting = held.filter(({ revoking }) => revoking === null);
  report({
    message: `${used} permits are out where ${allowed} are allowed, and nobody is asked to give them back`,
    name: page.name,
    tokens: lasting.map(({ token }) => token),
    shows: lasting.map(({ granted }) => granted),
    indexes: [book.index],
  });
}

function judgeDue({ what, name, tokens = [], since, due, done }: Due, book: Book, report: Report): void {
  const reached = done?.at ?? book.at;
  if (reached <= due + LATE_MS || !book.groupGaps.knows(due)) return;
  const lateMs = reached - due - book.groupGaps.within(due, reached);
  if (lateMs <= LATE_MS) return;
  report({
    message: `${what} was due to end at ${due} and ${done ? 'ended' : 'has not ended'} by ${reached}, ${lateMs} ms late`,
    ...(name === undefined ? {} : { name }),
    tokens,
    shows: [since, done],
  });
}

function judgeLeftovers(book: Book, report: Report): void {
  for (const session of book.sessions.values()) {
    if (session.state === 'ending' && !isParked(session, book)) judgeEnding(session, null, book, report);
  }
  for (const page of book.names.values()) {
    for (const hold of page.holds) judgeRevoke(page, hold, null, book, report);
    const [first] = page.queue;
    if (first !== undefined && book.headFits(page)) judgeDelay(page, first, null, book, report);
  }
}

/**
 * Needs client records: a client that was stopped, and not resumed before the bound. Run time. Not judged when one of its
 * holds was on a quarantined name.
 */
function judgeDeadHolder(session: SessionBook, book: Book, report: Report): void {
  const stop = session.stops.at(-1);
  if (stop === undefined || session.opened === null || session.unparkedAt > -NEVER) return;
  if ([...session.holds].some(({ name }) => book.names.get(name)?.quarantined)) return;
  const silentFrom = Math.max(stop.from, session.lastSentAt);
  if (!book.runPauses.knows(silentFrom)) return;
  const holding = [...session.holds];
  const freedAt = holding.length > 0 ? NEVER : (session.lastHoldEnd?.runAt ?? -NEVER);
  const seen = Math.min(freedAt, book.runAt);
  const boundMs =
    session.ttlMs +
    LATE_MS +
    book.runPauses.within(silentFrom, seen) +
    TTLS_PER_TAKE_OVER * session.ttlMs * book.takeOversWithin(silentFrom, seen);
  if (seen <= silentFrom + boundMs || stop.to <= silentFrom + boundMs) return;
  const tokens = holding.map(({ token }) => token);
  report({
    message:
      `session ${session.id} was silent from ${silentFrom} (run time); its locks ` +
      `${holding.length > 0 ? 'are still held' : 'were freed only'} at ${seen}, allowed were ${boundMs} ms`,
    tokens,
    shows: [...holding.map(({ granted }) => granted), session.ending, session.lastHoldEnd],
  });
}
