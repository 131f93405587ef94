/** Re-entrant acquires: several keys of one session and owner share a grant (rule C6). */
import { describe, expect, it } from 'vitest';
import { eventsOf, TestGroup, TTL_MS } from '../../test/support/core.ts';
import type { Acquire, LockEvent, SessionId, Token } from '../api/entry.ts';
import { KEYS_PER_GRANT_MAX, UNSETTLED_OUTCOMES_MAX } from '../api/limits.ts';
import { read } from './index.ts';

const AGAIN: Partial<Acquire> = { reentrant: true, owner: 'thread-1' };
const CONFIG = {
  modes: ['exclusive', 'shared', 'semaphore'] as const,
  semaphores: [{ pattern: 's', permits: 5 }],
};

interface Held {
  readonly group: TestGroup;
  readonly session: SessionId;
  readonly token: Token;
}

/** `x` is held re-entrantly under the keys `k1`, `k2`, ... */
function heldUnder(keys: number, config: Parameters<TestGroup['configure']>[0] = {}): Held {
  const group = new TestGroup({ config: { ...CONFIG, ...config } });
  const session = group.open();
  const token = group.lock(session, 'x', { ...AGAIN, key: 'k1' });
  for (let i = 2; i <= keys; i++) group.acquire(session, 'x', { ...AGAIN, key: `k${i}` });
  return { group, session, token };
}

describe('joining', () => {
  it('rule C6: returns the same token and makes no new hold', () => {
    const { group, session, token } = heldUnder(1);
    const { results, events } = group.run([group.acquireCommand(session, 'x', { ...AGAIN, key: 'k2' })]);
    expect(results).toEqual([{ type: 'granted', token }]);
    expect(events).toMatchObject([
      { type: 'granted', key: 'k2', token, joined: true, fromQueue: false, waitedMs: 0 },
    ]);
    expect(group.state).toMatchObject({ holds: 1, lastToken: token, timers: { size: 1 } });
    expect(group.attach(session, 2)).toMatchObject({ grants: [{ token, keys: ['k1', 'k2'] }] });
  });

  const strangers: [what: string, differs: (held: Held) => Partial<Acquire>][] = [
    ['another owner', () => ({ ...AGAIN, owner: 'thread-2' })],
    ['another session', ({ group }) => ({ ...AGAIN, session: group.open() })],
    ['no re-entrancy', () => ({ owner: 'thread-1' })],
    ['another mode', () => ({ ...AGAIN, mode: 'shared' })],
  ];

  it.each(strangers)('rule C6: with %s it queues like anybody’s', (_what, differs) => {
    const held = heldUnder(1);
    const { group, session } = held;
    const asked = differs(held);
    expect(group.acquire(session, 'x', asked)).toMatchObject({ code: 'HELD' });
    expect(group.acquire(session, 'x', { ...asked, waitMs: 1_000 })).toEqual({ type: 'queued', position: 1 });
  });

  it('rule C6: needs a hold that opted in as well', () => {
    const group = new TestGroup({ config: CONFIG });
    const session = group.open();
    group.lock(session, 'x', { owner: 'thread-1' });
    expect(group.acquire(session, 'x', AGAIN)).toMatchObject({ code: 'HELD' });
  });

  it('rule C6: needs the same permits', () => {
    const group = new TestGroup({ config: CONFIG });
    const session = group.open();
    const permits = (count: number) => ({ ...AGAIN, mode: 'semaphore', permits: count }) as const;
    const two = group.lock(session, 's', permits(2));
    expect(group.lock(session, 's', permits(2))).toBe(two);
    const three = group.lock(session, 's', permits(3));
    expect(group.holders('s')).toEqual([two, three]);
    expect(group.lock(session, 's', permits(3))).toBe(three);
    expect(group.acquire(session, 's', permits(1))).toMatchObject({ code: 'HELD' });
  });

  it('rule C6: does not join what is being revoked', () => {
    const { group, session, token } = heldUnder(1);
    group.breakLock('x', token);
    expect(group.acquire(session, 'x', AGAIN)).toMatchObject({ code: 'HELD' });
    const reader = { ...AGAIN, mode: 'shared' } as const;
    const first = group.lock(session, 'y', reader);
    group.breakLock('y', first);
    const second = group.lock(session, 'y', reader);
    expect(second).toBeGreaterThan(first);
    expect(group.lock(session, 'y', reader)).toBe(second);
  });

  it('rule C6: comes before the queue, the lock-delay and the limits of a session', () => {
    const { group, session, token } = heldUnder(1, { locksPerClient: 1, heldLocks: 1 });
    group.wait(group.open(), 'x', { key: 'w' });
    expect(group.lock(session, 'x', AGAIN)).toBe(token);
    expect(group.acquire(session, 'y', AGAIN)).toMatchObject({ code: 'QUOTA_EXCEEDED', limit: 1 });
  });

  it('rule C6: at the head of the queue joins too, while another reader waits behind', () => {
    const group = new TestGroup({ config: CONFIG });
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(b, 'x');
    group.wait(a, 'x', { ...AGAIN, key: 'k1' });
    group.wait(a, 'x', { ...AGAIN, key: 'k2' });
    group.wait(b, 'x', { key: 'next' });
    group.pass(1_000);
    expect(group.release(b, 'x', token).events).toMatchObject([
      { type: 'released' },
      { type: 'granted', key: 'k1', token: token + 1, joined: false, fromQueue: true, waitedMs: 1_000 },
      { type: 'granted', key: 'k2', token: token + 1, joined: true, fromQueue: true, waitedMs: 1_000 },
    ]);
    expect(group.lockState('x')?.queue?.size).toBe(1);
  });

  it('rule C6: 64 keys share a grant, and the next is refused for good', () => {
    const { group, session, token } = heldUnder(KEYS_PER_GRANT_MAX);
    const more = group.acquireCommand(session, 'x', { ...AGAIN, key: 'more', waitMs: 1_000 });
    expect(group.one(more)).toMatchObject({ code: 'QUOTA_EXCEEDED', limit: KEYS_PER_GRANT_MAX });
    expect(group.one(more)).toEqual({ type: 'ended', by: 'QUOTA_EXCEEDED', token: 0 });
    group.release(session, 'x', token, { key: 'k7' });
    expect(group.lock(session, 'x', AGAIN)).toBe(token);
  });

  it('rule C5: each key is an outcome of its own', () => {
    const { group, session, token } = heldUnder(3);
    expect(group.session(session).unsettled).toBe(3);
    for (const key of ['k1', 'k2', 'k3']) {
      expect(group.acquire(session, 'x', { ...AGAIN, key })).toEqual({ type: 'granted', token });
    }
    group.cancel(session, 'none', { acks: ['k1', 'k2', 'k3'] });
    for (let i = 0; i < UNSETTLED_OUTCOMES_MAX; i++) group.acquire(session, 'x', { key: `other-${i}` });
    expect(group.acquire(session, 'x', { ...AGAIN, key: 'k2' })).toEqual({ type: 'granted', token });
    expect(group.acquire(session, 'x', AGAIN)).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  });
});

describe('giving up', () => {
  it('rule C6: a release names token and key, and the lock is free with the last', () => {
    const { group, session, token } = heldUnder(2);
    const waiter = group.open();
    group.wait(waiter, 'x', { key: 'w' });
    expect(group.release(session, 'x', token)).toMatchObject({ code: 'INVALID', field: 'key', events: [] });
    expect(group.release(session, 'x', token, { key: 'k3' })).toMatchObject({ code: 'NOT_HELD', events: [] });
    const of = { name: 'x', session, token, cause: 'release' };
    expect(group.release(session, 'x', token, { key: 'k1' }).events).toEqual([
      { type: 'released', ...of, key: 'k1', remaining: 1 },
    ]);
    expect(group.release(session, 'x', token, { key: 'k1' })).toMatchObject({ code: 'NOT_HELD' });
    expect(group.acquire(session, 'x', { ...AGAIN, key: 'k1' })).toEqual({
      type: 'ended',
      by: 'RELEASED',
      token,
    });
    expect(group.release(session, 'x', token, { key: 'k2' }).events).toMatchObject([
      { type: 'released', ...of, key: 'k2', remaining: 0 },
      { type: 'granted', session: waiter, key: 'w' },
    ]);
  });

  it('rule C6: a single key has to be named as well', () => {
    const { group, session, token } = heldUnder(1);
    expect(group.release(session, 'x', token)).toMatchObject({ code: 'INVALID', field: 'key' });
    expect(group.release(session, 'x', token, { key: 'k1' })).toMatchObject({ type: 'done' });
    expect(group.state.locks.size).toBe(0);
  });

  it('rule C6: of a lock that is not re-entrant the key is ignored, and told all the same', () => {
    const group = new TestGroup({ config: CONFIG });
    const session = group.open();
    const token = group.lock(session, 'x', { key: 'k' });
    expect(group.release(session, 'x', token, { key: 'nonsense' }).events).toMatchObject([
      { type: 'released', key: 'k', remaining: 0 },
    ]);
  });

  it('rule C6: a cancel takes one key back, and the lock with the last', () => {
    const { group, session, token } = heldUnder(3);
    const cancelled = { type: 'cancelled', name: 'x', session, token };
    expect(group.cancel(session, 'k2').events).toEqual([{ ...cancelled, key: 'k2', remaining: 2 }]);
    expect(group.cancel(session, 'k2').events).toEqual([]);
    expect(group.cancel(session, 'k1', { acks: ['k1'] }).events).toEqual([
      { ...cancelled, key: 'k1', remaining: 1 },
    ]);
    expect(group.attach(session, 2)).toMatchObject({ grants: [{ token, keys: ['k3'] }] });
    expect(group.cancel(session, 'k3').events).toEqual([{ ...cancelled, key: 'k3', remaining: 0 }]);
    expect(group.session(session)).toMatchObject({ unsettled: 0, keys: new Map() });
    expect(group.state.locks.size).toBe(0);
  });

  it('rule C6: a key that left may be used again while the others hold on', () => {
    const { group, session, token } = heldUnder(2);
    group.cancel(session, 'k1');
    const other = group.lock(session, 'y', { key: 'k1' });
    expect(group.attach(session, 2)).toMatchObject({
      grants: [
        { name: 'x', token, keys: ['k2'] },
        { name: 'y', token: other, keys: ['k1'] },
      ],
    });
    group.release(session, 'x', token, { key: 'k2' });
    expect(group.holder('y')).toEqual({ session, token: other });
  });

  it('shows the purpose of the acquire that was granted, also when its key has left', () => {
    const group = new TestGroup({ config: CONFIG });
    const session = group.open();
    const token = group.lock(session, 'x', { ...AGAIN, key: 'k1', purpose: 'first' });
    group.lock(session, 'x', { ...AGAIN, key: 'k2', purpose: 'second' });
    group.release(session, 'x', token, { key: 'k1' });
    expect(read(group.state, { type: 'getLock', name: 'x' })).toMatchObject({
      lock: { holderCount: 1, holders: [{ token, purpose: 'first', owner: 'thread-1' }] },
    });
  });

  const ends: [what: string, by: string, end: (held: Held) => readonly LockEvent[]][] = [
    [
      'a revoke',
      'REVOKED',
      ({ group, token }) => [...group.breakLock('x', token).events, ...group.pass(TTL_MS)],
    ],
    ['break --now', 'REVOKED', ({ group, token }) => group.breakLock('x', token, true).events],
  ];

  it.each(ends)('rule C6: %s ends all keys at once', (_what, by, end) => {
    const held = heldUnder(3);
    const { group, session, token } = held;
    expect(eventsOf(end(held), 'revoked')).toHaveLength(1);
    for (const key of ['k1', 'k2', 'k3']) {
      expect(group.acquire(session, 'x', { ...AGAIN, key })).toEqual({ type: 'ended', by, token });
    }
    expect(group.lock(session, 'x', AGAIN)).toBeGreaterThan(token);
  });

  it('rule C8: the last key given up during a revoke leaves the name under lock-delay', () => {
    const { group, session, token } = heldUnder(2, { lockDelayMs: 3_000 });
    group.breakLock('x', token);
    expect(group.release(session, 'x', token, { key: 'k1' }).events).toMatchObject([{ remaining: 1 }]);
    expect(group.release(session, 'x', token, { key: 'k2' }).events).toMatchObject([
      { type: 'released', remaining: 0 },
      { type: 'delayed' },
    ]);
    expect(group.state.revoking).toBe(0);
  });

  it('rule C10: the end of the session is one event, whatever the number of keys', () => {
    const { group, session, token } = heldUnder(3);
    expect(group.close(session).events).toEqual([
      { type: 'sessionEnding', session, cause: 'closed' },
      { type: 'released', name: 'x', session, token, cause: 'close', key: '', remaining: 0 },
      { type: 'sessionEnded', session },
    ]);
  });
});
