/**
 * Rule C8: after an unclean end the name rests for the lock-delay, after a clean one it does not.
 * Unclean: `expired`, `revoked` that was not broken at once, and any end of a grant that is being revoked. A quarantined name
 * takes no lock-delay: nobody can be granted it anyway. It rests although others hold it too (shared, semaphore): nobody new
 * comes in, but an acquire may join a grant of its own session. A delay that runs and ends no earlier is enough.
 */
import type { Book } from '../book/book.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

interface End {
  readonly placed: PlacedEvent;
  readonly unclean: boolean;
  readonly tokens: readonly number[];
  settled: boolean;
}

export function lockDelay(): Property {
  /** The last end of a hold of each name in this entry. */
  const ends = new Map<string, End>();
  return {
    name: 'lock-delay',
    rules: 'rule C8',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type === 'delayed') return judgeDelay(placed, ends.get(event.name), book, report);
      if (event.type === 'granted') return judgeGrant(placed, ends.get(event.name), book, report);
      const token = endedToken(placed);
      if (token === 0 || !('name' in event)) return;
      const quarantined = book.names.get(event.name)?.quarantined ?? false;
      const unclean = isUnclean(placed, book) && !quarantined;
      const page = book.names.get(event.name);
      const until = placed.at + (book.lockDelayMs ?? 0);
      const runs = page !== undefined && book.isDelayed(page) && page.delayedUntil >= until;
      const owed = unclean && (book.lockDelayMs ?? 0) > 0 && !runs;
      reportOwed(ends.get(event.name), event.name, report);
      ends.set(event.name, { placed, unclean, tokens: [token], settled: !owed });
    },
    onEntryEnd(_book, report) {
      for (const [name, end] of ends) reportOwed(end, name, report);
      ends.clear();
    },
  };
}

function reportOwed(end: End | undefined, name: string, report: Report): void {
  if (end === undefined || end.settled) return;
  report({
    message: 'an unclean end without the lock-delay that must follow',
    name,
    tokens: end.tokens,
    shows: [end.placed],
  });
}

/** Token of the hold that the event ends; 0: it ends none. */
function endedToken({ event }: PlacedEvent): number {
  if (event.type === 'expired' || event.type === 'revoked') return event.token;
  const ends = (event.type === 'released' || event.type === 'cancelled') && event.remaining === 0;
  return ends ? event.token : 0;
}

function isUnclean({ event }: PlacedEvent, book: Book): boolean {
  if (event.type === 'expired') return true;
  if (event.type === 'revoked') return !event.unsafe;
  if (event.type !== 'released' && event.type !== 'cancelled') return false;
  return book.hold(event.name, event.token)?.revoking != null;
}

function judgeDelay(placed: PlacedEvent, end: End | undefined, book: Book, report: Report): void {
  const { event } = placed;
  if (event.type !== 'delayed') return;
  const { lockDelayMs } = book;
  if (end === undefined || !end.unclean) {
    report({
      message:
        end === undefined ? 'a lock-delay that no end of a hold asked for' : 'a lock-delay after a clean end',
      name: event.name,
      tokens: end?.tokens ?? [],
      shows: [end?.placed, placed],
    });
    return;
  }
  end.settled = true;
  if (lockDelayMs === undefined || (lockDelayMs > 0 && event.until === placed.at + lockDelayMs)) return;
  report({
    message: `a lock-delay of ${event.until - placed.at} ms where the namespace says ${lockDelayMs} ms`,
    name: event.name,
    tokens: end.tokens,
    shows: [end.placed, placed],
  });
}

function judgeGrant(placed: PlacedEvent, end: End | undefined, book: Book, report: Report): void {
  const { event } = placed;
  if (event.type !== 'granted' || (event.joined && !event.fromQueue)) return;
  const page = book.names.get(event.name);
  if (page?.delayed && placed.at < page.delayedUntil) {
    report({
      message: `token ${event.token} was granted at ${placed.at}, before the lock-delay ended at ${page.delayedUntil}`,
      name: event.name,
      tokens: [event.token],
      shows: [page.delayed, placed],
    });
  } else if (end !== undefined && !end.settled) {
    end.settled = true;
    report({
      message: `token ${event.token} was granted straight after an unclean end`,
      name: event.name,
      tokens: [...end.tokens, event.token],
      shows: [end.placed, placed],
    });
  }
}
