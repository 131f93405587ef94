/** What reads show of the state. */
import { describe, expect, it } from 'vitest';
import { TestGroup, traceOf } from '../../test/support/core.ts';
import type { ListLocks } from '../api/wire.ts';
import { read } from './index.ts';

function list(group: TestGroup, query: Partial<ListLocks>): { names: string[]; more: boolean } {
  const result = read(group.state, { type: 'listLocks', prefix: '', after: '', limit: 100, ...query });
  if (result.type !== 'locks') throw new Error('not a list');
  return { names: result.locks.map(({ name }) => name), more: result.more };
}

describe('getLock', () => {
  it('shows the holder, who waits in their order, and for how long', () => {
    const group = new TestGroup();
    const [a, b] = [group.open({ client: 'client-a' }), group.open({ client: 'client-b' })];
    const token = group.lock(a, 'x', { owner: 'me', purpose: 'nightly' });
    group.pass(1_000);
    group.wait(b, 'x', { owner: 'next' });
    group.pass(500);
    group.breakLock('x', token);
    expect(read(group.state, { type: 'getLock', name: 'x' })).toEqual({
      type: 'lock',
      lock: {
        name: 'x',
        holders: [
          {
            session: a,
            client: 'client-a',
            owner: 'me',
            purpose: 'nightly',
            token,
            mode: 'exclusive',
            permits: 1,
            heldForMs: 1_500,
            revoking: 'break',
          },
        ],
        holderCount: 1,
        waiters: [
          { session: b, client: 'client-b', owner: 'next', mode: 'exclusive', permits: 1, waitedMs: 500 },
        ],
        waiterCount: 1,
        lockDelayMs: 0,
        quarantined: false,
      },
    });
  });

  it('rule C16: shows a name that nobody uses as free, and does not make it', () => {
    const group = new TestGroup();
    const before = traceOf(group.state);
    expect(read(group.state, { type: 'getLock', name: 'x' })).toEqual({
      type: 'lock',
      lock: {
        name: 'x',
        holders: [],
        holderCount: 0,
        waiters: [],
        waiterCount: 0,
        lockDelayMs: 0,
        quarantined: false,
      },
    });
    expect(traceOf(group.state)).toEqual(before);
  });

  it('shows what is left of a lock-delay, and quarantine', () => {
    const group = new TestGroup({ config: { lockDelayMs: 3_000 } });
    const session = group.open();
    group.lock(session, 'x');
    group.expire(session);
    group.pass(1_000);
    group.quarantine('y');
    expect(read(group.state, { type: 'getLock', name: 'x' })).toMatchObject({ lock: { lockDelayMs: 2_000 } });
    expect(read(group.state, { type: 'getLock', name: 'y' })).toMatchObject({ lock: { quarantined: true } });
  });

  it('shows the first 100 waiters, and counts all', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.run(Array.from({ length: 150 }, () => group.acquireCommand(b, 'x', { waitMs: 1_000 })));
    const result = read(group.state, { type: 'getLock', name: 'x' });
    expect(result.type === 'lock' && result.lock.waiters).toHaveLength(100);
    expect(result).toMatchObject({ lock: { waiterCount: 150 } });
  });
});

describe('listLocks', () => {
  it('pages through the names with a prefix, in their order', () => {
    const group = new TestGroup();
    const session = group.open();
    for (const name of ['b', 'a/2', 'a/10', 'a', 'ab', 'a/', 'A']) group.lock(session, name);
    expect(list(group, {})).toEqual({ names: ['A', 'a', 'a/', 'a/10', 'a/2', 'ab', 'b'], more: false });
    expect(list(group, { prefix: 'a/' })).toEqual({ names: ['a/', 'a/10', 'a/2'], more: false });
    expect(list(group, { prefix: 'a', limit: 2 })).toEqual({ names: ['a', 'a/'], more: true });
    expect(list(group, { prefix: 'a', limit: 2, after: 'a/' })).toEqual({
      names: ['a/10', 'a/2'],
      more: true,
    });
    expect(list(group, { prefix: 'a', limit: 2, after: 'a/2' })).toEqual({ names: ['ab'], more: false });
    expect(list(group, { prefix: 'none' })).toEqual({ names: [], more: false });
  });

  it.each(['rising', 'falling', 'mixed'])(
    'finds the first of many names that were made in %s order',
    (order) => {
      const count = 3_000;
      const place = (i: number): number =>
        order === 'rising' ? i : order === 'falling' ? count - 1 - i : (i * 1_297) % count;
      const all = Array.from({ length: count }, (_, i) => `n-${10_000 + i}`);
      const group = new TestGroup({ checked: false });
      for (let i = 0, session = 0; i < count; i++) {
        if (i % 200 === 0) session = group.open();
        group.lock(session, all[place(i)] as string);
      }
      const seen: string[] = [];
      for (let more = true, limit = 1; more; limit += 7) {
        const page = list(group, { prefix: 'n-', limit, after: seen.at(-1) ?? '' });
        expect(page.names).toHaveLength(Math.min(limit, count - seen.length));
        seen.push(...page.names);
        more = page.more;
      }
      expect(seen).toEqual(all);
    },
  );

  it('ends a page early where many share the locks on it, and goes on behind it', () => {
    const group = new TestGroup({ config: { modes: ['shared'] }, checked: false });
    const all = Array.from({ length: 100 }, (_, i) => `pool-${1_000 + i}`);
    for (let reader = 0; reader < 50; reader++) {
      const session = group.open();
      for (const name of all) group.lock(session, name, { mode: 'shared' });
    }
    const seen: string[] = [];
    for (let more = true; more; ) {
      const page = list(group, { limit: 1_000, after: seen.at(-1) ?? '' });
      expect(page.names.length).toBeLessThanOrEqual(40);
      seen.push(...page.names);
      more = page.more;
    }
    expect(seen).toEqual(all);
  });
});
