/**
 * Snapshots in the middle of everything that shared locks, semaphores and re-entrancy bring: after each entry the state is
 * written and read back, and the copy must go on with the next entry exactly as the state itself does (rule L3).
 */
import { describe, expect, it } from 'vitest';
import { LINEAGE, TestGroup, TTL_MS, traceOf } from '../../test/support/core.ts';
import { checkInvariants } from '../../test/support/core-invariants.ts';
import type { Acquire } from '../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { apply, createState, hasBacklog, read, SnapshotReader, type State, writeSnapshot } from './index.ts';

const CONFIG = {
  modes: ['exclusive', 'shared', 'semaphore'] as const,
  semaphores: [{ pattern: 's*', permits: 5 }],
  lockDelayMs: 2_000,
};
const READ: Partial<Acquire> = { mode: 'shared' };
const ONE: Partial<Acquire> = { mode: 'semaphore' };
const AGAIN: Partial<Acquire> = { reentrant: true, owner: 'me' };

function copyOf(state: State): State {
  const reader = new SnapshotReader();
  for (const line of writeSnapshot(state)) reader.line(line);
  return reader.finish();
}

/** Plays the entries again, each on the state and on a copy read back just before. */
function expectSameFromCopies({ entries }: TestGroup): void {
  const state = createState(LINEAGE);
  for (const entry of entries) {
    const copy = copyOf(state);
    checkInvariants(copy);
    expect(apply(copy, entry)).toEqual(apply(state, entry));
    expect(copy.eventHash).toBe(state.eventHash);
    expect(traceOf(copy).toSorted()).toEqual(traceOf(state).toSorted());
  }
}

const scenarios: [what: string, play: (group: TestGroup) => void][] = [
  [
    'readers and writers, whose tokens rise neither with session nor with key',
    (group) => {
      const [a, b, c] = [group.open(), group.open(), group.open()];
      const held = group.lock(b, 'y');
      group.wait(a, 'y', { ...READ, key: 'early' });
      const first = group.lock(c, 'x', READ);
      group.lock(a, 'x', READ);
      group.lock(b, 'x', READ);
      group.lock(b, 'y2', READ);
      group.release(b, 'y', held);
      group.wait(c, 'x', { key: 'writer' });
      group.wait(a, 'x', { ...READ, key: 'behind' });
      group.breakLock('x', first);
      group.cancel(c, 'writer');
      group.expire(b);
      group.pass(TTL_MS);
      group.pass(2_000);
      group.close(a);
      group.pass(2_000);
    },
  ],
  [
    'a long run of readers',
    (group) => {
      const writer = group.open();
      const sessions = Array.from({ length: 10 }, () => group.open());
      const token = group.lock(writer, 'x');
      const commands = Array.from({ length: TRANSITIONS_PER_ENTRY_MAX + 500 }, (_, i) =>
        group.acquireCommand(sessions[i % 10] ?? 0, 'x', { ...READ, waitMs: 600_000 }),
      );
      group.run(commands);
      group.wait(writer, 'x', { key: 'last' });
      group.release(writer, 'x', token);
      expect(hasBacklog(group.state)).toBe(true);
      group.acquire(writer, 'x', { ...READ, key: 'late', waitMs: 1_000 });
      group.expire(...sessions.slice(0, 5));
      for (let i = 0; i < 5; i++) group.pass(500);
      expect(hasBacklog(group.state)).toBe(false);
    },
  ],
  [
    'permits that are cut and raised',
    (group) => {
      const session = group.open();
      const tokens = [2, 1, 2].map((permits) => group.lock(session, 's', { ...ONE, permits }));
      group.wait(session, 's', { ...ONE, permits: 3, key: 'big' });
      group.wait(session, 's', { ...ONE, key: 'small' });
      group.lock(session, 'x');
      const permits = (count: number) =>
        group.configure({ ...CONFIG, semaphores: [{ pattern: 's*', permits: count }] });
      permits(3);
      permits(2);
      group.release(session, 's', tokens[2] ?? 0);
      group.pass(TTL_MS);
      permits(6);
      group.pass(2_000);
      group.configure({ ...CONFIG, semaphores: [] });
      group.configure(null);
      group.pass(TTL_MS);
    },
  ],
  [
    'keys that join and leave in another order than they came',
    (group) => {
      const [a, b] = [group.open(), group.open()];
      const held = group.lock(b, 'x');
      for (const key of ['k0', 'k1']) group.wait(a, 'x', { ...AGAIN, ...READ, key });
      group.wait(b, 'x', { key: 'writer' });
      group.wait(a, 'x', { ...AGAIN, ...READ, key: 'k2' });
      group.release(b, 'x', held);
      group.lock(a, 'x', { ...AGAIN, ...READ, key: 'k3' });
      group.cancel(b, 'writer');
      const { token = 0 } = group.holder('x') ?? {};
      expect(group.attach(a, 2)).toMatchObject({ grants: [{ keys: ['k0', 'k1', 'k3', 'k2'] }] });
      // The key that was granted leaves, and is used for something else.
      group.cancel(a, 'k0');
      group.lock(a, 'y', { key: 'k0' });
      group.cancel(a, 'none', { acks: ['k1', 'k3'] });
      group.lock(a, 'x', { ...AGAIN, ...READ, key: 'k4' });
      group.attach(a, 3);
      group.release(a, 'x', token, { key: 'k3' });
      group.breakLock('x', token);
      group.acquire(a, 'x', { ...AGAIN, ...READ, key: 'k5' });
      group.pass(TTL_MS);
    },
  ],
  [
    'a session parked on quarantined names',
    (group) => {
      const [a, b] = [group.open(), group.open()];
      group.lock(a, 'x', { ...READ, ...AGAIN, key: 'k1' });
      group.lock(a, 'x', { ...READ, ...AGAIN, key: 'k2' });
      const y = group.lock(a, 'y');
      group.lock(b, 'x', READ);
      group.quarantine('x');
      group.quarantine('y');
      group.expire(a);
      group.configure({ ...CONFIG, consumers: [] });
      group.breakLock('y', y);
      group.pass(TTL_MS);
      group.unquarantine('x');
      group.pass(0);
      group.breakLock('y', y, true);
      group.unquarantine('y');
      group.pass(TTL_MS);
      group.pass(2_000);
      expect(group.state.locks.size).toBe(0);
    },
  ],
];

describe('a snapshot after every entry', () => {
  it.each(scenarios)('rule L3: of %s', (_what, play) => {
    const group = new TestGroup({ config: CONFIG });
    play(group);
    expectSameFromCopies(group);
  });
});

it('a hold keeps the acquire it was granted to, also after that key came again for another one', () => {
  const group = new TestGroup({ config: CONFIG });
  const session = group.open();
  group.lock(session, 'x', { ...AGAIN, key: 'k6', purpose: 'the first' });
  group.lock(session, 'x', { ...AGAIN, key: 'k8' });
  group.cancel(session, 'k6');
  group.lock(session, 'x', { ...AGAIN, key: 'k6', purpose: 'another' });
  const query = { type: 'getLock', name: 'x' } as const;
  expect(read(copyOf(group.state), query)).toEqual(read(group.state, query));
  expect(read(group.state, query)).toMatchObject({ lock: { holders: [{ purpose: 'the first' }] } });
});
