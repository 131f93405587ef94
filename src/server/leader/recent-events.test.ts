/** The memory of what front ends may have missed. */
import { expect, test } from 'vitest';
import type { LockEvent } from '../../api/entry.ts';
import { RecentEvents } from './recent-events.ts';

const event = (session: number): LockEvent => ({ type: 'sessionEnded', session });
const sessions = (events: Iterable<LockEvent>): number[] =>
  [...events].flatMap((one) => (one.type === 'sessionEnded' ? [one.session] : []));

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
