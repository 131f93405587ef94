/**
 * Promise 1 and rule C2: an exclusive name has one holder, readers share with readers only, and a semaphore never has more
 * permits out than its name has in the configuration in force at the grant. One request alone that asks for too much is a
 * matter of limits.
 */
import type { Book } from '../book/book.ts';
import { areCompatible, usedPermits } from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function exclusion(): Property {
  return {
    name: 'exclusion',
    rules: 'promise 1, rule C2',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' || event.joined) return;
      const holds = book.names.get(event.name)?.holds ?? [];
      for (const held of holds) {
        if (areCompatible(event.mode, held.mode)) continue;
        report({
          message:
            `granted (${event.mode}) with token ${event.token} while token ${held.token} of session ` +
            `${held.session.id} holds it (${held.mode})`,
          name: event.name,
          tokens: [held.token, event.token],
          shows: [held.granted, placed],
        });
      }
      if (event.mode === 'semaphore') judgePermits(placed, book, report);
    },
  };
}

function judgePermits(placed: PlacedEvent, book: Book, report: Report): void {
  const { event } = placed;
  if (event.type !== 'granted') return;
  const allowed = book.permitsOf(event.name);
  if (allowed === undefined || allowed === null || event.permits > allowed) return;
  const holds = (book.names.get(event.name)?.holds ?? []).filter(({ mode }) => mode === 'semaphore');
  const used = usedPermits(holds);
  if (used + event.permits <= allowed) return;
  report({
    message: `token ${event.token} took ${event.permits} permits of ${allowed} while ${used} were out`,
    name: event.name,
    tokens: [...holds.map(({ token }) => token), event.token],
    shows: [...holds.map(({ granted }) => granted), placed],
  });
}
