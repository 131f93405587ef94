/**
 * Promise 3: waiters of one name are granted in the order their requests were committed, and nobody passes them: no reader a
 * waiting writer, no small request a big one for the same semaphore. Who joins a grant of its own passes nobody (rule C6).
 */
import type { Property } from '../property.ts';

export function fifo(): Property {
  return {
    name: 'fifo',
    rules: 'promise 3, rule C2',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' || (event.joined && !event.fromQueue)) return;
      const queue = book.names.get(event.name)?.queue;
      const request = book.request(event.session, event.key);
      if (queue === undefined) return;
      const [first] = queue;
      if (first === undefined || first === request) return;
      const waits = request !== undefined && queue.has(request);
      // A grant from the queue to a key that does not wait is bookkeeping's to report.
      if (event.fromQueue && !waits) return;
      report({
        message: event.fromQueue
          ? `token ${event.token} went to session ${event.session}, though session ${first.session.id} was queued before it`
          : `token ${event.token} was granted at once, though session ${first.session.id} waits`,
        name: event.name,
        tokens: [event.token],
        shows: [first.queued, waits ? request.queued : null, placed],
      });
    },
  };
}
