/** Semaphores: how many permits a name has, who gets them, and what a change does to them (rules C2, C9, C11). */
import { describe, expect, it } from 'vitest';
import { eventsOf, namespaceConfig, TestGroup, TTL_MS } from '../../test/support/core.ts';
import { fc } from '../../test/support/seeded.ts';
import type { SemaphorePattern } from '../api/config.ts';
import type { Acquire, LockEvent, SessionId } from '../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { hasBacklog } from './index.ts';
import { permitsOf } from './policy.ts';

const ONE: Partial<Acquire> = { mode: 'semaphore' };
const MODES = ['exclusive', 'shared', 'semaphore'] as const;

function withPermits(permits: number | null, differs = {}) {
  const semaphores = permits === null ? [] : [{ pattern: 's*', permits }];
  return { modes: MODES, semaphores, ...differs };
}

function semaphoreGroup(permits: number): {
  readonly group: TestGroup;
  readonly a: SessionId;
  readonly b: SessionId;
} {
  const group = new TestGroup({ config: withPermits(permits) });
  return { group, a: group.open(), b: group.open() };
}

function grantedKeys(events: readonly LockEvent[]): string[] {
  return eventsOf(events, 'granted').map(({ key }) => key);
}

describe('permits', () => {
  it('case F10: a semaphore of 13 never has more than 13 grants; the rest of 20 wait', () => {
    const { group } = semaphoreGroup(13);
    const sessions = Array.from({ length: 20 }, () => group.open());
    const { results } = group.run(
      sessions.map((session, i) =>
        group.acquireCommand(session, 's', { ...ONE, key: `k${i}`, waitMs: 60_000 }),
      ),
    );
    expect(results.filter(({ type }) => type === 'granted')).toHaveLength(13);
    expect(results.slice(13)).toMatchObject(Array.from({ length: 7 }, (_, i) => ({ position: i + 1 })));
    const granted: string[] = [];
    for (let i = 0; i < 13; i++) {
      const [token = 0] = group.holders('s');
      const holder = group.holder('s')?.session ?? 0;
      granted.push(...grantedKeys(group.release(holder, 's', token).events));
      expect(group.holders('s').length).toBe(i < 7 ? 13 : 19 - i);
    }
    expect(granted).toEqual(['k13', 'k14', 'k15', 'k16', 'k17', 'k18', 'k19']);
  });

  it('rule C2: a request for more than are free blocks those behind it', () => {
    const { group, a, b } = semaphoreGroup(5);
    const first = group.lock(a, 's', { ...ONE, permits: 3 });
    group.wait(b, 's', { ...ONE, permits: 4, key: 'big' });
    expect(group.acquire(a, 's', ONE)).toMatchObject({ code: 'HELD', holder: { permits: 3 }, waiters: 1 });
    group.wait(a, 's', { ...ONE, key: 'small' });
    expect(group.holders('s')).toEqual([first]);
    expect(grantedKeys(group.release(a, 's', first).events)).toEqual(['big', 'small']);
  });

  it('rule C2: one release may make room for several', () => {
    const { group, a, b } = semaphoreGroup(4);
    const first = group.lock(a, 's', { ...ONE, permits: 3 });
    group.lock(a, 's', ONE);
    for (const key of ['k1', 'k2', 'k3', 'k4']) group.wait(b, 's', { ...ONE, key });
    expect(grantedKeys(group.release(a, 's', first).events)).toEqual(['k1', 'k2', 'k3']);
    expect(group.holders('s')).toHaveLength(4);
  });

  it('rule C2: a request for more than there are is INVALID for good', () => {
    const { group, a } = semaphoreGroup(4);
    const request = group.acquireCommand(a, 's', { ...ONE, permits: 5, waitMs: 1_000 });
    expect(group.one(request)).toMatchObject({ code: 'INVALID', field: 'permits', limit: 4 });
    expect(group.one(request)).toEqual({ type: 'ended', by: 'INVALID', token: 0 });
    expect(group.lock(a, 's', { ...ONE, permits: 4 })).toBe(1);
  });

  it('rule C2: under a pattern no other mode is granted, and no semaphore elsewhere', () => {
    const { group, a } = semaphoreGroup(4);
    for (const mode of ['exclusive', 'shared'] as const) {
      expect(group.acquire(a, 's/1', { mode })).toMatchObject({ code: 'INVALID', field: 'mode' });
    }
    expect(group.acquire(a, 'x', ONE)).toMatchObject({ code: 'INVALID', field: 'mode' });
    group.configure(withPermits(4, { modes: ['exclusive'] }));
    expect(group.acquire(a, 's', ONE)).toMatchObject({ code: 'INVALID', field: 'mode' });
    expect(group.state.locks.size).toBe(0);
  });
});

describe('patterns', () => {
  const of = (semaphores: SemaphorePattern[], name: string): number | null =>
    permitsOf(namespaceConfig({ semaphores }), name);

  it('rule C2: the first that matches wins', () => {
    const semaphores = [
      { pattern: 'exports/big', permits: 1 },
      { pattern: 'exports/*', permits: 10 },
      { pattern: 'exports/small', permits: 99 },
      { pattern: '*', permits: 3 },
    ];
    expect(of(semaphores, 'exports/big')).toBe(1);
    expect(of(semaphores, 'exports/small')).toBe(10);
    expect(of(semaphores, 'exports')).toBe(3);
    expect(of(semaphores.slice(0, 3), 'exports')).toBeNull();
    expect(permitsOf(null, 'exports/big')).toBeNull();
  });

  it('rule C2: a star stands for any bytes, slashes and none at all among them', () => {
    for (const name of ['exports/', 'exports/a', 'exports/a/b/c', 'exports/*', 'exports/🔒']) {
      expect(of([{ pattern: 'exports/*', permits: 2 }], name), name).toBe(2);
    }
    for (const name of ['exports', 'Exports/a', 'e\u0301xports/a', 'my/exports/a']) {
      expect(of([{ pattern: 'exports/*', permits: 2 }], name), name).toBeNull();
    }
    expect(of([{ pattern: 'é*', permits: 2 }], 'e\u0301')).toBeNull();
    expect(of([{ pattern: 'a', permits: 2 }], 'ab')).toBeNull();
  });

  it('rule C2: a star that does not stand at the end, as an older log may have it, is a character like any other', () => {
    const semaphores = [{ pattern: 'a*b', permits: 2 }];
    expect(of(semaphores, 'a*b')).toBe(2);
    expect([of(semaphores, 'ab'), of(semaphores, 'axb'), of(semaphores, 'a*')]).toEqual([null, null, null]);
  });

  it('rule C2: a prefix of the text is one of its bytes', () => {
    const text = fc.string({ unit: 'binary', maxLength: 4 });
    fc.assert(
      fc.property(text, text, (prefix, name) => {
        const bytes = (value: string) => Buffer.from(value).toString('hex');
        const isPrefix = bytes(name).startsWith(bytes(prefix));
        expect(of([{ pattern: `${prefix}*`, permits: 2 }], name)).toBe(isPrefix ? 2 : null);
      }),
    );
  });
});

describe('a change of permits', () => {
  /** Five holds of one permit each, the youngest last. */
  function fiveHolds() {
    const { group, a, b } = semaphoreGroup(5);
    const tokens = Array.from({ length: 5 }, () => group.lock(a, 's', ONE));
    return { group, a, b, tokens };
  }

  it('rule C2: more permits let in who waits, in their order', () => {
    const { group, b } = fiveHolds();
    for (const key of ['k1', 'k2', 'k3']) group.wait(b, 's', { ...ONE, key });
    expect(grantedKeys(group.run([group.configureCommand(withPermits(7))]).events)).toEqual(['k1', 'k2']);
    expect(group.holders('s')).toHaveLength(7);
  });

  it('rule C9: fewer revoke the newest, who have one TTL', () => {
    const { group, tokens } = fiveHolds();
    const { events } = group.run([group.configureCommand(withPermits(3))]);
    const cut = [tokens[4], tokens[3]];
    expect(events).toMatchObject([
      { type: 'configured' },
      ...cut.map((token) => ({ type: 'revoking', token, cause: 'permitsCut', until: TTL_MS })),
    ]);
    expect(group.pass(TTL_MS - 1)).toEqual([]);
    expect(eventsOf(group.pass(1), 'revoked').map(({ token }) => token)).toEqual(cut);
    expect(group.holders('s')).toEqual(tokens.slice(0, 3));
  });

  it('rule C2: who waits is granted only when as many have gone as are too many', () => {
    const { group, a, b, tokens } = fiveHolds();
    group.wait(b, 's', { ...ONE, key: 'w' });
    group.configure(withPermits(3));
    // Two are being revoked; the first to go makes no room yet.
    const order = [tokens[0], tokens[4], tokens[3]] as number[];
    const granted = order.map((token) => grantedKeys(group.release(a, 's', token).events));
    expect(granted).toEqual([[], [], ['w']]);
    expect(group.holders('s')).toHaveLength(3);
  });

  it('rule C9: permits that are being revoked already count as gone, and more permits take no revoke back', () => {
    const { group, tokens } = fiveHolds();
    group.breakLock('s', tokens[1] ?? 0);
    const first = group.run([group.configureCommand(withPermits(4))]).events;
    expect(eventsOf(first, 'revoking')).toEqual([]);
    const second = group.run([group.configureCommand(withPermits(2))]).events;
    expect(eventsOf(second, 'revoking')).toMatchObject([{ token: tokens[4] }, { token: tokens[3] }]);
    const third = group.run([group.configureCommand(withPermits(5))]).events;
    expect(third).toMatchObject([{ type: 'configured' }]);
    expect(eventsOf(group.pass(TTL_MS), 'revoked')).toHaveLength(3);
  });

  it('rule C2: a waiting request that asks for more than there are now is INVALID, those behind it go on', () => {
    const { group, a, b, tokens } = fiveHolds();
    group.wait(b, 's', { ...ONE, permits: 5, key: 'big' });
    group.wait(b, 's', { ...ONE, key: 'small' });
    const { events } = group.run([group.configureCommand(withPermits(4))]);
    expect(events).toMatchObject([
      { type: 'configured' },
      { type: 'revoking', token: tokens[4], cause: 'permitsCut' },
      { type: 'refused', key: 'big', code: 'INVALID', fromQueue: true },
    ]);
    group.release(a, 's', tokens[4] ?? 0);
    expect(grantedKeys(group.release(a, 's', tokens[0] ?? 0).events)).toEqual(['small']);
  });

  it('rule C11: a pattern that is removed takes no grant away, but who waits for it is INVALID', () => {
    const { group, a, b, tokens } = fiveHolds();
    group.wait(b, 's', { ...ONE, key: 'w' });
    const { events } = group.run([group.configureCommand(withPermits(null))]);
    expect(events).toMatchObject([{ type: 'configured' }, { type: 'refused', key: 'w', code: 'INVALID' }]);
    expect(group.holders('s')).toEqual(tokens);
    // The name is an ordinary one now; the holds of the other mode are in the way.
    group.wait(b, 's', { key: 'exclusive' });
    for (const token of tokens) group.release(a, 's', token);
    expect(group.holder('s')).toMatchObject({ session: b });
    // ...and back: the exclusive hold stays, whoever wants a permit waits for it.
    group.configure(withPermits(5));
    group.wait(a, 's', { ...ONE, key: 'permit' });
    const { token = 0 } = group.holder('s') ?? {};
    expect(grantedKeys(group.release(b, 's', token).events)).toEqual(['permit']);
  });

  it('rule C1: is worked off by name, in order, over as many entries as it takes', () => {
    const group = new TestGroup({ config: withPermits(100), checked: false });
    const session = group.open();
    // In another order than that of their text: s9 comes after s10.
    const names = Array.from({ length: 30 }, (_, i) => `s${i}`);
    const held = new Map<string, number[]>();
    for (const name of names) {
      const before = [...group.session(session).keys.keys()];
      const acks = before.slice(-100);
      const commands = Array.from({ length: 100 }, (_, i) =>
        group.acquireCommand(session, name, { ...ONE, acks: i === 0 ? acks : [] }),
      );
      group.run(commands);
      held.set(name, group.holders(name));
    }
    const cut = (permits: number) => ({ ...group.configureCommand(withPermits(permits)) });
    const twice = [cut(2), { ...cut(1), version: cut(1).version + 1 }];
    const events = eventsOf(group.run(twice).events, 'revoking');
    expect(events).toHaveLength(TRANSITIONS_PER_ENTRY_MAX);
    // In the backlog once, though the permits changed twice.
    expect(group.state.backlog).toHaveLength(group.state.toServe.size);
    while (hasBacklog(group.state)) events.push(...eventsOf(group.pass(0), 'revoking'));
    const expected = names.toSorted().flatMap((name) => held.get(name)?.slice(1).reverse() ?? []);
    // The first change alone cut each name to two, where it got that far; the second goes on from there.
    expect(events.map(({ token }) => token).toSorted()).toEqual(expected.toSorted());
    expect(events.every(({ cause }) => cause === 'permitsCut')).toBe(true);
    const order = [...new Set(events.map(({ name }) => name))];
    expect(order).toEqual(names.toSorted());
    expect(group.state.revoking).toBe(30 * 99);
  });
});
