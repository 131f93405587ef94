/**
 * Events fit together: what ends had begun, what is counted counts right, nothing is left when a session is over (rules C5, C10, C16).
 */
import type { Book } from '../book/book.ts';
import type { Property } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';
import { type Misfit, misfitOfGrantEnd } from './bookkeeping-ends.ts';

export function bookkeeping(): Property {
  return {
    name: 'bookkeeping',
    rules: 'rules C5, C9, C10, C11, C16',
    onEvent(placed, book, report) {
      const { event } = placed;
      const misfit = misfitOf(placed, book);
      if (misfit === null) return;
      report({
        message: `${event.type}: ${misfit.why}`,
        ...('name' in event ? { name: event.name } : {}),
        tokens: 'token' in event && event.token > 0 ? [event.token] : [],
        shows: [misfit.because, placed],
      });
    },
  };
}

function misfitOf(placed: PlacedEvent, book: Book): Misfit | null {
  const { event } = placed;
  switch (event.type) {
    case 'granted':
    case 'queued':
    case 'refused':
      return misfitOfRequest(placed, book);
    case 'cancelled':
      return event.token === 0 ? misfitOfRequest(placed, book) : misfitOfGrantEnd(placed, book);
    case 'released':
    case 'expired':
    case 'revoking':
    case 'revoked':
    case 'broken':
      return misfitOfGrantEnd(placed, book);
    case 'delayed':
      return misfitOfDelay(event.name, event.until, book);
    case 'sessionOpened':
    case 'sessionEnding':
    case 'sessionEnded':
      return misfitOfSession(placed, book);
    case 'fencingRejected':
      // Session 0: reported by somebody who has none.
      return event.session === 0 ? null : misfitOfSession(placed, book);
    case 'configured':
      return event.version > book.version ? null : { why: `version ${event.version} after ${book.version}` };
    case 'quarantined':
      return book.names.get(event.name)?.quarantined ? { why: 'the name is quarantined already' } : null;
    case 'unquarantined':
      return book.names.get(event.name)?.quarantined ? null : { why: 'the name is not quarantined' };
    case 'tookOver':
      return null;
  }
}

/** A lock-delay may run beside other holders of a shared name; one that runs is only ever made longer. */
function misfitOfDelay(name: string, until: number, book: Book): Misfit | null {
  const page = book.names.get(name);
  const hold = page?.holds.find(({ mode }) => mode === 'exclusive');
  if (hold !== undefined) return { why: 'the name is held', because: hold.granted };
  if (page?.delayed == null || !book.isDelayed(page) || page.delayedUntil < until) return null;
  return { why: `the name is delayed already, until ${page.delayedUntil}`, because: page.delayed };
}

/** Keys that were used before are left to exactly-once-per-key, sessions that cannot have anything to no-ghost-grants. */
function misfitOfRequest(placed: PlacedEvent, book: Book): Misfit | null {
  const { event, at } = placed;
  if (
    event.type !== 'granted' &&
    event.type !== 'queued' &&
    event.type !== 'refused' &&
    event.type !== 'cancelled'
  ) {
    return null;
  }
  const request = book.request(event.session, event.key);
  if (event.type === 'queued') {
    const position = (book.names.get(event.name)?.queue.size ?? 0) + 1;
    return event.position === position
      ? null
      : { why: `position ${event.position}, the queue says ${position}` };
  }
  const fromQueue = event.type === 'cancelled' || event.fromQueue;
  if (request === undefined || request.state === 'unseen') {
    return fromQueue ? { why: 'the key does not wait' } : null;
  }
  if (request.state !== 'waiting') return null;
  const { queued } = request;
  if (request.name !== event.name) return { why: 'the key waits for another name', because: queued };
  if (event.type !== 'granted') return null;
  if (!event.fromQueue) return { why: 'the key waits, but the grant is not from the queue', because: queued };
  const waitedMs = at - (queued?.at ?? at);
  return event.waitedMs === waitedMs
    ? null
    : { why: `waited ${waitedMs} ms, not ${event.waitedMs}`, because: queued };
}

function misfitOfSession({ event }: PlacedEvent, book: Book): Misfit | null {
  if (!('session' in event)) return null;
  const session = book.sessions.get(event.session);
  if (event.type === 'sessionOpened') {
    if (event.session > book.highestSession) return null;
    return { why: `session ${event.session} is not a new number`, because: session?.opened };
  }
  if (session === undefined || session.state === 'unknown')
    return { why: `session ${event.session} is unknown` };
  if (event.type === 'sessionEnding' || event.type === 'fencingRejected') {
    const ended = { why: `session ${event.session} is ${session.state}`, because: session.ending };
    return session.state === 'alive' ? null : ended;
  }
  if (session.state !== 'ending') return { why: `session ${event.session} is ${session.state}, not ending` };
  const [hold] = session.holds;
  if (hold !== undefined) return { why: `token ${hold.token} is still held`, because: hold.granted };
  const [wait] = session.waits;
  return wait === undefined ? null : { why: 'a key of it still waits', because: wait.queued };
}
