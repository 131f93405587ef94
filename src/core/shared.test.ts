/** Shared locks: who holds together, who waits behind whom (rule C2). */
import { describe, expect, it } from 'vitest';
import { eventsOf, TestGroup, TTL_MS } from '../../test/support/core.ts';
import { checkInvariants } from '../../test/support/core-invariants.ts';
import type { Acquire, LockEvent, SessionId } from '../api/entry.ts';
import { COMMANDS_PER_ENTRY_MAX, TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { hasBacklog, read } from './index.ts';

const READ: Partial<Acquire> = { mode: 'shared' };
const WAIT_MS = 600_000;

function sharedGroup(config: Parameters<TestGroup['configure']>[0] = {}, checked = true): TestGroup {
  return new TestGroup({ config: { modes: ['exclusive', 'shared'], ...config }, checked });
}

function grantedKeys(events: readonly LockEvent[]): string[] {
  return eventsOf(events, 'granted').map(({ key }) => key);
}

/** `count` sessions. */
function sessionsOf(group: TestGroup, count: number): SessionId[] {
  return Array.from({ length: count }, () => group.open());
}

describe('readers', () => {
  it('rule C2: hold a lock together, each under a token of its own', () => {
    const group = sharedGroup();
    const tokens = sessionsOf(group, 3).map((session) => group.lock(session, 'x', READ));
    expect(tokens).toEqual([1, 2, 3]);
    expect(group.holders('x')).toEqual(tokens);
    expect(group.state.holds).toBe(3);
  });

  it('rule C2: keep a writer out until the last of them has gone', () => {
    const group = sharedGroup();
    const [a = 0, b = 0, writer = 0] = sessionsOf(group, 3);
    const [first, second] = [group.lock(a, 'x', READ), group.lock(b, 'x', READ)];
    expect(group.acquire(writer, 'x')).toMatchObject({
      code: 'HELD',
      holder: { token: first, mode: 'shared' },
    });
    group.wait(writer, 'x', { key: 'w' });
    expect(eventsOf(group.release(a, 'x', first).events, 'granted')).toEqual([]);
    expect(group.release(b, 'x', second).events).toMatchObject([
      { type: 'released', token: second, remaining: 0 },
      { type: 'granted', key: 'w', mode: 'exclusive', fromQueue: true, joined: false },
    ]);
  });

  it('rule C2: at the head of the queue are granted together, and no reader behind the next writer is', () => {
    const group = sharedGroup();
    const [holder = 0, ...others] = sessionsOf(group, 6);
    const token = group.lock(holder, 'x');
    const modes = ['shared', 'shared', 'shared', 'exclusive', 'shared'] as const;
    for (const [i, mode] of modes.entries()) group.wait(others[i] ?? 0, 'x', { mode, key: `k${i}` });
    const { events } = group.release(holder, 'x', token);
    expect(grantedKeys(events)).toEqual(['k0', 'k1', 'k2']);
    expect(hasBacklog(group.state)).toBe(false);
    expect(group.lockState('x')?.queue?.size).toBe(2);
  });

  it('rule C2: behind a waiting writer wait, and try-acquires are told HELD', () => {
    const group = sharedGroup();
    const [a = 0, writer = 0, late = 0] = sessionsOf(group, 3);
    const token = group.lock(a, 'x', READ);
    group.wait(writer, 'x', { key: 'w' });
    expect(group.acquire(late, 'x', READ)).toMatchObject({ code: 'HELD', waiters: 1, holder: { token } });
    expect(group.wait(late, 'x', { ...READ, key: 'late' })).toEqual({ type: 'queued', position: 2 });
    expect(grantedKeys(group.release(a, 'x', token).events)).toEqual(['w']);
  });

  it.each<[how: string, end: (group: TestGroup, writer: SessionId) => readonly LockEvent[]]>([
    ['is cancelled', (group, writer) => group.cancel(writer, 'w').events],
    ['times out', (group) => group.pass(1_000)],
    ['loses its session', (group, writer) => group.expire(writer).events],
    ['is no consumer any more', (group) => group.run([without(group)]).events],
  ])('rule C2: go on when the writer before them %s', (_how, end) => {
    const group = sharedGroup();
    const [a = 0, b = 0, c = 0] = sessionsOf(group, 3);
    const writer = group.open({ identity: { account: 'other/writer', podUid: '' } });
    group.lock(a, 'x', READ);
    group.wait(writer, 'x', { key: 'w', waitMs: 1_000 });
    group.wait(b, 'x', { ...READ, key: 'b' });
    group.wait(c, 'x', { ...READ, key: 'c' });
    const events = [...end(group, writer), ...group.pass(0)];
    expect(grantedKeys(events)).toEqual(['b', 'c']);
    expect(group.holders('x')).toHaveLength(3);
  });

  it('rule C9: of a removed consumer are revoked, the others stay', () => {
    const group = sharedGroup({ lockDelayMs: 5_000 });
    const a = group.open();
    const other = group.open({ identity: { account: 'other/reader', podUid: '' } });
    const [kept, lost] = [group.lock(a, 'x', READ), group.lock(other, 'x', READ)];
    expect(group.run([without(group, { lockDelayMs: 5_000 })]).events).toMatchObject([
      { type: 'configured' },
      { type: 'revoking', token: lost, cause: 'consumerRemoved' },
    ]);
    expect(group.pass(TTL_MS)).toMatchObject([{ type: 'revoked', token: lost }, { type: 'delayed' }]);
    expect(group.holders('x')).toEqual([kept]);
    // Nobody is granted beside those who are left before the delay is over (rule C8).
    expect(group.acquire(a, 'x', READ)).toMatchObject({ code: 'HELD', lockDelayMs: 5_000 });
    group.pass(5_000);
    expect(group.acquire(a, 'x', READ)).toMatchObject({ type: 'granted' });
  });

  /** The configuration without the account `other/...`. */
  function without(group: TestGroup, differs = {}) {
    const consumers = [{ namespace: 'payments', serviceAccounts: null }];
    return group.configureCommand({ modes: ['exclusive', 'shared'], consumers, ...differs });
  }

  it('rule C8: the lock-delay of the last unclean end counts, and never ends earlier for a shorter one', () => {
    const group = sharedGroup({ lockDelayMs: 5_000 });
    const [a = 0, b = 0, c = 0, waiter = 0] = sessionsOf(group, 4);
    for (const session of [a, b, c]) group.lock(session, 'x', READ);
    group.wait(waiter, 'x', { key: 'w' });
    expect(eventsOf(group.expire(a).events, 'delayed')).toMatchObject([{ until: 5_000 }]);
    group.pass(1_000);
    expect(eventsOf(group.expire(b).events, 'delayed')).toMatchObject([{ until: 6_000 }]);
    group.configure({ modes: ['exclusive', 'shared'], lockDelayMs: 1_000 });
    expect(eventsOf(group.expire(c).events, 'delayed')).toEqual([]);
    expect(group.pass(4_999)).toEqual([]);
    expect(grantedKeys(group.pass(1))).toEqual(['w']);
    expect(group.state.timers.size).toBe(1);
  });

  it('rule C7: are told about the highest token of the name', () => {
    const group = sharedGroup();
    const [a = 0, b = 0] = sessionsOf(group, 2);
    const [first, second] = [group.lock(a, 'x', READ), group.lock(b, 'x', READ)];
    expect(group.release(b, 'x', first)).toMatchObject({ code: 'STALE_TOKEN' });
    expect(group.release(a, 'x', second)).toMatchObject({ code: 'NOT_HELD' });
    expect(group.breakLock('x', first, true).events).toMatchObject([{ type: 'broken' }, { type: 'revoked' }]);
    expect(group.breakLock('x', first).results).toMatchObject([{ code: 'STALE_TOKEN' }]);
    expect(group.holders('x')).toEqual([second]);
    expect(group.release(b, 'x', second)).toMatchObject({ type: 'done' });
    expect(group.breakLock('x', second).results).toMatchObject([{ code: 'NOT_HELD' }]);
  });

  it('shows the first 100 holders by rising token, and counts all', () => {
    const group = sharedGroup();
    const session = group.open();
    const tokens = Array.from({ length: 150 }, () => group.lock(session, 'x', READ));
    const result = read(group.state, { type: 'getLock', name: 'x' });
    if (result.type !== 'lock') throw new Error('not a lock');
    expect(result.lock.holders.map(({ token }) => token)).toEqual(tokens.slice(0, 100));
    expect(result.lock.holderCount).toBe(150);
    group.release(session, 'x', tokens[0] ?? 0);
    expect(read(group.state, { type: 'getLock', name: 'x' })).toMatchObject({
      lock: { holderCount: 149, holders: { 0: { token: tokens[1] } } },
    });
  });
});

describe('a long run of readers', () => {
  const READERS = TRANSITIONS_PER_ENTRY_MAX + 500;

  /** A writer holds `x`, and many readers wait, then a writer. Compared with the naive model in test/model, which is slow. */
  function longRun() {
    const group = sharedGroup({}, false);
    const writer = group.open();
    const sessions = sessionsOf(group, 50);
    const token = group.lock(writer, 'x');
    const commands = Array.from({ length: READERS }, (_, i) =>
      group.acquireCommand(sessions[i % 50] as SessionId, 'x', { ...READ, key: `r${i}`, waitMs: WAIT_MS }),
    );
    for (let i = 0; i < READERS; i += COMMANDS_PER_ENTRY_MAX)
      group.run(commands.slice(i, i + COMMANDS_PER_ENTRY_MAX));
    group.wait(writer, 'x', { key: 'last' });
    return { group, writer, token, keys: commands.map(({ key }) => key) };
  }

  it('rules C1, C2: is granted over several entries, first in, first out', () => {
    const { group, writer, token, keys } = longRun();
    const granted = [grantedKeys(group.release(writer, 'x', token).events)];
    while (hasBacklog(group.state)) granted.push(grantedKeys(group.pass(0)));
    // One with the release itself, then as many as an entry may carry out.
    const [first = [], ...rest] = granted;
    expect(first).toHaveLength(TRANSITIONS_PER_ENTRY_MAX + 1);
    for (const some of rest) expect(some.length).toBeLessThanOrEqual(TRANSITIONS_PER_ENTRY_MAX);
    expect(granted.flat()).toEqual(keys);
    checkInvariants(group.state);
    expect(group.holders('x')).toHaveLength(READERS);
  });

  it('rule C2: is not overtaken by a reader that comes meanwhile', () => {
    const { group, writer, token } = longRun();
    const late = group.open();
    group.release(writer, 'x', token);
    expect(group.state.backlog).toEqual([{ kind: 'serve', name: 'x' }]);
    const { results, events } = group.run([
      group.acquireCommand(late, 'x', { ...READ, key: 'try' }),
      group.acquireCommand(late, 'x', { ...READ, key: 'late', waitMs: WAIT_MS }),
    ]);
    expect(results).toMatchObject([{ code: 'HELD' }, { type: 'queued' }]);
    expect(grantedKeys(events)).not.toContain('late');
    while (hasBacklog(group.state)) expect(grantedKeys(group.pass(0))).not.toContain('late');
    // The writer waits before it.
    expect(group.holders('x')).toHaveLength(READERS);
  });

  it('rule C16: may lose all it waits for and leave nothing behind', () => {
    const { group, writer, token } = longRun();
    group.release(writer, 'x', token);
    const sessions = [...group.state.sessions.keys()];
    group.expire(...sessions);
    while (hasBacklog(group.state)) group.pass(0);
    expect(group.state).toMatchObject({ holds: 0, waits: 0, locks: new Map(), timers: { size: 0 } });
    expect(group.state.toServe.size).toBe(0);
  });
});

describe('cases', () => {
  it('case F07: readers that come and go do not starve a writer', () => {
    const group = sharedGroup();
    const [a = 0, b = 0, c = 0, writer = 0] = sessionsOf(group, 4);
    const [first, second] = [group.lock(a, 'x', READ), group.lock(b, 'x', READ)];
    group.wait(writer, 'x', { key: 'writer' });
    group.release(a, 'x', first);
    group.wait(c, 'x', { ...READ, key: 'c' });
    expect(grantedKeys(group.release(b, 'x', second).events)).toEqual(['writer']);
    group.wait(a, 'x', { ...READ, key: 'a' });
    const token = group.holder('x')?.token ?? 0;
    expect(grantedKeys(group.release(writer, 'x', token).events)).toEqual(['c', 'a']);
  });

  it('case F02: when a reader’s lease ends, the writer behind it is granted in the same entry', () => {
    const group = sharedGroup();
    const [reader = 0, writer = 0] = sessionsOf(group, 2);
    group.lock(reader, 'x', READ);
    group.wait(writer, 'x', { key: 'w' });
    expect(grantedKeys(group.expire(reader).events)).toEqual(['w']);
  });

  it('case F03: 1,000 dead readers in the queue are passed over in one entry', () => {
    const group = sharedGroup();
    const [holder = 0, alive = 0, ...dead] = sessionsOf(group, 1_002);
    const token = group.lock(holder, 'x');
    group.run(dead.map((session) => group.acquireCommand(session, 'x', { ...READ, waitMs: WAIT_MS })));
    group.wait(alive, 'x', { ...READ, key: 'alive' });
    const { events } = group.run([
      { type: 'expireSessions', sessions: dead, cause: 'expired' },
      group.releaseCommand(holder, 'x', token),
    ]);
    expect(grantedKeys(events)).toEqual(['alive']);
    expect(group.holders('x')).toHaveLength(1);
  });

  it('case F04: 1,000 waiters, readers and writers, are all granted once, in the order they came', () => {
    const group = new TestGroup({ config: { modes: ['exclusive', 'shared'] }, checked: false });
    const sessions = sessionsOf(group, 100);
    const holder = group.open();
    const token = group.lock(holder, 'x');
    const waits = Array.from({ length: 1_000 }, (_, i) => {
      const mode = i % 7 === 3 || i % 11 === 0 ? 'exclusive' : 'shared';
      return group.acquireCommand(sessions[i % 100] ?? 0, 'x', { mode, key: `w${i}`, waitMs: WAIT_MS });
    });
    group.run(waits);
    const granted = eventsOf(group.release(holder, 'x', token).events, 'granted');
    for (let next = 0; next < granted.length; next++) {
      const { session, token: held } = granted[next] as (typeof granted)[number];
      granted.push(...eventsOf(group.release(session, 'x', held).events, 'granted'));
    }
    expect(granted.map(({ key }) => key)).toEqual(waits.map(({ key }) => key));
    expect(group.state.locks.size).toBe(0);
  });
});

describe('behaviour level 1', () => {
  it.each<[what: string, field: string, differs: Partial<Acquire>]>([
    ['a shared lock', 'mode', { mode: 'shared' }],
    ['a semaphore', 'mode', { mode: 'semaphore' }],
    ['a re-entrant acquire', 'reentrant', { reentrant: true }],
  ])(
    'rule C15: %s is refused without an outcome, and allowed once the level is raised',
    (_what, field, differs) => {
      const config = {
        modes: ['exclusive', 'shared', 'semaphore'] as const,
        semaphores: [{ pattern: 's', permits: 1 }],
      };
      const group = new TestGroup({ behaviour: 1, config });
      const session = group.open();
      const request = group.acquireCommand(session, differs.mode === 'semaphore' ? 's' : 'x', differs);
      expect(group.one(request)).toMatchObject({ code: 'INVALID', field });
      expect(group.session(session)).toMatchObject({ unsettled: 0, keys: new Map() });
      // From the next command of the same entry on.
      const { results } = group.run([{ type: 'raiseBehaviour', level: 2 }, request]);
      expect(results).toMatchObject([{ type: 'done' }, { type: 'granted' }]);
      expect(group.pass(0)).toEqual([]);
    },
  );
});
