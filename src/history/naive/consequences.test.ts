/** The naive model against src/core/README.md: backlog, strip and timers. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import {
  acquire,
  applyWhileBusy,
  breakGrant,
  brief,
  close,
  configure,
  expire,
  modelGroup,
  namespaceConfig,
  openSession,
  release,
} from '../model.fixture.ts';

describe('the backlog and its budget', () => {
  it('carries out 2,000 consequences an entry and goes on in the next (rule C1)', () => {
    const group = modelGroup({ sessions: 2 });
    for (let i = 0; i < 2_100; i++) group.now(acquire(1, `k${i}`, `n${i}`, { acks: [`k${i - 1}`] }));
    const first = group.now(expire(1));
    expect(first.events).toHaveLength(2_001);
    expect(group.model.hasWork).toBe(true);
    expect(group.now(acquire(2, 'k', 'n2050')).results).toEqual([{ type: 'granted', token: 2_101 }]);
    const types = group.history.at(-1)?.events.map((event) => event.type) ?? [];
    expect(types).toHaveLength(102);
    expect(types.at(-2)).toBe('sessionEnded');
    expect(group.model.hasWork).toBe(false);
  });

  it('a session with no step left is done at once, even when the budget is used up', () => {
    const group = modelGroup({ sessions: 1 });
    for (let i = 0; i < 2_000; i++) group.now(acquire(1, `k${i}`, `n${i}`, { acks: [`k${i - 1}`] }));
    expect(brief(group.now(expire(1)).events).at(-1)).toBe('sessionEnded s1');
    expect(group.now().events).toEqual([]);
  });

  it('the backlog goes before timers, timers before commands', () => {
    const group = modelGroup({ sessions: 3 });
    for (let i = 0; i < 2_001; i++) group.now(acquire(1, `k${i}`, `n${i}`, { acks: [`k${i - 1}`] }));
    group.now(acquire(2, 'w', 'n2000', { waitMs: 60_000 }), acquire(2, 'v', 'n1999', { waitMs: 59_000 }));
    group.now(acquire(3, 'h', 'x'), acquire(3, 'u', 'n2000', { waitMs: 59_000 }));
    group.now(expire(1));
    const { events } = group.apply(59_000, release(3, 'x', 2_002));
    expect(brief(events)).toEqual([
      'expired n2000 s1 t2001 expired',
      'granted n2000 s2 t2004',
      'sessionEnded s1',
      'refused n2000 s3 WAIT_TIMEOUT',
      'released x s3 t2002 release',
    ]);
  });
});

describe('strip: consumer removed, namespace gone (rule C9)', () => {
  it('refuses waits and revokes holds of sessions that are no consumers, in order of id', () => {
    const group = modelGroup({ sessions: 2 });
    group.now(openSession({ identity: { account: 'billing/batch', podUid: '' } }));
    group.now(acquire(2, 'k2', 'b'), acquire(1, 'k1', 'a'), acquire(3, 'k3', 'c'), acquire(1, 'w1', 'c'));
    const billing = namespaceConfig({ consumers: [{ namespace: 'billing', serviceAccounts: null }] });
    expect(brief(group.now(configure(2, billing)).events)).toEqual([
      'configured',
      'refused c s1 FORBIDDEN',
      'revoking a s1 t2 consumerRemoved',
      'revoking b s2 t1 consumerRemoved',
    ]);
    expect(group.code(release(1, 'a', 2))).toBe('done');
    expect(brief(group.apply(15_000).events)).toEqual(['revoked b s2 t1 consumerRemoved']);
    expect(group.result(acquire(1, 'w1', 'c'))).toEqual({ type: 'ended', by: 'FORBIDDEN', token: 0 });
    expect(group.result(acquire(2, 'k2', 'b'))).toEqual({ type: 'ended', by: 'REVOKED', token: 1 });
  });

  it('strips everybody when the namespace is gone, but not twice what is being revoked', () => {
    const group = modelGroup({ sessions: 1 });
    group.now(acquire(1, 'k1', 'a'), acquire(1, 'k2', 'b'), acquire(1, 'w', 'a'), breakGrant('a', 1));
    expect(brief(group.now(configure(2, null)).events)).toEqual([
      'configured',
      'refused a s1 NAMESPACE_NOT_FOUND',
      'revoking b s1 t2 namespaceDeleted',
    ]);
  });

  it('drops a strip whose session ended meanwhile', () => {
    const group = modelGroup({ sessions: 1 });
    group.now(acquire(1, 'k1', 'a'));
    const { events } = applyWhileBusy(group, 1, configure(2, null), expire(1));
    expect(brief(events)).toEqual(['configured', 'sessionEnding s1 expired']);
    expect(brief(group.apply(1).events)).toContain('expired a s1 t1 expired');
    expect(brief(group.history.at(-1)?.events ?? [])).not.toContain('revoking a s1 t1 namespaceDeleted');
  });
});

describe('timers', () => {
  it('fire in order of due time, then of setting', () => {
    const group = modelGroup({ sessions: 2 });
    group.now(acquire(1, 'ka', 'a'), acquire(1, 'kb', 'b'));
    group.now(acquire(2, 'w1', 'a', { waitMs: 200 }), acquire(2, 'w2', 'b', { waitMs: 100 }));
    group.now(acquire(2, 'w3', 'a', { waitMs: 100 }));
    const { events } = group.apply(300);
    expect(events.map((event) => 'key' in event && event.key)).toEqual(['w2', 'w3', 'w1']);
    expect(events).toMatchObject([{ code: 'WAIT_TIMEOUT', fromQueue: true }, {}, {}]);
  });

  it('max hold: the lower of session and namespace; revoke, one TTL, unclean end', () => {
    const group = modelGroup({ sessions: 0, config: { maxHoldMs: 20_000, lockDelayMs: 1_000 } });
    group.now(
      openSession({ maxHoldMs: 3_000, ttlMs: 5_000 }),
      openSession(),
      openSession({ maxHoldMs: 60_000 }),
    );
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'b'), acquire(3, 'k3', 'c'));
    expect(group.apply(3_000).events).toEqual([
      { type: 'revoking', name: 'a', session: 1, token: 1, cause: 'maxHold', until: 8_000 },
    ]);
    expect(group.apply(5_000).events).toEqual([
      { type: 'revoked', name: 'a', session: 1, token: 1, cause: 'maxHold', unsafe: false },
      { type: 'delayed', name: 'a', until: 9_000 },
    ]);
    expect(brief(group.apply(12_000).events)).toEqual([
      'revoking b s2 t2 maxHold',
      'revoking c s3 t3 maxHold',
    ]);
  });

  it('a lock-delay with nobody waiting costs one consequence and leaves nothing', () => {
    const group = modelGroup({ config: { lockDelayMs: 1_000 } });
    group.now(acquire(1, 'k1', 'a'), close(1, false));
    expect(group.model.view()).toMatchObject({ delayed: [{ name: 'a', until: 1_000 }], timers: 1 });
    expect(group.apply(1_000).events).toEqual([]);
    expect(group.model.view()).toMatchObject({ delayed: [], timers: 0 });
  });
});
