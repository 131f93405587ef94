/** What went wrong in other lock services, as far as the state machine alone shows them: groups B to F. */
import { describe, expect, it } from 'vitest';
import { eventsOf, TestGroup, TTL_MS, traceOf } from '../../test/support/core.ts';
import { HOLD_MS_MAX, WAIT_MS_MAX } from '../api/limits.ts';
import { hasBacklog, nextDue } from './index.ts';

const DAY_MS = 24 * 3_600_000;

describe('cancelled waits, time-outs, and races with the grant', () => {
  it('case B01: a wait that ends in the instant of the release is decided in one place', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { key: 'w', waitMs: 1_000 });
    const { events } = group.run([group.releaseCommand(a, 'x', token)], 1_000);
    expect(eventsOf(events, 'granted')).toEqual([]);
    expect(group.acquire(b, 'x', { key: 'w' })).toEqual({ type: 'ended', by: 'WAIT_TIMEOUT', token: 0 });
    expect(group.holder('x')).toBeNull();
    // One instant earlier it is granted, and its time-out cannot take the grant back.
    const again = group.lock(a, 'x');
    group.wait(b, 'x', { key: 'v', waitMs: 1_000 });
    group.run([group.releaseCommand(a, 'x', again)], 999);
    expect(group.pass(2_000)).toEqual([]);
    expect(group.acquire(b, 'x', { key: 'v' })).toMatchObject({ type: 'granted' });
  });

  it('case B02: a cancel removes a queued or granted entry by its key', () => {
    const group = new TestGroup();
    const [a, b, c] = [group.open(), group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { key: 'queued' });
    group.wait(c, 'x', { key: 'next' });
    group.cancel(b, 'queued');
    group.release(a, 'x', token);
    expect(group.holder('x')?.session).toBe(c);
    // Granted already when the cancel comes: handed back, and on to the next.
    group.wait(a, 'x', { key: 'last' });
    group.cancel(c, 'next');
    expect(group.holder('x')?.session).toBe(a);
    expect(group.session(b).keys.size + group.session(c).keys.size).toBe(0);
  });

  it('case B03: a wait that times out leaves nobody stuck behind it', () => {
    const group = new TestGroup();
    const [a, b, c] = [group.open(), group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { waitMs: 1_000, key: 'short' });
    group.wait(c, 'x', { waitMs: 60_000 });
    expect(group.pass(1_000)).toMatchObject([{ type: 'refused', key: 'short', code: 'WAIT_TIMEOUT' }]);
    expect(group.lockState('x')?.queue?.size).toBe(1);
    expect(eventsOf(group.release(a, 'x', token).events, 'granted')).toMatchObject([{ session: c }]);
  });

  it('case B10: the clean-up of an abandoned request may be repeated until it is confirmed', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.wait(b, 'x', { key: 'w' });
    expect(group.cancel(b, 'w').events).toHaveLength(1);
    const before = traceOf(group.state);
    for (let i = 0; i < 5; i++)
      expect(group.cancel(b, 'w')).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(traceOf(group.state)).toEqual(before);
    expect(group.state).toMatchObject({ waits: 0 });
  });

  it('case B15: a free lock with a live waiter does not exist after any entry', () => {
    // The invariants, checked after every entry, say so; this walks through every way a lock becomes free.
    const ways: ((group: TestGroup, holder: number, token: number) => unknown)[] = [
      (group, holder, token) => group.release(holder, 'x', token),
      (group, holder) => group.cancel(holder, 'k'),
      (group, holder) => group.close(holder),
      (group, holder) => group.expire(holder),
      (group, _holder, token) => group.breakLock('x', token, true),
      (group, _holder, token) => [group.breakLock('x', token), group.pass(TTL_MS)],
    ];
    for (const free of ways) {
      const group = new TestGroup();
      const [holder, waiter] = [group.open(), group.open()];
      const token = group.lock(holder, 'x', { key: 'k' });
      group.wait(waiter, 'x');
      free(group, holder, token);
      expect(group.holder('x')).toEqual({ session: waiter, token: token + 1 });
    }
  });

  it('case B16: each failed call leaves session and queue as they were', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    const before = traceOf(group.state);
    const refused = [
      group.acquire(b, '', {}),
      group.acquire(b, 'x', { waitMs: -1 }),
      group.acquire(b, 'x', { attach: 9 }),
      group.acquire(99, 'x'),
      group.release(b, 'x', 1),
      group.release(b, 'x', 99),
      group.attach(b, 1),
    ];
    for (const result of refused) expect(result.type).toBe('refused');
    expect(traceOf(group.state)).toEqual(before);
    group.close(b);
    expect(group.state.sessions.has(b)).toBe(false);
  });
});

describe('lost answers and retries', () => {
  it('case C01: a release sent again does not touch the newer grant of the same session', () => {
    const group = new TestGroup();
    const session = group.open();
    const old = group.lock(session, 'x');
    const release = group.releaseCommand(session, 'x', old);
    group.run([release]);
    const token = group.lock(session, 'x');
    expect(group.one(release)).toMatchObject({ type: 'refused', code: 'STALE_TOKEN' });
    expect(group.holder('x')).toEqual({ session, token });
  });

  it('case C06: who holds already does not enter again by being the same', () => {
    const group = new TestGroup();
    const session = group.open();
    const token = group.lock(session, 'x', { owner: 'thread-1' });
    expect(group.acquire(session, 'x', { owner: 'thread-1' })).toMatchObject({ code: 'HELD' });
    group.wait(session, 'x', { owner: 'thread-1', key: 'again' });
    expect(group.release(session, 'x', token).events).toMatchObject([
      { type: 'released', token },
      { type: 'granted', key: 'again', token: token + 1 },
    ]);
  });

  it('case C07: an acquire sent ten times counts once, and one release frees it', () => {
    const group = new TestGroup();
    const session = group.open();
    const request = group.acquireCommand(session, 'x', { key: 'k' });
    const { results } = group.run(Array.from({ length: 10 }, () => request));
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
    const token = group.holder('x')?.token ?? 0;
    expect(group.release(session, 'x', token).events).toMatchObject([{ type: 'released' }]);
    expect(group.state).toMatchObject({ holds: 0, waits: 0 });
  });
});

describe('release by the wrong party, release twice', () => {
  it('case D01: a release without a lock is NOT_HELD, and no other lock changes', () => {
    const group = new TestGroup();
    const session = group.open();
    for (const name of ['a', 'a/b', 'ab']) group.lock(session, name);
    const before = traceOf(group.state);
    for (const name of ['', '/', 'a/', 'b', 'a/b/c']) {
      for (const token of [0, 1, 2, 3]) {
        expect(group.release(session, name, token)).toMatchObject({ code: 'NOT_HELD' });
      }
    }
    expect(traceOf(group.state)).toEqual(before);
  });

  it('case D03: an old owner whose lease has ended cannot release the new owner’s lock', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const old = group.lock(a, 'x');
    group.wait(b, 'x');
    group.breakLock('x', old);
    group.pass(TTL_MS);
    const now = group.holder('x');
    expect(group.release(a, 'x', old)).toMatchObject({ code: 'STALE_TOKEN' });
    group.expire(a);
    expect(group.release(a, 'x', old)).toMatchObject({ code: 'SESSION_EXPIRED' });
    expect(group.holder('x')).toEqual(now);
  });

  it('case D06: the timer of an earlier hold does not end a later one', () => {
    const group = new TestGroup();
    const session = group.open({ maxHoldMs: 2_000 });
    const first = group.lock(session, 'x');
    group.pass(300);
    group.release(session, 'x', first);
    group.pass(1_600);
    const second = group.lock(session, 'x');
    expect(group.pass(100)).toEqual([]);
    expect(group.holder('x')).toEqual({ session, token: second });
    expect(nextDue(group.state)).toBe(1_900 + 2_000);
  });

  it('case D11: one session takes and gives back one name 10,000 times', () => {
    const group = new TestGroup({ checked: false });
    const session = group.open();
    let acks: string[] = [];
    for (let i = 1; i <= 10_000; i++) {
      const key = `k${i}`;
      const command = group.acquireCommand(session, 'x', { key, acks });
      const { results, events } = group.run([command, group.releaseCommand(session, 'x', i)], 1);
      expect(results).toEqual([{ type: 'granted', token: i }, { type: 'done' }]);
      expect(events).toHaveLength(2);
      acks = [key];
    }
    expect(group.session(session).keys.size).toBe(1);
    expect(group.state).toMatchObject({ holds: 0, timers: { size: 0 }, locks: new Map() });
  });
});

describe('time', () => {
  it('case E02: limits of days neither fire at once nor keep anybody busy', () => {
    const group = new TestGroup({ config: { maxHoldMs: HOLD_MS_MAX } });
    const [a, b] = [group.open({ maxHoldMs: HOLD_MS_MAX }), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { waitMs: WAIT_MS_MAX, key: 'w' });
    expect(group.pass(0)).toEqual([]);
    expect(hasBacklog(group.state)).toBe(false);
    expect(nextDue(group.state)).toBe(DAY_MS);
    expect(group.pass(DAY_MS - 1)).toEqual([]);
    expect(group.pass(1)).toMatchObject([{ type: 'refused', key: 'w', code: 'WAIT_TIMEOUT' }]);
    expect(group.pass(29 * DAY_MS - 1)).toEqual([]);
    expect(hasBacklog(group.state)).toBe(false);
    expect(group.pass(1)).toMatchObject([{ type: 'revoking', token, cause: 'maxHold' }]);
  });

  it('case E09: a lock-delay of zero is zero', () => {
    const group = new TestGroup({ config: { lockDelayMs: 0 } });
    const [a, b] = [group.open({ ttlMs: 10_000 }), group.open({ ttlMs: 25_000 })];
    group.lock(a, 'x');
    group.wait(b, 'x');
    expect(group.expire(a).events).toMatchObject([
      { type: 'sessionEnding' },
      { type: 'expired' },
      { type: 'granted', session: b },
      { type: 'sessionEnded' },
    ]);
  });

  it('case E21: the time of a hold counts from its grant, not from its request', () => {
    const group = new TestGroup({ config: { maxHoldMs: 10_000 } });
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { waitMs: 60_000 });
    group.pass(9_000);
    group.release(a, 'x', token);
    // Its wait would have ended at 60 s; its hold runs from 9 s on.
    expect(group.pass(9_999)).toEqual([]);
    expect(group.pass(1)).toMatchObject([{ type: 'revoking', session: b, until: 19_000 + TTL_MS }]);
    expect(group.holder('x')?.session).toBe(b);
  });

  it('case E22: who comes long after a holder died is granted at once', () => {
    const group = new TestGroup({ config: { lockDelayMs: 5_000 } });
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.expire(a);
    group.pass(DAY_MS);
    expect(group.acquire(b, 'x')).toMatchObject({ type: 'granted' });
  });

  it('case E23: the holder’s TTL alone decides how long it may keep a revoked lock', () => {
    const group = new TestGroup();
    const [long, short] = [group.open({ ttlMs: 60_000 }), group.open({ ttlMs: 5_000 })];
    const token = group.lock(long, 'x');
    group.wait(short, 'x');
    group.breakLock('x', token);
    expect(group.pass(59_999)).toEqual([]);
    expect(eventsOf(group.pass(1), 'granted')).toMatchObject([{ session: short }]);
  });
});

describe('fairness', () => {
  it('case F04: 1,000 waiters on one name are all granted once, in the order they came', () => {
    const group = new TestGroup({ checked: false });
    const sessions = Array.from({ length: 100 }, () => group.open());
    const pick = (i: number): number => sessions[(i * 37) % 100] as number;
    const token = group.lock(pick(0), 'x', { key: 'first' });
    const waits = Array.from({ length: 1_000 }, (_, i) => `w${i}`);
    group.run(waits.map((key, i) => group.acquireCommand(pick(i), 'x', { key, waitMs: 600_000 })));
    const granted: string[] = [];
    let holder = { session: pick(0), token };
    for (;;) {
      const { events } = group.release(holder.session, 'x', holder.token);
      const next = eventsOf(events, 'granted');
      expect(next.length).toBeLessThanOrEqual(1);
      if (next[0] === undefined) break;
      granted.push(next[0].key);
      holder = next[0];
    }
    expect(granted).toEqual(waits);
    expect(group.state.locks.size).toBe(0);
  });

  it('case F03: 1,000 dead waiters are passed over in one entry', () => {
    const group = new TestGroup({ checked: false });
    const [a, alive] = [group.open(), group.open()];
    const dead = Array.from({ length: 1_000 }, () => group.open());
    const token = group.lock(a, 'x');
    group.run(dead.map((session) => group.acquireCommand(session, 'x', { waitMs: 600_000 })));
    group.wait(alive, 'x', { key: 'alive' });
    const { events } = group.run([
      { type: 'expireSessions', sessions: dead, cause: 'expired' },
      group.releaseCommand(a, 'x', token),
    ]);
    expect(eventsOf(events, 'granted')).toMatchObject([{ key: 'alive' }]);
  });
});
