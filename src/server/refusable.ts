/** What front end and leader may both refuse. */
import type { Command } from '../api/entry.ts';
import type { ReadQuery } from '../api/wire.ts';

/** Everything but what gives something back or keeps it: only that may be refused because there is too much (rule S9). */
export function isRefusable({ type }: Command | ReadQuery): boolean {
  return type === 'acquire' || type === 'openSession' || type === 'getLock' || type === 'listLocks';
}
