/** The namespace's limits bind every new session, wait and grant (rules C3, C11). Judged when the run hands the configurations in. */
import type { NamespaceConfig } from '../../api/config.ts';
import { KEYS_PER_GRANT_MAX } from '../../api/limits.ts';
import type { Book } from '../book/book.ts';
import type { Property } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function limits(): Property {
  return {
    name: 'limits',
    rules: 'rules C2, C3, C6, C11',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' && event.type !== 'queued' && event.type !== 'sessionOpened') return;
      const broken =
        tooManyKeys(placed, book) ??
        (book.config === undefined
          ? null
          : book.config === null
            ? 'though the namespace is gone'
            : whatIsBroken(placed, book, book.config));
      if (broken === null) return;
      report({
        message: `${event.type} ${broken}`,
        ...('name' in event ? { name: event.name } : {}),
        tokens: event.type === 'granted' ? [event.token] : [],
        shows: [placed],
      });
    },
  };
}

/** Known without any configuration. */
function tooManyKeys({ event }: PlacedEvent, book: Book): string | null {
  if (event.type !== 'granted' || !event.joined) return null;
  const keys = book.hold(event.name, event.token)?.requests.size ?? 0;
  return keys < KEYS_PER_GRANT_MAX ? null : `as key ${keys + 1} of a grant`;
}

function whatIsBroken({ event, at }: PlacedEvent, book: Book, config: NamespaceConfig): string | null {
  if (event.type === 'sessionOpened') {
    if (book.openSessions >= config.sessions)
      return `as session ${book.openSessions + 1} of ${config.sessions}`;
    const allowed = event.ttlMs >= config.ttlMsMin && event.ttlMs <= config.ttlMsMax;
    return allowed
      ? null
      : `with a TTL of ${event.ttlMs} ms, outside ${config.ttlMsMin} to ${config.ttlMsMax}`;
  }
  if (event.type !== 'granted' && event.type !== 'queued') return null;
  if (!config.modes.includes(event.mode)) return `in mode ${event.mode}, which the namespace does not allow`;
  const permits = book.permitsOf(event.name) ?? null;
  if ((event.mode === 'semaphore') !== (permits !== null)) {
    return `in mode ${event.mode}, though the name has ${permits === null ? 'no' : permits} permits`;
  }
  if (permits !== null && event.permits > permits) return `for ${event.permits} permits of ${permits}`;
  if (event.type === 'granted' && event.joined) return null;
  if (event.type === 'granted' && book.totalHolds >= config.heldLocks) {
    return `as hold ${book.totalHolds + 1} of ${config.heldLocks}`;
  }
  const session = book.sessions.get(event.session);
  const ofClient = session === undefined ? 0 : session.holds.size + session.waits.size;
  const starts = event.type === 'queued' || !event.fromQueue;
  if (starts && ofClient >= config.locksPerClient)
    return `as lock ${ofClient + 1} of ${config.locksPerClient} of one client`;
  if (event.type === 'granted') return null;
  const waiting = book.names.get(event.name)?.queue.size ?? 0;
  if (waiting >= config.maxWaitersPerName) return `as waiter ${waiting + 1} of ${config.maxWaitersPerName}`;
  if (book.totalWaits >= config.waiters)
    return `as wait ${book.totalWaits + 1} of ${config.waiters} of the namespace`;
  const waitMs = event.waitUntil - at;
  return waitMs > config.maxWaitMs ? `for ${waitMs} ms; ${config.maxWaitMs} are allowed` : null;
}
