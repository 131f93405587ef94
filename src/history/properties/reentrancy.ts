/**
 * Rule C6: an acquire joins a grant of its own session only, asked for in the same way, that is not being taken away; and it
 * is one key more for that grant. That the grant itself was asked for as re-entrant is not in the record.
 */
import type { GrantBook } from '../book/subjects.ts';
import type { Property } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function reentrancy(): Property {
  return {
    name: 'reentrancy',
    rules: 'rule C6',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' || !event.joined) return;
      const hold = book.hold(event.name, event.token);
      // A token that nobody holds is reported by rising-tokens.
      const why = hold === undefined ? null : whyNot(hold, placed);
      if (hold === undefined || why === null) return;
      report({
        message: `key ${JSON.stringify(event.key)} joined token ${event.token}, ${why.why}`,
        name: event.name,
        tokens: [event.token],
        shows: [hold.granted, why.because, placed],
      });
    },
  };
}

function whyNot(
  hold: GrantBook,
  { event }: PlacedEvent,
): { readonly why: string; readonly because: PlacedEvent | null } | null {
  if (event.type !== 'granted') return null;
  if (hold.session.id !== event.session)
    return { why: `which is session ${hold.session.id}'s`, because: null };
  if (hold.owner !== event.owner) return { why: 'which has another owner', because: null };
  if (hold.mode !== event.mode || hold.permits !== event.permits) {
    return { why: 'which has another mode or other permits', because: null };
  }
  return hold.revoking === null ? null : { why: 'which is being revoked', because: hold.revoking };
}
