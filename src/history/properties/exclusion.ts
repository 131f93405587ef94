/** Promise 1: the committed record never shows two holders of one exclusive name. */
import type { Property } from '../property.ts';

export function exclusion(): Property {
  return {
    name: 'exclusion',
    rules: 'promise 1, rule C2',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted') return;
      for (const held of book.names.get(event.name)?.holds ?? []) {
        if (event.mode !== 'exclusive' && held.mode !== 'exclusive') continue;
        report({
          message: `granted with token ${event.token} while token ${held.token} of session ${held.session.id} holds it`,
          name: event.name,
          tokens: [held.token, event.token],
          shows: [held.granted, placed],
        });
      }
    },
  };
}
