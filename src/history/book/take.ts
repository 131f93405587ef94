/** How the book takes in one event. Total: an event that cannot be true changes as much as can be made sense of. */
import type { LockEvent } from '../../api/entry.ts';
import type { PlacedEvent } from '../verdict.ts';
import type { Book } from './book.ts';
import {
  type GrantBook,
  newGrant,
  newRequest,
  newSession,
  type RequestBook,
  type SessionBook,
  usedPermits,
} from './subjects.ts';

type Of<T extends LockEvent['type']> = LockEvent & { readonly type: T };

export function takeEvent(book: Book, placed: PlacedEvent): void {
  const { event } = placed;
  book.order += 1;
  switch (event.type) {
    case 'granted':
      takeGrant(book, placed, event);
      break;
    case 'queued':
      takeQueued(book, placed, event);
      break;
    case 'refused':
      takeEndOfRequest(book, placed, event);
      break;
    case 'cancelled':
      if (event.token === 0) takeEndOfRequest(book, placed, event);
      else takeEndOfHold(book, placed, event);
      break;
    case 'released':
    case 'expired':
    case 'revoked':
      takeEndOfHold(book, placed, event);
      break;
    case 'revoking':
    case 'broken':
      takeForcedEnd(book, placed, event);
      break;
    case 'delayed':
      book.setDelay(book.page(event.name), placed, event.until);
      break;
    case 'sessionOpened':
      takeOpened(book, placed, event);
      break;
    case 'sessionEnding':
      takeEnding(book, placed, event);
      break;
    case 'sessionEnded':
      takeEnded(book, event);
      break;
    case 'tookOver':
      book.addTakeOver(placed);
      book.raiseTokens(event.token, placed);
      break;
    case 'configured':
      book.configure(event.version);
      break;
    case 'quarantined':
    case 'unquarantined':
      takeQuarantine(book, placed, event);
      break;
    case 'fencingRejected':
      break;
  }
}

/** The session an event names; one that was never opened gets an empty page, so that its events can be followed. */
function sessionOf(book: Book, id: number): SessionBook {
  let session = book.sessions.get(id);
  if (session === undefined) {
    session = newSession(book.lineage, id);
    book.sessions.set(id, session);
    book.memory.addEndedSession(session);
  }
  return session;
}

/** The request an event starts: a key that was used before begins a new page. */
function startRequest(
  book: Book,
  event: { readonly session: number; readonly key: string; readonly name: string },
  goesOn: RequestBook['state'],
): RequestBook {
  const session = sessionOf(book, event.session);
  const known = session.requests.get(event.key);
  if (known !== undefined && (known.state === 'unseen' || known.state === goesOn)) {
    known.name = event.name;
    return known;
  }
  const request = newRequest(session, event.key, event.name);
  if (known !== undefined) request.cancelConfirmedAt = known.cancelConfirmedAt;
  session.requests.set(event.key, request);
  return request;
}

function takeGrant(book: Book, placed: PlacedEvent, event: Of<'granted'>): void {
  const request = startRequest(book, event, 'waiting');
  leaveQueue(book, request);
  const page = book.page(event.name);
  if (page.delayed !== null && page.delayedUntil <= placed.at) {
    page.delayed = null;
    page.timerIndex = book.index;
  }
  const joined = event.joined ? book.hold(event.name, event.token) : undefined;
  const grant = joined ?? startGrant(book, placed, event, request.session);
  request.state = 'held';
  request.mode = event.mode;
  request.permits = event.permits;
  request.grant = grant;
  request.granted = placed;
  grant.requests.add(request);
  grant.keys.add(request.key);
}

function startGrant(book: Book, placed: PlacedEvent, event: Of<'granted'>, session: SessionBook): GrantBook {
  const page = book.page(event.name);
  const { name, token, mode, permits, owner } = event;
  const used = usedPermits(page.holds) + permits;
  const allowed = book.permitsOf(name);
  const { order } = book;
  const grant = newGrant({
    session,
    name,
    token,
    mode,
    permits,
    owner,
    granted: placed,
    used,
    allowed,
    order,
  });
  for (const before of book.believersAt(name, placed.runAt)) grant.believers.add(before);
  page.holds.push(grant);
  session.holds.add(grant);
  book.totalHolds += 1;
  book.memory.addGrant(grant);
  book.raiseTokens(token, placed);
  return grant;
}

function takeQueued(book: Book, placed: PlacedEvent, event: Of<'queued'>): void {
  const request = startRequest(book, event, 'unseen');
  request.state = 'waiting';
  request.mode = event.mode;
  request.permits = event.permits;
  request.queued = placed;
  request.waitUntil = event.waitUntil;
  book.page(event.name).queue.add(request);
  request.session.waits.add(request);
  book.totalWaits += 1;
}

function leaveQueue(book: Book, request: RequestBook): void {
  if (!request.session.waits.delete(request)) return;
  book.totalWaits -= 1;
  const page = book.page(request.name);
  page.queue.delete(request);
  book.dropIfNothingRemains(page);
}

/** A refusal, or the end of a wait. One of a held or ended key is kept out of the book: its hold goes on. */
function takeEndOfRequest(book: Book, placed: PlacedEvent, event: Of<'refused'> | Of<'cancelled'>): void {
  const known = book.request(event.session, event.key);
  if (known?.state === 'held' || known?.state === 'ended') return;
  const request = startRequest(book, event, 'waiting');
  const page = book.names.get(event.name);
  if (page !== undefined && event.type === 'refused' && event.code === 'WAIT_TIMEOUT') {
    page.timerIndex = book.index;
  }
  leaveQueue(book, request);
  request.state = 'ended';
  request.ended = placed;
  book.memory.addEndedRequest(request);
}

/** The whole grant ends, or one key of it: then the others go on holding it (rule C6). */
function takeEndOfHold(
  book: Book,
  placed: PlacedEvent,
  event: Of<'released'> | Of<'expired'> | Of<'revoked'> | Of<'cancelled'>,
): void {
  const grant = book.hold(event.name, event.token);
  if (grant === undefined) return;
  const page = book.page(event.name);
  const goesOn = 'remaining' in event && event.remaining > 0;
  for (const request of [...grant.requests]) {
    if (goesOn && request.key !== event.key) continue;
    grant.requests.delete(request);
    request.state = 'ended';
    request.ended = placed;
    book.memory.addEndedRequest(request);
  }
  if (goesOn) return;
  page.holds.splice(page.holds.indexOf(grant), 1);
  const { session } = grant;
  session.holds.delete(grant);
  session.lastHoldEnd = placed;
  if (page.quarantined) session.unparkedAt = placed.at;
  if (event.type === 'revoked' && !event.unsafe) page.timerIndex = book.index;
  book.totalHolds -= 1;
  grant.ended = placed;
  grant.endedOrder = book.order;
  book.memory.addEndedGrant(grant);
  book.dropIfNothingRemains(page);
}

function takeForcedEnd(book: Book, placed: PlacedEvent, event: Of<'revoking'> | Of<'broken'>): void {
  const grant = book.hold(event.name, event.token);
  if (grant === undefined) return;
  book.page(event.name);
  if (event.type === 'revoking') grant.revoking ??= placed;
  else if (event.now) grant.brokenNow = placed;
}

function takeOpened(book: Book, placed: PlacedEvent, event: Of<'sessionOpened'>): void {
  const session = sessionOf(book, event.session);
  if (session.state !== 'alive' && session.state !== 'ending') book.openSessions += 1;
  session.state = 'alive';
  session.ttlMs = event.ttlMs;
  session.opened = placed;
  book.highestSession = Math.max(book.highestSession, event.session);
}

function takeEnding(book: Book, placed: PlacedEvent, event: Of<'sessionEnding'>): void {
  const session = sessionOf(book, event.session);
  if (session.state !== 'alive') return;
  session.state = 'ending';
  session.cause = event.cause;
  session.ending = placed;
}

function takeEnded(book: Book, event: Of<'sessionEnded'>): void {
  const session = book.sessions.get(event.session);
  if (session === undefined || session.state === 'unknown' || session.state === 'ended') return;
  session.state = 'ended';
  book.openSessions -= 1;
  book.memory.addEndedSession(session);
}

function takeQuarantine(
  book: Book,
  placed: PlacedEvent,
  event: Of<'quarantined'> | Of<'unquarantined'>,
): void {
  const page = book.page(event.name);
  page.quarantined = event.type === 'quarantined';
  if (page.quarantined) page.delayed = null;
  else {
    page.quarantineEndedAt = placed.at;
    for (const { session } of page.holds) session.unparkedAt = placed.at;
  }
  book.dropIfNothingRemains(page);
}
