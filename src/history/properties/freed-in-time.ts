/**
 * Promise 4, the other side: what has run out is over soon. A dead holder's locks are free within TTL + lock-delay + 1 s,
 * plus two TTL for each leader change, plus times without commits and pauses the run declared. Without client records the
 * same second bounds each consequence that is due: the end of an ending session, of a revoke, of a lock-delay.
 */
import type { Book } from '../book/book.ts';
import { type NameBook, NEVER, type RequestBook, type SessionBook } from '../book/subjects.ts';
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
    rules: 'promise 4, rules C1, C9, C10, S6',
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
    onLastSession(session, book, report) {
      judgeDeadHolder(session, book, report);
    },
    onFinish(_options, book, report) {
      judgeLeftovers(book, report);
    },
  };
}

type Done = PlacedEvent | null;

function judgeEnding({ id, ending }: SessionBook, done: Done, book: Book, report: Report): void {
  if (ending !== null) judgeDue({ what: `session ${id}`, since: ending, due: ending.at, done }, book, report);
}

/** The timer of a revoke stands still while the name is quarantined. */
function judgeRevoke(page: NameBook, hold: RequestBook, done: Done, book: Book, report: Report): void {
  const { revoking: since, token } = hold;
  if (since?.event.type !== 'revoking' || page.quarantined) return;
  const due = Math.max(since.event.until, page.quarantineEndedAt);
  judgeDue({ what: `token ${token}`, name: page.name, tokens: [token], since, due, done }, book, report);
}

function judgeDelay(page: NameBook, first: RequestBook, done: Done, book: Book, report: Report): void {
  const { name, delayed: since, delayedUntil } = page;
  if (since === null || first.queued === null) return;
  const tokens = done?.event.type === 'granted' ? [done.event.token] : [];
  const due = Math.max(delayedUntil, first.queued.at);
  judgeDue({ what: 'the lock-delay', name, tokens, since, due, done }, book, report);
}

function judgeDue({ what, name, tokens = [], since, due, done }: Due, book: Book, report: Report): void {
  const reached = done?.at ?? book.at;
  if (reached <= due + LATE_MS) return;
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
    if (session.state === 'ending') judgeEnding(session, null, book, report);
  }
  for (const page of book.names.values()) {
    for (const hold of page.holds) judgeRevoke(page, hold, null, book, report);
    const [first] = page.queue;
    if (page.holds.length === 0 && first !== undefined) judgeDelay(page, first, null, book, report);
  }
}

/** Needs client records: a client that was stopped, and not resumed before the bound. Run time. */
function judgeDeadHolder(session: SessionBook, book: Book, report: Report): void {
  const stop = session.stops.at(-1);
  if (stop === undefined || session.opened === null) return;
  const silentFrom = Math.max(stop.from, session.lastSentAt);
  const holding = [...session.holds];
  const freedAt = holding.length > 0 ? NEVER : (session.lastHoldEnd?.runAt ?? -NEVER);
  const seen = Math.min(freedAt, book.runAt);
  const boundMs =
    session.ttlMs +
    LATE_MS +
    book.runPauses.within(silentFrom, seen) +
    TTLS_PER_TAKE_OVER * session.ttlMs * book.takeOversWithin(silentFrom, seen);
  if (seen <= silentFrom + boundMs || stop.to <= silentFrom + boundMs) return;
  const tokens = holding.map((request) => request.token);
  report({
    message:
      `session ${session.id} was silent from ${silentFrom} (run time); its locks ` +
      `${holding.length > 0 ? 'are still held' : 'were freed only'} at ${seen}, allowed were ${boundMs} ms`,
    tokens,
    shows: [...holding.map((request) => request.granted), session.ending, session.lastHoldEnd],
  });
}
