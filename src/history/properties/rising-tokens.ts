/**
 * Promise 2: each grant's token is greater than every earlier one, over restarts, leader changes and lineages. A re-entrant
 * acquire that joined a grant repeats the token of that grant (rule C6).
 */
import { TOKEN_MAX } from '../../api/limits.ts';
import type { Property } from '../property.ts';

/** `startsInMiddle`: a grant may be older than the record. */
export function risingTokens(startsInMiddle = false): Property {
  return {
    name: 'rising-tokens',
    rules: 'promise 2, rules C6, C12',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type === 'tookOver' && event.token < book.highestToken) {
        report({
          message: `the take-over of epoch ${event.epoch} set the counter to ${event.token}, below ${book.highestToken}`,
          tokens: [book.highestToken, event.token],
          shows: [book.highestTokenBy, placed],
        });
      }
      if (event.type !== 'granted') return;
      if (event.joined) {
        if (book.hold(event.name, event.token) !== undefined) return;
        const before = book.memory.granted(event.token);
        if (before === undefined && startsInMiddle) return;
        report({
          message: `joined with token ${event.token}, which nobody holds`,
          name: event.name,
          tokens: [event.token],
          shows: [before?.ended ?? before?.granted, placed],
        });
      } else if (!Number.isInteger(event.token) || event.token < 1 || event.token > TOKEN_MAX) {
        report({
          message: `token ${event.token} is not a whole number from 1 to 2^53 - 1`,
          name: event.name,
          tokens: [event.token],
          shows: [placed],
        });
      } else if (event.token <= book.highestToken) {
        const sameName = book.memory.lastGrant(event.name);
        const broken = sameName !== undefined && sameName.token >= event.token;
        const before = broken ? sameName.token : book.highestToken;
        report({
          message: `token ${event.token} after ${before}${broken ? ' of the same name' : ''}`,
          name: event.name,
          tokens: [before, event.token],
          shows: [broken ? sameName.granted : book.highestTokenBy, placed],
        });
      }
    },
  };
}
