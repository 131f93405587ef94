/** acquire and release: who is granted, who is refused, what nobody remembers (rules C3, C5, C7, C16). */
import { describe, expect, it } from 'vitest';
import { eventsOf, openCommand, TestGroup, traceOf } from '../../test/support/core.ts';
import type { Acquire, Command, CommandResult } from '../api/entry.ts';
import {
  KEY_BYTES_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  TRANSITIONS_PER_ENTRY_MAX,
  WAIT_MS_MAX,
} from '../api/limits.ts';

/**
 * A lock `x` with a holder and two waiters, and a way to let the first waiter become unfit *without* anybody noticing
 * before its turn: a big session ends first and uses up the budget of the entry.
 */
function queueWithTurn() {
  const group = new TestGroup();
  const big = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX);
  const holder = group.open();
  const first = group.open({ identity: { account: 'other/first', podUid: '' } });
  const second = group.open();
  const token = group.lock(holder, 'x');
  group.wait(first, 'x', { key: 'first', waitMs: 5_000 });
  group.wait(second, 'x', { key: 'second', waitMs: 60_000 });
  const turn = (commands: readonly Command[]) => {
    const { events } = group.run([
      { type: 'closeSession', session: big, attach: 1, clean: true },
      ...commands,
      group.releaseCommand(holder, 'x', token),
    ]);
    // The release makes one step at the head of the queue; the backlog makes the others, as soon as there is budget.
    const later = group.pass(0);
    return [...events, ...later].filter(
      (event) => 'name' in event && event.name === 'x' && event.type !== 'released',
    );
  };
  return { group, first, second, turn };
}

describe('the turn of a waiter', () => {
  it('rule C3: an ending session is passed over', () => {
    const { first, second, turn } = queueWithTurn();
    const events = turn([{ type: 'expireSessions', sessions: [first], cause: 'expired' }]);
    expect(events).toMatchObject([
      { type: 'refused', key: 'first', code: 'SESSION_EXPIRED', fromQueue: true },
      { type: 'granted', session: second, key: 'second', fromQueue: true },
    ]);
  });

  it('rule C3: a wait that is over is passed over, though its timer has not fired yet', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    // Its end takes two entries, and uses up the budget of both, so that the timer of `first` has to wait.
    const big = group.openWithLocks(2 * TRANSITIONS_PER_ENTRY_MAX);
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { key: 'first', waitMs: 5_000 });
    group.wait(b, 'x', { key: 'second', waitMs: 60_000 });
    group.close(big);
    const { events } = group.run([group.releaseCommand(a, 'x', token)], 5_000);
    const later = group.pass(0);
    expect([...events, ...later].filter((event) => 'name' in event && event.name === 'x')).toMatchObject([
      { type: 'released' },
      { type: 'refused', key: 'first', code: 'WAIT_TIMEOUT', fromQueue: true },
      { type: 'granted', key: 'second', waitedMs: 5_000 },
    ]);
  });

  it('rule C3: nobody is granted in a namespace that is gone', () => {
    const { group, turn } = queueWithTurn();
    const events = turn([group.configureCommand(null)]);
    expect(events).toMatchObject([
      { type: 'refused', key: 'first', code: 'NAMESPACE_NOT_FOUND' },
      { type: 'refused', key: 'second', code: 'NAMESPACE_NOT_FOUND' },
    ]);
  });

  it('rule C3: an account that is no consumer any more is passed over', () => {
    const { group, turn } = queueWithTurn();
    const consumers = [{ namespace: 'payments', serviceAccounts: null }];
    const events = turn([group.configureCommand({ consumers })]);
    expect(events).toMatchObject([
      { type: 'refused', key: 'first', code: 'FORBIDDEN' },
      { type: 'granted', key: 'second' },
    ]);
  });

  it('rule C3: a mode that is not allowed any more is not granted', () => {
    const { group, turn } = queueWithTurn();
    const events = turn([group.configureCommand({ modes: ['shared'] })]);
    expect(events).toMatchObject([
      { type: 'refused', key: 'first', code: 'INVALID' },
      { type: 'refused', key: 'second', code: 'INVALID' },
    ]);
  });

  it('rule C3: a lowered limit of held locks binds who waits', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.lock(a, 'y');
    group.wait(b, 'x', { key: 'w' });
    group.configure({ heldLocks: 1 });
    expect(group.release(a, 'x', token).events).toMatchObject([
      { type: 'released' },
      { type: 'refused', key: 'w', code: 'QUOTA_EXCEEDED', fromQueue: true },
    ]);
    expect(group.lockState('x')).toBeUndefined();
  });

  it('rule C3: a cancelled key is not granted', () => {
    const { group, first, turn } = queueWithTurn();
    const events = turn([group.cancelCommand(first, 'first')]);
    expect(events).toMatchObject([
      { type: 'cancelled', key: 'first', token: 0 },
      { type: 'granted', key: 'second' },
    ]);
  });

  it('rule C3: otherwise the queue is first in, first out, and a release grants exactly one', () => {
    const group = new TestGroup();
    const [holder, ...waiters] = Array.from({ length: 6 }, () => group.open()) as [number, ...number[]];
    group.lock(holder, 'x');
    for (const [i, waiter] of waiters.entries()) {
      expect(group.wait(waiter, 'x')).toEqual({ type: 'queued', position: i + 1 });
    }
    let before = group.holder('x');
    for (const waiter of waiters) {
      const { events } = group.release(before?.session ?? 0, 'x', before?.token ?? 0);
      expect(eventsOf(events, 'granted')).toMatchObject([{ session: waiter, fromQueue: true }]);
      expect(events).toHaveLength(2);
      const now = group.holder('x');
      expect(now?.token).toBeGreaterThan(before?.token ?? 0);
      before = now;
    }
  });
});

describe('requests that are not in order', () => {
  const long = (bytes: number) => 'é'.repeat(Math.floor(bytes / 2)) + 'e'.repeat(bytes % 2);
  const malformed: [what: string, field: string, differs: Partial<Acquire>][] = [
    ['an empty name', 'name', { name: '' }],
    ['a name over the limit', 'name', { name: long(NAME_BYTES_MAX + 1) }],
    ['a name with half a character', 'name', { name: 'a\ud800' }],
    ['an empty key', 'key', { key: '' }],
    ['a key over the limit', 'key', { key: long(KEY_BYTES_MAX + 1) }],
    ['a key with half a character', 'key', { key: '\udc00' }],
    ['an owner over the limit', 'owner', { owner: long(OWNER_BYTES_MAX + 1) }],
    ['a purpose over the limit', 'purpose', { purpose: long(PURPOSE_BYTES_MAX + 1) }],
    ['a mode that does not exist', 'mode', { mode: 'other' as Acquire['mode'] }],
    ['two permits of an exclusive lock', 'permits', { permits: 2 }],
    ['two permits of a shared lock', 'permits', { mode: 'shared', permits: 2 }],
    ['no permit', 'permits', { mode: 'semaphore', permits: 0 }],
    ['too many permits', 'permits', { mode: 'semaphore', permits: PERMITS_MAX + 1 }],
    ['half a permit', 'permits', { mode: 'semaphore', permits: 1.5 }],
    ['a negative wait', 'wait_ms', { waitMs: -1 }],
    ['a wait over a day', 'wait_ms', { waitMs: WAIT_MS_MAX + 1 }],
    ['a broken wait', 'wait_ms', { waitMs: 0.5 }],
    ['no number as a wait', 'wait_ms', { waitMs: Number.NaN }],
  ];

  it.each(malformed)('rule C4: %s is INVALID and leaves no trace', (_what, field, differs) => {
    const group = new TestGroup();
    const session = group.open();
    const before = traceOf(group.state);
    const { results, events } = group.run([group.acquireCommand(session, 'x', { key: 'k', ...differs })]);
    expect(results).toMatchObject([{ type: 'refused', code: 'INVALID', field }]);
    expect(events).toEqual([]);
    expect(traceOf(group.state)).toEqual(before);
  });

  it('rule C4: what is exactly at its limit is accepted', () => {
    const group = new TestGroup();
    const session = group.open();
    const differs = {
      key: long(KEY_BYTES_MAX),
      owner: long(OWNER_BYTES_MAX),
      purpose: long(PURPOSE_BYTES_MAX),
      waitMs: WAIT_MS_MAX,
    };
    expect(group.acquire(session, long(NAME_BYTES_MAX), differs)).toMatchObject({ type: 'granted' });
  });

  const refusals: [code: string, config: Parameters<TestGroup['configure']>[0], differs: Partial<Acquire>][] =
    [
      ['NAMESPACE_NOT_FOUND', null, {}],
      ['FORBIDDEN', { consumers: [] }, {}],
      ['INVALID', { modes: ['shared'] }, {}],
      ['INVALID', { maxWaitMs: 999 }, { waitMs: 1_000 }],
      ['QUARANTINED', {}, { name: 'quarantined' }],
      ['QUOTA_EXCEEDED', { locksPerClient: 1 }, {}],
      ['QUOTA_EXCEEDED', { heldLocks: 1 }, {}],
      ['HELD', {}, { name: 'held' }],
      ['QUEUE_FULL', { maxWaitersPerName: 1 }, { name: 'held', waitMs: 1_000 }],
      ['QUEUE_FULL', { waiters: 1 }, { name: 'held', waitMs: 1_000 }],
    ];

  it.each(refusals)('rule C5: %s (%j) is an outcome that is remembered', (code, config, differs) => {
    const group = new TestGroup();
    const [session, other] = [group.open(), group.open()];
    group.lock(session, 'held');
    group.wait(other, 'held');
    group.quarantine('quarantined');
    group.configure(config);
    const request = group.acquireCommand(session, 'x', { key: 'k', ...differs });
    const { results, events } = group.run([request]);
    expect(results).toMatchObject([{ type: 'refused', code }]);
    const { name } = request;
    expect(events).toEqual([{ type: 'refused', name, session, key: 'k', code, fromQueue: false }]);
    expect(group.one(request)).toEqual({ type: 'ended', by: code, token: 0 });
    expect(group.session(session).unsettled).toBe(2);
  });

  it('rule C3: the limits of a session count what it holds and waits for, not what is over', () => {
    const group = new TestGroup({ config: { locksPerClient: 2 } });
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.lock(b, 'y');
    group.wait(a, 'y', { key: 'w' });
    expect(group.acquire(a, 'z')).toMatchObject({ code: 'QUOTA_EXCEEDED', limit: 2 });
    group.release(a, 'x', token);
    expect(group.acquire(a, 'z')).toMatchObject({ type: 'granted' });
    group.cancel(a, 'w');
    expect(group.acquire(a, 'x')).toMatchObject({ type: 'granted' });
  });
});

describe('the token of a release', () => {
  function handedOver() {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const old = group.lock(a, 'x');
    group.wait(b, 'x');
    group.release(a, 'x', old);
    return { group, a, b, old, token: group.holder('x')?.token ?? 0 };
  }

  const wrongs: [
    what: string,
    code: string,
    release: (held: ReturnType<typeof handedOver>) => CommandResult,
  ][] = [
    ['an older token', 'STALE_TOKEN', ({ group, a, old }) => group.release(a, 'x', old)],
    ['an older token of the holder', 'STALE_TOKEN', ({ group, b, old }) => group.release(b, 'x', old)],
    ['the token from another session', 'NOT_HELD', ({ group, a, token }) => group.release(a, 'x', token)],
    ['a token of the future', 'NOT_HELD', ({ group, b, token }) => group.release(b, 'x', token + 1)],
    ['the token of another name', 'NOT_HELD', ({ group, b, token }) => group.release(b, 'y', token)],
    ['a free name', 'NOT_HELD', ({ group, a, old }) => group.release(a, 'z', old)],
    ['an unknown session', 'SESSION_EXPIRED', ({ group, token }) => group.release(99, 'x', token)],
    [
      'a superseded attach number',
      'SUPERSEDED',
      ({ group, b, token }) => {
        group.attach(b, 5);
        return group.release(b, 'x', token, { attach: 1 });
      },
    ],
  ];

  it.each(wrongs)('rule C7: %s changes nothing and is told %s', (_what, code, release) => {
    const held = handedOver();
    expect(release(held)).toMatchObject({ type: 'refused', code });
    expect(held.group.holder('x')).toEqual({ session: held.b, token: held.token });
    expect(held.group.state.holds).toBe(1);
  });

  it('rule C7: the right token releases', () => {
    const { group, b, token } = handedOver();
    expect(group.release(b, 'x', token)).toMatchObject({
      type: 'done',
      events: [{ type: 'released', name: 'x', session: b, token, cause: 'release', remaining: 0 }],
    });
    expect(group.holder('x')).toBeNull();
  });
});

describe('nothing remains', () => {
  it('rule C16: a name that is neither held, waited for, delayed nor quarantined does not exist', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const start = traceOf(group.state);
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'released');
    group.wait(b, 'released', { key: 'w' });
    group.cancel(b, 'w');
    group.release(a, 'released', token);
    group.lock(a, 'cancelled', { key: 'c' });
    group.cancel(a, 'c');
    group.breakLock('broken', group.lock(a, 'broken'), true);
    group.lock(b, 'delayed');
    group.expire(b);
    group.quarantine('quarantined');
    group.unquarantine('quarantined');
    expect([...group.state.locks.keys()]).toEqual(['delayed']);
    group.pass(1_000);
    expect(group.state.locks.size).toBe(0);
    expect(group.state.timers.size).toBe(0);
    group.close(a);
    const end = traceOf(group.state);
    expect(end.slice(1)).toEqual(start.slice(1));
  });

  it('rule C16: a refused request leaves no lock behind', () => {
    const group = new TestGroup({ config: { heldLocks: 1 } });
    const session = group.open();
    group.lock(session, 'x');
    expect(group.acquire(session, 'y', { waitMs: 1_000 })).toMatchObject({ code: 'QUOTA_EXCEEDED' });
    group.release(session, 'z', 5);
    group.run([openCommand({ ttlMs: 1 })]);
    expect([...group.state.locks.keys()]).toEqual(['x']);
  });
});
