/** The naive model against src/core/README.md: acquire. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import { acquire, close, configure, expire, modelGroup, namespaceConfig, release } from '../model.fixture.ts';

describe('acquire', () => {
  it('grants a free name: next token, event and answer', () => {
    const group = modelGroup();
    const { events, results } = group.now(acquire(1, 'k1', 'a', { owner: 'job 7' }));
    expect(results).toEqual([{ type: 'granted', token: 1 }]);
    expect(events).toEqual([
      {
        type: 'granted',
        name: 'a',
        session: 1,
        key: 'k1',
        token: 1,
        mode: 'exclusive',
        permits: 1,
        owner: 'job 7',
        joined: false,
        fromQueue: false,
        waitedMs: 0,
      },
    ]);
  });

  it('queues behind a holder with place and end of the wait', () => {
    const group = modelGroup({ sessions: 3 });
    group.apply(100, acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'));
    const { events, results } = group.apply(50, acquire(3, 'k3', 'a', { waitMs: 1_000 }));
    expect(results).toEqual([{ type: 'queued', position: 2 }]);
    expect(events).toEqual([
      {
        type: 'queued',
        name: 'a',
        session: 3,
        key: 'k3',
        mode: 'exclusive',
        permits: 1,
        position: 2,
        waitUntil: 1_150,
      },
    ]);
  });

  it('1: refuses unknown and ending sessions and other attach numbers, without a trace', () => {
    const group = modelGroup();
    group.now(close(2));
    expect(group.code(acquire(9, 'k', 'a'))).toBe('SESSION_EXPIRED');
    expect(group.code(acquire(2, 'k', 'a'))).toBe('SESSION_EXPIRED');
    expect(group.code(acquire(1, 'k', 'a', { attach: 2 }))).toBe('SUPERSEDED');
    expect(group.code(acquire(1, 'k', 'a', { attach: 0 }))).toBe('SUPERSEDED');
    expect(group.model.view().sessions[0]?.keys).toEqual([]);
  });

  it('2: acks settle held keys, forget ended ones, ignore waiting and unknown ones', () => {
    const group = modelGroup();
    group.now(acquire(1, 'held', 'a'), acquire(2, 'other', 'b'), acquire(1, 'waits', 'b'));
    group.now(acquire(1, 'ended', 'b', { waitMs: 0 }));
    group.now(acquire(1, 'new', 'c', { acks: ['held', 'waits', 'ended', 'nothing'] }));
    expect(group.model.view().sessions[0]?.keys).toEqual([
      { key: 'held', is: 'held', settled: true },
      { key: 'waits', is: 'waiting', settled: false },
      { key: 'new', is: 'held', settled: false },
    ]);
  });

  it('2: acks count even when the acquire is refused as invalid', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.code(acquire(1, 'k2', '', { acks: ['k1'] }))).toBe('INVALID');
    expect(group.model.view().sessions[0]?.keys).toEqual([{ key: 'k1', is: 'held', settled: true }]);
  });

  it('3: answers a repeat from the state now, without an event', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'));
    const repeat = acquire(3, 'k3', 'a', { waitMs: 7, purpose: 'other' });
    expect(group.now(repeat)).toEqual({ events: [], results: [{ type: 'queued', position: 2 }] });
    group.now(release(1, 'a', 1));
    expect(group.result(repeat)).toEqual({ type: 'queued', position: 1 });
    group.now(release(2, 'a', 2));
    expect(group.now(repeat)).toEqual({ events: [], results: [{ type: 'granted', token: 3 }] });
    group.now(release(3, 'a', 3));
    expect(group.result(repeat)).toEqual({ type: 'ended', by: 'RELEASED', token: 3 });
  });

  it('3: answers a repeat of a refusal with what refused it', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.code(acquire(2, 'k2', 'a', { waitMs: 0 }))).toBe('HELD');
    group.now(release(1, 'a', 1));
    expect(group.result(acquire(2, 'k2', 'a', { waitMs: 0 }))).toEqual({
      type: 'ended',
      by: 'HELD',
      token: 0,
    });
  });

  it.each([
    ['name', { name: 'b' }],
    ['mode', { mode: 'shared' }],
    ['permits', { permits: 2 }],
    ['owner', { owner: 'other' }],
    ['reentrant', { reentrant: true }],
  ] as const)('3: refuses a repeat with another %s, and nothing changes', (_what, other) => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    const before = group.model.view();
    expect(group.now(acquire(1, 'k1', 'a', other))).toMatchObject({
      events: [],
      results: [{ type: 'refused', code: 'INVALID' }],
    });
    expect(group.model.view()).toEqual(before);
  });

  it('4: refuses with 256 unsettled outcomes until one is settled', () => {
    const group = modelGroup();
    group.now(acquire(2, 'holder', 'busy'));
    for (let i = 0; i < 255; i++) group.now(acquire(1, `k${i}`, 'busy', { waitMs: 0 }));
    group.now(acquire(1, 'k255', 'free'));
    expect(group.now(acquire(1, 'k256', ''))).toMatchObject({
      events: [],
      results: [{ code: 'QUOTA_EXCEEDED' }],
    });
    expect(group.code(acquire(1, 'k255', 'free'))).toBe('granted');
    expect(group.code(acquire(1, 'k256', 'other', { acks: ['k7'] }))).toBe('granted');
  });

  it.each([
    ['an empty key', { key: '' }],
    ['a key of 65 bytes', { key: `${'é'.repeat(32)}x` }],
    ['an empty name', { name: '' }],
    ['a name of 513 bytes', { name: 'n'.repeat(513) }],
    ['a lone surrogate', { name: '\ud800' }],
    ['an unknown mode', { mode: 'write' as 'shared' }],
    ['two permits of an exclusive lock', { permits: 2 }],
    ['two permits of a shared lock', { mode: 'shared', permits: 2 }],
    ['no permits', { permits: 0 }],
    ['no permits of a semaphore', { mode: 'semaphore', permits: 0 }],
    ['half a permit', { mode: 'semaphore', permits: 1.5 }],
    ['10,001 permits', { mode: 'semaphore', permits: 10_001 }],
    ['an owner too long', { owner: 'o'.repeat(257) }],
    ['a purpose too long', { purpose: 'p'.repeat(1_025) }],
    ['a negative wait', { waitMs: -1 }],
    ['a broken wait', { waitMs: 0.5 }],
    ['a wait over 24 h', { waitMs: 86_400_001 }],
  ] as const)('4: refuses %s without an outcome', (_what, wrong) => {
    const group = modelGroup({ config: { maxWaitMs: 86_400_000 } });
    expect(group.now(acquire(1, 'k1', 'a', wrong))).toMatchObject({
      events: [],
      results: [{ code: 'INVALID' }],
    });
    expect(group.model.view().sessions[0]?.keys).toEqual([]);
  });

  it('4: takes what is just within the limits', () => {
    const group = modelGroup({ config: { maxWaitMs: 86_400_000 } });
    const widest = { owner: 'o'.repeat(256), purpose: 'p'.repeat(1_024), waitMs: 86_400_000 };
    expect(group.code(acquire(1, 'é'.repeat(32), 'n'.repeat(512), widest))).toBe('granted');
  });

  it.each([
    ['NAMESPACE_NOT_FOUND', null],
    ['FORBIDDEN', { consumers: [] }],
    ['FORBIDDEN', { consumers: [{ namespace: 'pay', serviceAccounts: null }] }],
    ['FORBIDDEN', { consumers: [{ namespace: 'payments', serviceAccounts: ['other'] }] }],
    ['INVALID', { modes: [] }],
    ['INVALID', { maxWaitMs: 59_999 }],
    ['QUOTA_EXCEEDED', { locksPerClient: 0 }],
    ['QUOTA_EXCEEDED', { heldLocks: 0 }],
  ] as const)('5, 6: %s is an outcome that a repeat finds again', (code, config) => {
    const group = modelGroup();
    group.now(configure(2, config === null ? null : namespaceConfig(config)));
    const { events, results } = group.now(acquire(1, 'k1', 'a'));
    expect(events).toEqual([{ type: 'refused', name: 'a', session: 1, key: 'k1', code, fromQueue: false }]);
    expect(results).toMatchObject([{ type: 'refused', code }]);
    expect(group.result(acquire(1, 'k1', 'a'))).toEqual({ type: 'ended', by: code, token: 0 });
  });

  it.each([
    ['everybody', null],
    ['all accounts of the namespace', [{ namespace: 'payments', serviceAccounts: null }]],
    ['this account', [{ namespace: 'payments', serviceAccounts: ['other', 'payout-worker'] }]],
  ] as const)('5: grants when the consumers are %s', (_who, consumers) => {
    const group = modelGroup();
    group.now(configure(2, namespaceConfig({ consumers })));
    expect(group.code(acquire(1, 'k1', 'a'))).toBe('granted');
  });

  it('5: checks in the order of the text', () => {
    const group = modelGroup();
    group.now({ type: 'quarantine', name: 'a', reason: '' });
    const strict = namespaceConfig({ modes: [], maxWaitMs: 0, locksPerClient: 0, consumers: [] });
    const code = (version: number, config: Partial<typeof strict>): string => {
      group.now(configure(version, { ...strict, ...config }));
      return group.code(acquire(1, `k${version}`, 'a'));
    };
    expect(code(2, {})).toBe('FORBIDDEN');
    expect(code(3, { consumers: null })).toBe('INVALID');
    expect(code(4, { consumers: null, modes: ['exclusive'] })).toBe('INVALID');
    expect(code(5, { consumers: null, modes: ['exclusive'], maxWaitMs: 60_000 })).toBe('QUARANTINED');
  });

  it('5: counts waiting and held keys against the quota of the client, ended ones not', () => {
    const group = modelGroup({ config: { locksPerClient: 2 } });
    group.now(acquire(2, 'k', 'busy'), acquire(1, 'k1', 'a'), acquire(1, 'k2', 'busy'));
    expect(group.code(acquire(1, 'k3', 'b'))).toBe('QUOTA_EXCEEDED');
    group.now(release(1, 'a', 2));
    expect(group.code(acquire(1, 'k4', 'b'))).toBe('granted');
  });

  it('7: HELD without waiting, QUEUE_FULL by name and by namespace', () => {
    const group = modelGroup({ sessions: 4, config: { maxWaitersPerName: 1, waiters: 2 } });
    group.now(acquire(1, 'ka', 'a'), acquire(1, 'kb', 'b'), acquire(1, 'kc', 'c'));
    expect(group.code(acquire(2, 'k1', 'a', { waitMs: 0 }))).toBe('HELD');
    expect(group.code(acquire(2, 'k2', 'a'))).toBe('queued');
    expect(group.code(acquire(3, 'k3', 'a'))).toBe('QUEUE_FULL');
    expect(group.code(acquire(3, 'k4', 'b'))).toBe('queued');
    expect(group.code(acquire(4, 'k5', 'c'))).toBe('QUEUE_FULL');
  });

  it('7: a delayed name is not free', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'));
    group.now(expire(1));
    expect(group.code(acquire(2, 'k2', 'a', { waitMs: 0 }))).toBe('HELD');
    expect(group.code(acquire(2, 'k3', 'a'))).toBe('queued');
  });

  it('a session may queue behind itself: there is no implicit re-entry (case C06)', () => {
    const group = modelGroup();
    expect(group.code(acquire(1, 'k1', 'a'))).toBe('granted');
    expect(group.code(acquire(1, 'k2', 'a'))).toBe('queued');
  });
});
