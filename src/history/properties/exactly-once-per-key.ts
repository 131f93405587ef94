/**
 * Rules C4, C5: (session, key) stands for one acquire. It is queued at most once, granted at most once, and ends once,
 * however often the request was sent. A client uses a key for one acquire only; a second life of a key is a repeat that ran twice.
 */
import type { RequestBook } from '../book/subjects.ts';
import { wasCancelled } from '../book/subjects.ts';
import type { Property } from '../property.ts';

export function exactlyOncePerKey(): Property {
  return {
    name: 'exactly-once-per-key',
    rules: 'rules C4, C5',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (
        event.type !== 'granted' &&
        event.type !== 'queued' &&
        event.type !== 'refused' &&
        event.type !== 'cancelled'
      ) {
        return;
      }
      const request = book.request(event.session, event.key);
      if (request === undefined || request.state === 'unseen') return;
      const again = whatAgain(
        request,
        event.type,
        'fromQueue' in event && event.fromQueue,
        'token' in event ? event.token : 0,
      );
      if (again === null) return;
      const first =
        event.type === 'granted' ? request.granted : (request.ended ?? request.granted ?? request.queued);
      report({
        message: `key ${JSON.stringify(event.key)} of session ${event.session} ${again}`,
        name: event.name,
        tokens: [request.grant?.token ?? 0, 'token' in event ? event.token : 0].filter((token) => token > 0),
        shows: [first, placed],
      });
    },
  };
}

function whatAgain(
  request: RequestBook,
  type: 'granted' | 'queued' | 'refused' | 'cancelled',
  fromQueue: boolean,
  token: number,
): string | null {
  switch (type) {
    case 'granted':
      // Grants to keys that were cancelled or refused are ghosts, and reported as such.
      return request.granted !== null && !wasCancelled(request) ? 'was granted twice' : null;
    case 'queued':
      return 'was queued though it had been used before';
    case 'refused':
      if (request.state === 'waiting') return fromQueue ? null : 'was refused as if it did not wait';
      return `was refused after it had ${request.state === 'held' ? 'been granted' : 'ended'}`;
    case 'cancelled':
      return token === 0 && request.state !== 'waiting'
        ? 'was cancelled as a wait after the wait had ended'
        : null;
  }
}
