/**
 * Rule C3: nothing is granted to those who cannot have it: ended, ending or unknown sessions, keys that were cancelled or
 * refused, waits that are over, names out of service; and nothing by an old leader (rule L1).
 */
import type { Book } from '../book/book.ts';
import { type RequestBook, wasCancelled } from '../book/subjects.ts';
import type { Property } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function noGhostGrants(): Property {
  return {
    name: 'no-ghost-grants',
    rules: 'rules C3, C10, A5, L1',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' && event.type !== 'queued') return;
      const ghost =
        sessionGhost(placed, book) ?? (event.type === 'granted' ? grantGhost(placed, book) : null);
      if (ghost === null) return;
      report({
        message: `${event.type} ${ghost.why}`,
        name: event.name,
        tokens: event.type === 'granted' ? [event.token] : [],
        shows: [ghost.because, placed],
      });
    },
    onClient(record, { request }, report) {
      if (record.type !== 'cancelConfirmed' || request?.granted == null) return;
      if (request.granted.runAt <= record.at) return;
      report({
        message: `key ${JSON.stringify(request.key)} was granted after its cancel was confirmed`,
        name: request.name,
        tokens: request.grant === null ? [] : [request.grant.token],
        shows: [request.granted],
      });
    },
  };
}

interface Ghost {
  readonly why: string;
  readonly because: PlacedEvent | null;
}

function sessionGhost({ event }: PlacedEvent, book: Book): Ghost | null {
  if (event.type !== 'granted' && event.type !== 'queued') return null;
  const session = book.sessions.get(event.session);
  if (session === undefined || session.state === 'unknown') {
    return { why: `to session ${event.session}, which was never opened or is forgotten`, because: null };
  }
  if (session.state !== 'alive') {
    return { why: `to session ${event.session}, which is ${session.state}`, because: session.ending };
  }
  return null;
}

function grantGhost(placed: PlacedEvent, book: Book): Ghost | null {
  const { event } = placed;
  if (event.type !== 'granted') return null;
  if (placed.epoch < book.epoch) {
    return { why: `by epoch ${placed.epoch} after epoch ${book.epoch} took over`, because: book.takeOver };
  }
  if (book.names.get(event.name)?.quarantined)
    return { why: 'though the name is quarantined', because: null };
  const request = book.request(event.session, event.key);
  return request === undefined ? null : keyGhost(request, placed);
}

function keyGhost(request: RequestBook, placed: PlacedEvent): Ghost | null {
  if (wasCancelled(request)) return { why: 'to a key that was cancelled', because: request.ended };
  if (request.state === 'ended' && request.granted === null) {
    return { why: 'to a key that was refused', because: request.ended };
  }
  if (request.cancelConfirmedAt < placed.runAt) {
    return { why: 'to a key whose cancel was confirmed before', because: null };
  }
  if (request.state === 'waiting' && placed.at >= request.waitUntil) {
    return { why: `to a wait that was over at ${request.waitUntil}`, because: request.queued };
  }
  return null;
}
