/** How holds end: clean or not, one by one or with their session (rules C8, C10). */
import { describe, expect, it } from 'vitest';
import { eventsOf, TestGroup, TTL_MS } from '../../test/support/core.ts';
import type { Command, LockEvent, SessionId, Token } from '../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { sessionStatus } from './index.ts';

const DELAY_MS = 3_000;

interface Held {
  readonly group: TestGroup;
  readonly holder: SessionId;
  readonly waiter: SessionId;
  readonly token: Token;
}

/** `x` is held under key `k`, and one session waits for it. */
function heldAndWaitedFor(config: Parameters<TestGroup['configure']>[0] = {}): Held {
  const group = new TestGroup({ config: { lockDelayMs: DELAY_MS, ...config } });
  const holder = group.open();
  const waiter = group.open({ identity: { account: 'other/waiter', podUid: '' } });
  const token = group.lock(holder, 'x', { key: 'k' });
  group.wait(waiter, 'x', { key: 'w' });
  return { group, holder, waiter, token };
}

type End = (held: Held) => readonly LockEvent[];

describe('clean and unclean ends', () => {
  const clean: [what: string, end: End][] = [
    ['a release', ({ group, holder, token }) => group.release(holder, 'x', token).events],
    ['a cancel', ({ group, holder }) => group.cancel(holder, 'k').events],
    ['DELETE of the session', ({ group, holder }) => group.close(holder).events],
    ['break --now', ({ group, token }) => group.breakLock('x', token, true).events],
  ];

  it.each(clean)('rule C8: %s frees the lock at once', (_what, end) => {
    const held = heldAndWaitedFor();
    const events = end(held);
    expect(eventsOf(events, 'delayed')).toEqual([]);
    expect(eventsOf(events, 'granted')).toMatchObject([{ session: held.waiter }]);
  });

  const unclean: [what: string, end: End][] = [
    ['session expiry', ({ group, holder }) => group.expire(holder).events],
    ['a closed application stream', ({ group, holder }) => group.close(holder, false).events],
    [
      'a command of the session that threw',
      ({ group, holder }) =>
        group.run([{ type: 'expireSessions', sessions: [holder], cause: 'threw' }]).events,
    ],
    [
      'the end of a revoke',
      ({ group, token }) => {
        group.breakLock('x', token);
        return group.pass(TTL_MS);
      },
    ],
    [
      'a release during a revoke',
      ({ group, holder, token }) => {
        group.breakLock('x', token);
        return group.release(holder, 'x', token).events;
      },
    ],
    [
      'a cancel during a revoke',
      ({ group, holder, token }) => {
        group.breakLock('x', token);
        return group.cancel(holder, 'k').events;
      },
    ],
    [
      'DELETE of the session during a revoke',
      ({ group, holder, token }) => {
        group.breakLock('x', token);
        return group.close(holder).events;
      },
    ],
  ];

  it.each(unclean)('rule C8: after %s the name is under lock-delay', (_what, end) => {
    const held = heldAndWaitedFor();
    const { group, waiter } = held;
    const events = end(held);
    expect(eventsOf(events, 'granted')).toEqual([]);
    expect(eventsOf(events, 'delayed')).toEqual([
      { type: 'delayed', name: 'x', until: group.state.at + DELAY_MS },
    ]);
    expect(group.acquire(waiter, 'x')).toMatchObject({ code: 'HELD' });
    expect(group.pass(DELAY_MS - 1)).toEqual([]);
    expect(group.pass(1)).toMatchObject([{ type: 'granted', session: waiter, key: 'w' }]);
  });

  it.each(unclean)('rule C8: after %s with no lock-delay the next has it at once', (_what, end) => {
    const held = heldAndWaitedFor({ lockDelayMs: 0 });
    const events = end(held);
    expect(eventsOf(events, 'delayed')).toEqual([]);
    expect(eventsOf(events, 'granted')).toMatchObject([{ session: held.waiter }]);
  });

  it('rule C8: each way of ending a session is recorded as what it was', () => {
    const group = new TestGroup();
    const end = (command: (session: SessionId) => Command) => {
      const session = group.open();
      const token = group.lock(session, 'y');
      const { events } = group.run([command(session)]);
      return { session, token, events };
    };
    const closed = end((session) => ({ type: 'closeSession', session, attach: 1, clean: true }));
    const grant = { session: closed.session, token: closed.token };
    expect(closed.events).toEqual([
      { type: 'sessionEnding', session: closed.session, cause: 'closed' },
      { type: 'released', name: 'y', ...grant, cause: 'close', key: '', remaining: 0 },
      { type: 'sessionEnded', session: closed.session },
    ]);
    for (const [cause, command] of [
      ['stream', (session: number) => ({ type: 'closeSession', session, attach: 1, clean: false })],
      ['expired', (session: number) => ({ type: 'expireSessions', sessions: [session], cause: 'expired' })],
      ['threw', (session: number) => ({ type: 'expireSessions', sessions: [session], cause: 'threw' })],
    ] as const) {
      const ended = end(command as (session: SessionId) => Command);
      expect(ended.events).toEqual([
        { type: 'sessionEnding', session: ended.session, cause },
        { type: 'expired', name: 'y', session: ended.session, token: ended.token, cause },
        { type: 'sessionEnded', session: ended.session },
      ]);
    }
  });

  it('rule C8: who asks during the lock-delay queues behind those who wait', () => {
    const { group, holder, waiter } = heldAndWaitedFor();
    const third = group.open();
    group.expire(holder);
    expect(group.acquire(third, 'x', { waitMs: 60_000 })).toEqual({ type: 'queued', position: 2 });
    expect(group.pass(DELAY_MS)).toMatchObject([{ type: 'granted', session: waiter }]);
  });
});

describe('sessions that end', () => {
  /** A session that is ending: more locks than one entry can free. */
  function ending(locks = TRANSITIONS_PER_ENTRY_MAX + 3) {
    const group = new TestGroup();
    const session = group.openWithLocks(locks);
    const { events } = group.expire(session);
    return { group, session, events };
  }

  it('rule C10: are told SESSION_EXPIRED from that moment, whatever they ask', () => {
    const { group, session } = ending();
    const asked = group.draft([
      group.acquireCommand(session, 'y', { waitMs: 1_000 }),
      group.releaseCommand(session, `lock-2002-of-${session}`, group.state.lastToken),
      group.cancelCommand(session, 'k'),
      { type: 'attach', session, attach: 2, secretHash: 'a5'.repeat(32) },
      { type: 'closeSession', session, attach: 1, clean: true },
      { type: 'reportStale', session, name: 'x', token: 1, resource: 'r' },
    ]);
    // In the entry that ends it, while most of its locks are still held.
    const again = new TestGroup();
    const same = again.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 3);
    expect(same).toBe(session);
    const first: Command = { type: 'expireSessions', sessions: [session], cause: 'expired' };
    const { results } = again.run([first, ...asked.commands]);
    expect(results[0]).toEqual({ type: 'done' });
    for (const result of results.slice(1)) {
      expect(result).toMatchObject({ type: 'refused', code: 'SESSION_EXPIRED' });
    }
    expect(sessionStatus(again.state, session, 1)).toBeNull();
  });

  it('rule C10: end once, however often they are said to have expired', () => {
    const group = new TestGroup();
    const session = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 3);
    const expire: Command = { type: 'expireSessions', sessions: [session, session], cause: 'expired' };
    const { events } = group.run([expire, expire]);
    expect(eventsOf(events, 'sessionEnding')).toHaveLength(1);
    expect(group.state.backlog).toHaveLength(1);
    expect(eventsOf(group.run([expire]).events, 'sessionEnding', 'sessionEnded')).toEqual([
      { type: 'sessionEnded', session },
    ]);
  });

  it('rule C10: lose their locks in slices, waits first, then by rising token', () => {
    const group = new TestGroup();
    const other = group.open();
    const session = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 3);
    group.lock(other, 'x');
    group.lock(other, 'y');
    group.wait(session, 'y', { key: 'w-y', acks: [...group.session(session).keys.keys()] });
    group.wait(session, 'x', { key: 'w-x' });
    const { events } = group.expire(session);
    expect(events.slice(0, 3)).toMatchObject([
      { type: 'sessionEnding', session, cause: 'expired' },
      { type: 'refused', key: 'w-y', code: 'SESSION_EXPIRED', fromQueue: true },
      { type: 'refused', key: 'w-x', code: 'SESSION_EXPIRED', fromQueue: true },
    ]);
    const tokens = eventsOf(events, 'expired').map(({ token }) => token);
    expect(tokens).toHaveLength(TRANSITIONS_PER_ENTRY_MAX - 2);
    const rest = group.pass(0);
    tokens.push(...eventsOf(rest, 'expired').map(({ token }) => token));
    expect(tokens).toHaveLength(TRANSITIONS_PER_ENTRY_MAX + 3);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(rest.at(-1)).toEqual({ type: 'sessionEnded', session });
    expect(group.state.sessions.has(session)).toBe(false);
  });

  it('rule C10: hand each lock on as it is freed', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.lock(a, 'y');
    group.wait(b, 'x');
    group.wait(b, 'y');
    expect(group.close(a).events).toMatchObject([
      { type: 'sessionEnding' },
      { type: 'released', name: 'x' },
      { type: 'granted', name: 'x', session: b },
      { type: 'released', name: 'y' },
      { type: 'granted', name: 'y', session: b },
      { type: 'sessionEnded', session: a },
    ]);
  });

  it('rule C10: a session id is used once in the life of a log', () => {
    const group = new TestGroup();
    const ids: SessionId[] = [];
    for (let i = 0; i < 5; i++) {
      const session = group.open();
      ids.push(session, group.open());
      group.close(session);
    }
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    expect(group.acquire(ids[0] ?? 0, 'x')).toMatchObject({ code: 'SESSION_EXPIRED' });
    expect(group.attach(ids[0] ?? 0, 100)).toMatchObject({ code: 'SESSION_EXPIRED' });
    group.expire(ids[0] ?? 0, 12_345);
    expect(group.state.sessions.size).toBe(5);
  });

  it('rule C10: many sessions that expire at once are dealt with in the order named', () => {
    const group = new TestGroup();
    const sessions = Array.from({ length: 4 }, () => group.openWithLocks(900));
    const order = [...sessions].reverse();
    const ended = eventsOf(group.expire(...order).events, 'sessionEnded');
    expect(ended.map(({ session }) => session)).toEqual(order.slice(0, 2));
    const later = eventsOf(group.pass(0), 'sessionEnded');
    expect(later.map(({ session }) => session)).toEqual(order.slice(2));
  });
});
