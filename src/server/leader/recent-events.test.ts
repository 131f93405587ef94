/** The memory of what front ends may have missed. */
import { expect, test } from 'vitest';
import type { LockEvent } from '../../api/entry.ts';
import { RecentEvents } from './recent-events.ts';

const event = (session: number): LockEvent => ({ type: 'sessionEnding', session, cause: 'expired' });
const sessions = (events: Iterable<LockEvent>): number[] =>
  [...events].flatMap((one) => (one.type === 'sessionEnding' ? [one.session] : []));

test('what lies above one index, up to another, in order', () => {
  const recent = new RecentEvents();
  for (let index = 1; index <= 5; index++) recent.add(index, [event(10 * index), event(10 * index + 1)]);
  expect(sessions(recent.between(2, 4))).toEqual([30, 31, 40, 41]);
  expect(sessions(recent.between(4, 9))).toEqual([50, 51]);
  expect(sessions(recent.between(5, 9))).toEqual([]);
});

test('the oldest are forgotten first, and the size stays within its bound', () => {
  const recent = new RecentEvents(10);
  for (let index = 1; index <= 1_000; index++) recent.add(index, [event(index), event(index)]);
  expect(sessions(recent.between(0, 1_000))).toEqual([996, 996, 997, 997, 998, 998, 999, 999, 1_000, 1_000]);
  recent.add(
    1_001,
    Array.from({ length: 50 }, () => event(1)),
  );
  expect(sessions(recent.between(0, 2_000))).toEqual([]);
});

test('what only answered a request takes no room', () => {
  const recent = new RecentEvents(2);
  const granted = (fromQueue: boolean): LockEvent => ({
    ...{ type: 'granted', name: 'a', session: 3, key: 'k', token: 1, mode: 'exclusive', permits: 1 },
    ...{ owner: '', joined: false, fromQueue, waitedMs: 0 },
  });
  recent.add(1, [event(1), granted(false), granted(true)]);
  recent.add(2, [granted(false), { type: 'sessionEnding', session: 2, cause: 'closed' }]);
  expect([...recent.between(0, 2)]).toEqual([event(1), granted(true)]);
});
