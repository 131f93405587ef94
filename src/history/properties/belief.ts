/**
 * Promise 5: no client believes that it holds a name at a moment when the next grant of it was already given, nor
 * before its own grant, nor after it was told that the grant is lost. The moment of a grant is that of its entry, in run time.
 */
import type { RequestBook } from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function belief(): Property {
  return {
    name: 'belief',
    rules: 'promise 5, rules A1, S2',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted') return;
      const before = book.memory.lastGrant(event.name);
      if (before !== undefined && before.token !== event.token) judge(before, placed, event.token, report);
    },
    onClient(record, { request }, report) {
      if (request === null || (record.type !== 'heldInterval' && record.type !== 'lost')) return;
      if (record.type === 'heldInterval' && request.granted !== null && record.from < request.granted.runAt) {
        report({
          message: `session ${record.session} believed from ${record.from} that it holds, the grant came at ${request.granted.runAt}`,
          name: record.name,
          tokens: [record.token],
          shows: [request.granted],
        });
      }
      if (request.believedUntil > request.lostAt) {
        report({
          message: `session ${record.session} believed until ${request.believedUntil} that it holds, though told lost at ${request.lostAt}`,
          name: record.name,
          tokens: [record.token],
          shows: [request.granted],
        });
      }
      const { successor } = request;
      if (record.type === 'heldInterval' && successor?.granted != null) {
        judge(request, successor.granted, successor.token, report);
      }
    },
  };
}

function judge(request: RequestBook, next: PlacedEvent, token: number, report: Report): void {
  if (request.believedUntil <= next.runAt || token < request.token) return;
  report({
    message:
      `session ${request.session.id} believed until ${request.believedUntil} that it holds with token ${request.token}, ` +
      `token ${token} was granted at ${next.runAt} (run time)`,
    name: request.name,
    tokens: [request.token, token],
    shows: [request.granted, next],
  });
}
