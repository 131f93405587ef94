/** Figures read off the committed history. */
import { expect, test } from 'vitest';
import type { LockEvent } from '../../api/entry.ts';
import type { ServerMetrics } from '../../platform/metrics.ts';
import { Metering } from './metering.ts';

function recorder() {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...args: readonly unknown[]): void =>
      void calls.push([name, ...args]);
  const metrics: ServerMetrics = {
    granted: note('granted'),
    held: note('held'),
    refused: note('refused'),
    sessionExpired: note('sessionExpired'),
    fencingRejected: note('fencingRejected'),
    committed: note('committed'),
    stalled: note('stalled'),
    leaderChanged: note('leaderChanged'),
    markShown: note('markShown'),
    halted: note('halted'),
    observe: () => () => undefined,
    observeSpace: () => () => undefined,
  };
  return { calls, metering: new Metering(metrics) };
}

const grant = {
  name: 'a',
  session: 1,
  key: 'k',
  mode: 'exclusive',
  permits: 1,
  owner: '',
  joined: false,
  fromQueue: true,
} as const;

function at(time: number, ...events: readonly LockEvent[]) {
  return { lineage: 'l', epoch: 1, index: 1, at: time, wallMs: 0, eventHash: '', events };
}

test('a grant is counted with its wait, and its end once with how long it was held, however it ended', () => {
  const ends: LockEvent[] = [
    { type: 'released', name: 'a', session: 1, token: 1, cause: 'release', key: 'k', remaining: 0 },
    { type: 'expired', name: 'a', session: 1, token: 2, cause: 'expired' },
    { type: 'revoked', name: 'a', session: 1, token: 3, cause: 'break', unsafe: false },
    { type: 'cancelled', name: 'a', session: 1, token: 4, key: 'k', remaining: 0 },
  ];
  const { calls, metering } = recorder();
  const stats = { commands: 1, bytes: 10, commitMs: 2, stalledMs: 0 };
  for (const [i, end] of ends.entries()) {
    metering.committed(at(1_000 * i, { type: 'granted', token: i + 1, waitedMs: 7, ...grant }), stats);
    metering.committed(at(1_000 * i + 400, end), stats);
    metering.committed(at(1_000 * i + 900, end), stats);
  }
  expect(calls.filter(([name]) => name === 'granted')).toEqual(ends.map(() => ['granted', 7]));
  expect(calls.filter(([name]) => name === 'held')).toEqual(ends.map(() => ['held', 400]));
});

test('a re-entrant grant is one hold, from its first acquire to its last release', () => {
  const { calls, metering } = recorder();
  const stats = { commands: 1, bytes: 10, commitMs: 2, stalledMs: 0 };
  const granted = { type: 'granted', token: 1, waitedMs: 7, ...grant } as const;
  const released = { type: 'released', name: 'a', session: 1, token: 1, cause: 'release' } as const;
  metering.committed(at(0, granted), stats);
  metering.committed(at(100, { ...granted, joined: true, key: 'k2' }), stats);
  metering.committed(at(200, { ...released, key: 'k', remaining: 1 }), stats);
  metering.committed(at(300, { ...released, key: 'k2', remaining: 0 }), stats);
  expect(calls.filter(([name]) => name === 'granted')).toHaveLength(2);
  expect(calls.filter(([name]) => name === 'held')).toEqual([['held', 300]]);
});

test('a grant from before this process is not measured, and a cancelled wait is no end of a hold', () => {
  const { calls, metering } = recorder();
  const stats = { commands: 1, bytes: 10, commitMs: 2, stalledMs: 0 };
  const grantOf = { name: 'a', session: 1, remaining: 0 };
  metering.committed(at(5, { type: 'released', ...grantOf, token: 99, cause: 'close', key: '' }), stats);
  metering.committed(at(5, { type: 'cancelled', ...grantOf, token: 0, key: 'k' }), stats);
  expect(calls).toEqual([
    ['committed', 2, 1],
    ['committed', 2, 1],
  ]);
});

test('a grant from before this leadership is not measured: whether it ended meanwhile is not known', () => {
  const { calls, metering } = recorder();
  const stats = { commands: 1, bytes: 10, commitMs: 2, stalledMs: 0 };
  metering.committed(at(0, { type: 'granted', token: 1, waitedMs: 7, ...grant }), stats);
  metering.committed(at(100, { type: 'tookOver', epoch: 3, token: 5, reason: 'nobody led' }), stats);
  metering.committed(at(200, { type: 'expired', name: 'a', session: 1, token: 1, cause: 'expired' }), stats);
  expect(calls.map(([name]) => name)).not.toContain('held');
});

test('refusals, ends of sessions against their will, take-overs, rejections and stalls', () => {
  const { calls, metering } = recorder();
  const stats = { commands: 3, bytes: 10, commitMs: 600, stalledMs: 700 };
  metering.committed(
    at(
      5,
      { type: 'refused', name: 'a', session: 1, key: 'k', code: 'HELD', fromQueue: false },
      { type: 'sessionEnding', session: 1, cause: 'closed' },
      { type: 'sessionEnding', session: 2, cause: 'stream' },
      { type: 'tookOver', epoch: 2, token: 5, reason: 'start' },
      { type: 'fencingRejected', name: 'a', session: 0, token: 4, resource: 'db' },
    ),
    stats,
  );
  metering.committed(at(6), { ...stats, stalledMs: 0 });
  expect(calls).toEqual([
    ['committed', 600, 3],
    ['stalled', 700],
    ['refused', 'HELD'],
    ['sessionExpired', 'stream'],
    ['leaderChanged'],
    ['fencingRejected'],
    ['committed', 600, 3],
  ]);
});
