/** Rule L5: what is done at which share of the quota. */
import { expect, test } from 'vitest';
import type { MemberStatus } from '../../log/etcd/client.ts';
import { membersToDefragment } from '../../log/etcd/space.ts';
import type { LogSpace } from '../../log/port.ts';
import { planSpace } from './space.ts';

const at = (used: number, file = used, isFull = false): LogSpace => ({
  quotaBytes: 1_000,
  usedBytes: used,
  fileBytes: file,
  isFull,
  answering: 1,
  corrupt: [],
});

test.each([
  ['plenty of room', at(699), 500, { refusesAcquires: false, snapshot: false, reclaim: false }],
  ['70 % in use', at(700), 500, { refusesAcquires: false, snapshot: true, reclaim: true }],
  ['70 %, but hardly any log', at(700), 49, { refusesAcquires: false, snapshot: false, reclaim: true }],
  ['85 % in use', at(850), 500, { refusesAcquires: true, snapshot: true, reclaim: true }],
  [
    'a large file, mostly free',
    at(300, 940),
    500,
    { refusesAcquires: false, snapshot: false, reclaim: true },
  ],
  [
    'a file that reaches the quota',
    at(300, 950),
    500,
    { refusesAcquires: true, snapshot: false, reclaim: true },
  ],
  ['an alarm', at(300, 400, true), 500, { refusesAcquires: true, snapshot: false, reclaim: true }],
])('%s', (_what, space, logBytes, plan) => {
  expect(planSpace(space, logBytes)).toEqual(plan);
});

const member = (number: number, differs: Partial<MemberStatus> = {}): MemberStatus => ({
  ...{ number, id: String(number), endpoint: `http://m${number}`, version: '3.6.16', revision: 7 },
  ...{ isLeader: false, fileBytes: 100, usedBytes: 100, isFull: false, corrupt: [] },
  ...differs,
});

test('members with scattered space are defragmented, their leader last', () => {
  const scattered = { fileBytes: 850, usedBytes: 500 };
  const members = [
    member(0, { ...scattered, isLeader: true }),
    member(1, scattered),
    member(2),
    member(3, { fileBytes: 850, usedBytes: 700 }),
  ];
  expect(membersToDefragment(members, 1_000).map(({ number }) => number)).toEqual([1, 0]);
});

test('after an alarm every member with free pages is', () => {
  const full = { isFull: true, fileBytes: 400 };
  expect(membersToDefragment([member(0, { ...full, usedBytes: 390 })], 1_000)).toHaveLength(1);
  expect(membersToDefragment([member(0, { ...full, usedBytes: 400 })], 1_000)).toEqual([]);
});
