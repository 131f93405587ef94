/** Forced ends: who loses a lock, when, and what may cut it short (rule C9). */
import { describe, expect, it } from 'vitest';
import { ACCOUNT, eventsOf, openCommand, TestGroup, TTL_MS } from '../../test/support/core.ts';
import type { LockEvent, SessionId, Token } from '../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { hasBacklog, sessionStatus } from './index.ts';

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

describe('forced ends', () => {
  const forced: [cause: string, force: (held: Held) => readonly LockEvent[]][] = [
    ['break', ({ group, token }) => group.breakLock('x', token).events],
    [
      'consumerRemoved',
      ({ group }) => {
        const consumers = [{ namespace: 'other', serviceAccounts: ['waiter'] }];
        return group.run([group.configureCommand({ lockDelayMs: DELAY_MS, consumers })]).events;
      },
    ],
  ];

  it.each(forced)(
    'rule C9: %s takes the lock one TTL after its commit, then comes the lock-delay',
    (cause, force) => {
      const held = heldAndWaitedFor();
      const { group, holder, waiter, token } = held;
      const until = group.state.at + TTL_MS;
      expect(eventsOf(force(held), 'revoking')).toEqual([
        { type: 'revoking', name: 'x', session: holder, token, cause, until },
      ]);
      expect(sessionStatus(group.state, holder, 1)?.revoking).toEqual([{ token, cause }]);
      expect(group.pass(TTL_MS - 1)).toEqual([]);
      expect(group.holder('x')).toEqual({ session: holder, token });
      expect(group.pass(1)).toEqual([
        { type: 'revoked', name: 'x', session: holder, token, cause, unsafe: false },
        { type: 'delayed', name: 'x', until: until + DELAY_MS },
      ]);
      expect(group.acquire(holder, 'x', { key: 'k' })).toEqual({ type: 'ended', by: 'REVOKED', token });
      expect(group.pass(DELAY_MS)).toMatchObject([{ type: 'granted', session: waiter }]);
    },
  );

  it('rule C9: max hold, of the session or of the namespace, whichever is shorter', () => {
    for (const [ofSession, ofNamespace, expected] of [
      [2_000, 60_000, 2_000],
      [0, 60_000, 60_000],
      [120_000, 60_000, 60_000],
    ] as const) {
      const group = new TestGroup({ config: { maxHoldMs: ofNamespace } });
      const session = group.open({ maxHoldMs: ofSession });
      const token = group.lock(session, 'x');
      expect(group.pass(expected - 1)).toEqual([]);
      const until = expected + TTL_MS;
      expect(group.pass(1)).toEqual([
        { type: 'revoking', name: 'x', session, token, cause: 'maxHold', until },
      ]);
      expect(group.pass(TTL_MS)).toMatchObject([{ type: 'revoked', token, cause: 'maxHold' }]);
      expect(group.state.timers.size).toBe(0);
    }
  });

  it('rule C9: a namespace that is removed takes its locks back, and refuses who waits', () => {
    const { group, holder, waiter, token } = heldAndWaitedFor();
    const { events } = group.run([group.configureCommand(null)]);
    expect(events).toMatchObject([
      { type: 'configured' },
      { type: 'revoking', session: holder, token, cause: 'namespaceDeleted' },
      { type: 'refused', session: waiter, key: 'w', code: 'NAMESPACE_NOT_FOUND', fromQueue: true },
    ]);
    expect(group.pass(TTL_MS)).toMatchObject([{ type: 'revoked', cause: 'namespaceDeleted' }]);
    // There is no configuration left that could ask for a lock-delay.
    expect(group.state.locks.size).toBe(0);
  });

  it('rule C9: break --now frees at once, and is recorded as unsafe', () => {
    const { group, holder, waiter, token } = heldAndWaitedFor();
    const grant = { name: 'x', session: holder, token };
    expect(group.breakLock('x', token, true).events).toMatchObject([
      { type: 'broken', ...grant, now: true, reason: 'test', by: 'somebody' },
      { type: 'revoked', ...grant, cause: 'break', unsafe: true },
      { type: 'granted', session: waiter },
    ]);
  });

  it('rule C9: break --now cuts a running revoke short', () => {
    const { group, waiter, token } = heldAndWaitedFor();
    group.breakLock('x', token);
    const { events } = group.breakLock('x', token, true);
    expect(events.map(({ type }) => type)).toEqual(['broken', 'revoked', 'granted']);
    expect(group.holder('x')?.session).toBe(waiter);
    expect(group.state.revoking).toBe(0);
  });

  it('rule C9: break names the token, and does nothing to anybody else', () => {
    const { group, holder, token } = heldAndWaitedFor();
    const ask = (name: string, about: Token) => group.breakLock(name, about);
    expect(ask('x', token - 1).results).toMatchObject([{ code: 'STALE_TOKEN' }]);
    expect(ask('x', token + 1).results).toMatchObject([{ code: 'NOT_HELD' }]);
    expect(ask('free', token).results).toMatchObject([{ code: 'NOT_HELD' }]);
    expect(ask('x', token - 1).events).toEqual([]);
    expect(group.holder('x')).toEqual({ session: holder, token });
    expect(group.state.revoking).toBe(0);
  });

  it('rule C9: a second revoke neither extends nor shortens the first', () => {
    const { group, holder, token } = heldAndWaitedFor();
    group.breakLock('x', token);
    group.pass(TTL_MS - 1_000);
    expect(group.breakLock('x', token).events).toMatchObject([{ type: 'broken' }]);
    expect(group.run([group.configureCommand({ consumers: [] })]).events).not.toContainEqual(
      expect.objectContaining({ type: 'revoking' }),
    );
    expect(group.pass(1_000)).toMatchObject([{ type: 'revoked', session: holder, cause: 'break' }]);
  });

  it('rule C9: when the application gives it up, nobody has to sit out the TTL', () => {
    const { group, holder, waiter, token } = heldAndWaitedFor({ lockDelayMs: 0 });
    group.breakLock('x', token);
    group.pass(1_000);
    expect(group.release(holder, 'x', token).events).toMatchObject([
      { type: 'released' },
      { type: 'granted', session: waiter, waitedMs: 1_000 },
    ]);
    // The timer of the revoke is gone with it.
    expect(eventsOf(group.pass(2 * TTL_MS), 'revoked')).toEqual([]);
    expect(group.holder('x')?.session).toBe(waiter);
  });

  it('rule C9: a removed consumer may attach, keep alive and release, nothing else', () => {
    const { group, holder, token } = heldAndWaitedFor();
    group.configure({ consumers: [{ namespace: 'other', serviceAccounts: null }] });
    expect(group.attach(holder, 2)).toMatchObject({
      type: 'attached',
      grants: [{ name: 'x', token, keys: ['k'], revoking: 'consumerRemoved' }],
    });
    expect(sessionStatus(group.state, holder, 2)).toMatchObject({
      grants: 1,
      revoking: [{ token, cause: 'consumerRemoved' }],
    });
    expect(group.acquire(holder, 'y')).toMatchObject({ code: 'FORBIDDEN' });
    expect(group.one(openCommand())).toMatchObject({ code: 'FORBIDDEN' });
    expect(group.release(holder, 'x', token)).toMatchObject({ type: 'done' });
  });

  it('rule C9: a removed consumer that is let in again keeps what was not revoked yet', () => {
    const group = new TestGroup();
    const big = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 5);
    const strict = { consumers: [{ namespace: 'other', serviceAccounts: null }] };
    const { events } = group.run([group.configureCommand(strict)]);
    expect(eventsOf(events, 'revoking')).toHaveLength(TRANSITIONS_PER_ENTRY_MAX);
    expect(hasBacklog(group.state)).toBe(true);
    expect(group.state.backlog).toMatchObject([{ kind: 'strip', session: { id: big } }]);
    // The next entry would revoke the other five, so the change has to come in the entry that used up the budget.
    const again = new TestGroup();
    const owner = again.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 5);
    const back = { type: 'configure', version: 3, config: again.state.config } as const;
    const both = again.run([again.configureCommand(strict), back]);
    expect(eventsOf(both.events, 'revoking')).toHaveLength(TRANSITIONS_PER_ENTRY_MAX);
    expect(hasBacklog(again.state)).toBe(false);
    expect(again.pass(0)).toEqual([]);
    expect(sessionStatus(again.state, owner, 1)?.revoking).toHaveLength(TRANSITIONS_PER_ENTRY_MAX);
  });

  it('rule C9: a removed consumer waits once for its turn, however often the configuration changes', () => {
    const group = new TestGroup();
    const strict = { consumers: [{ namespace: 'other', serviceAccounts: null }] };
    const [big, small] = [group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 5), group.open()];
    const token = group.lock(small, 'x');
    const versions = [2, 3, 4].map((version) => ({ ...group.configureCommand(strict), version }));
    group.run(versions);
    expect(group.state.backlog).toMatchObject([
      { kind: 'strip', session: { id: big } },
      { kind: 'strip', session: { id: small } },
    ]);
    const revoking = eventsOf(group.pass(0), 'revoking');
    expect(revoking).toHaveLength(6);
    expect(revoking.at(-1)).toMatchObject({ session: small, token });
  });

  it('rule C9: accounts are told apart by namespace and name, or by namespace alone', () => {
    const group = new TestGroup();
    const open = (account: string) => group.open({ identity: { account, podUid: '' } });
    const accounts = [ACCOUNT, 'payments/other', 'payments-2/payout-worker', 'payout-worker', 'payments'];
    const sessions = accounts.map(open);
    const stripped = (consumers: { namespace: string; serviceAccounts: string[] | null }[]) =>
      sessions.filter((session, i) => {
        const token = group.lock(session, `lock-${i}`);
        const { events } = group.run([group.configureCommand({ consumers })]);
        group.configure({});
        group.release(session, `lock-${i}`, token);
        return eventsOf(events, 'revoking').some((event) => event.session === session);
      });
    const [exact, other, ...rest] = sessions;
    expect(stripped([{ namespace: 'payments', serviceAccounts: ['payout-worker'] }])).toEqual([
      other,
      ...rest,
    ]);
    expect(stripped([{ namespace: 'payments', serviceAccounts: null }])).toEqual(rest);
    expect(stripped([])).toEqual(sessions);
    expect(exact).toBe(1);
  });
});
