/**
 * Nobody waits for ever: a waiter that can be granted is granted in the same entry, or in the next that has budget left (case
 * B15, rule C1), a wait ends within a second of its limit, and when everything has come to rest no wait is left. "Gone" clients leave nothing behind (cases I04, G14).
 */
import type { Book } from '../book/book.ts';
import type { NameBook, RequestBook } from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

const LATE_MS = 1_000;

export function liveness(): Property {
  return {
    name: 'liveness',
    rules: 'promise 3, rules C1, C3, S11',
    onEvent(placed, book, report) {
      const { event } = placed;
      const endsWait =
        (event.type === 'refused' && event.fromQueue) || (event.type === 'cancelled' && event.token === 0);
      if (!endsWait || !('key' in event)) return;
      const request = book.request(event.session, event.key);
      if (request?.state === 'waiting') judgeWait(request, placed, book, report);
    },
    onEntryEnd(book, report) {
      for (const page of book.touched) judgePage(page, book, report);
    },
    onFinish({ quiet = false, clientsGone = false }, book, report) {
      for (const page of book.names.values()) {
        for (const request of page.queue) {
          if (quiet || clientsGone)
            reportWaiter(request, 'everything is at rest, and it still waits', report);
          else judgeWait(request, null, book, report);
        }
      }
      if (clientsGone) judgeLeftovers(book, report);
    },
  };
}

function reportWaiter(
  request: RequestBook,
  why: string,
  report: Report,
  done: PlacedEvent | null = null,
): void {
  report({
    message: `key ${JSON.stringify(request.key)} of session ${request.session.id}: ${why}`,
    name: request.name,
    shows: [request.queued, done],
  });
}

function judgePage(page: NameBook, book: Book, report: Report): void {
  const [first] = page.queue;
  if (first === undefined) return;
  if (page.quarantined) reportWaiter(first, 'it waits for a quarantined name', report);
  else if (!book.mayBeFull && page.timerIndex !== book.index && book.headFits(page)) {
    const why = page.holds.length === 0 ? 'the name is free' : 'it fits beside those who hold the name';
    reportWaiter(first, `it waits though ${why}`, report);
  }
}

function judgeWait(request: RequestBook, done: PlacedEvent | null, book: Book, report: Report): void {
  const reached = done?.at ?? book.at;
  const due = request.waitUntil;
  if (reached <= due + LATE_MS) return;
  if (reached - due - book.groupGaps.within(due, reached) <= LATE_MS) return;
  reportWaiter(request, `its wait was over at ${due}, at ${reached} it had not been told`, report, done);
}

function judgeLeftovers(book: Book, report: Report): void {
  for (const { name, holds } of book.names.values()) {
    for (const { token, granted } of holds) {
      report({
        message: 'all clients are gone, the name is still held',
        name,
        tokens: [token],
        shows: [granted],
      });
    }
  }
  for (const session of book.sessions.values()) {
    if (session.state !== 'alive' && session.state !== 'ending') continue;
    const message = `all clients are gone, session ${session.id} is still ${session.state}`;
    report({ message, shows: [session.opened, session.ending] });
  }
}
