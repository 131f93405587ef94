/** Idempotency keys: what a repeat is told, and how long outcomes are remembered (rules C4, C5). */
import { describe, expect, it } from 'vitest';
import { TestGroup, traceOf } from '../../test/support/core.ts';
import type { Acquire } from '../api/entry.ts';
import { UNSETTLED_OUTCOMES_MAX } from '../api/limits.ts';

describe('the same key again', () => {
  function threeOutcomes() {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x', { key: 'held' });
    group.wait(b, 'x', { key: 'ahead' });
    group.wait(a, 'x', { key: 'waits' });
    group.acquire(a, 'x', { key: 'refused' });
    const over = group.lock(a, 'y', { key: 'over' });
    group.release(a, 'y', over);
    return { group, a, b, token, over };
  }

  it('rule C4: is answered from the state now', () => {
    const { group, a, b, token, over } = threeOutcomes();
    const ask = (key: string, name = 'x') => group.acquire(a, name, { key, waitMs: 600_000 });
    expect(ask('held')).toEqual({ type: 'granted', token });
    expect(ask('waits')).toEqual({ type: 'queued', position: 2 });
    expect(ask('refused')).toEqual({ type: 'ended', by: 'HELD', token: 0 });
    expect(ask('over', 'y')).toEqual({ type: 'ended', by: 'RELEASED', token: over });
    group.cancel(b, 'ahead');
    expect(ask('waits')).toEqual({ type: 'queued', position: 1 });
    group.release(a, 'x', token);
    expect(ask('held')).toEqual({ type: 'ended', by: 'RELEASED', token });
    expect(ask('waits')).toEqual({ type: 'granted', token: group.holder('x')?.token });
  });

  it('rule C4: changes nothing and causes no event', () => {
    const { group, a } = threeOutcomes();
    const before = traceOf(group.state);
    for (const [key, name] of [
      ['held', 'x'],
      ['waits', 'x'],
      ['refused', 'x'],
      ['over', 'y'],
    ] as const) {
      const { events } = group.run([group.acquireCommand(a, name, { key, waitMs: 1 })]);
      expect(events).toEqual([]);
    }
    expect(traceOf(group.state)).toEqual(before);
  });

  const otherBodies: [field: string, differs: Partial<Acquire>][] = [
    ['name', { name: 'other' }],
    ['mode', { mode: 'shared' }],
    ['permits', { permits: 2 }],
    ['owner', { owner: 'other' }],
    ['re-entrancy', { reentrant: true }],
  ];

  it.each(otherBodies)('rule C4: with another %s is INVALID, and nothing changes', (_field, differs) => {
    const { group, a } = threeOutcomes();
    const before = traceOf(group.state);
    for (const key of ['held', 'waits', 'refused']) {
      const { results, events } = group.run([group.acquireCommand(a, 'x', { key, ...differs })]);
      expect(results).toMatchObject([{ type: 'refused', code: 'INVALID', field: 'key' }]);
      expect(events).toEqual([]);
    }
    expect(traceOf(group.state)).toEqual(before);
  });

  it('rule C4: neither the wait nor the purpose belongs to the compared body', () => {
    const { group, a, token } = threeOutcomes();
    const again = group.acquire(a, 'x', { key: 'held', waitMs: 5, purpose: 'another' });
    expect(again).toEqual({ type: 'granted', token });
  });

  it('rule C4: belongs to its session alone', () => {
    const { group, b, token } = threeOutcomes();
    expect(group.acquire(b, 'x', { key: 'held' })).toMatchObject({ type: 'refused', code: 'HELD' });
    expect(group.holder('x')?.token).toBe(token);
  });

  it('rule C4: starts a new request once its cancel is confirmed', () => {
    const { group, a, token } = threeOutcomes();
    group.cancel(a, 'held');
    const again = group.acquire(a, 'z', { key: 'held' });
    expect(again).toEqual({ type: 'granted', token: group.state.lastToken });
    expect(group.state.lastToken).toBeGreaterThan(token);
  });
});

describe('outcomes until the client settles them', () => {
  /** A session with as many unsettled outcomes as are allowed: refusals, ends and one hold. */
  function fullSession() {
    const group = new TestGroup();
    const [session, other] = [group.open(), group.open()];
    group.lock(other, 'taken');
    group.lock(session, 'x', { key: 'k0' });
    for (let i = 1; i < UNSETTLED_OUTCOMES_MAX; i++) group.acquire(session, 'taken', { key: `k${i}` });
    return { group, session };
  }

  it('rule C5: with 256 of them the next acquire is refused and consumes nothing', () => {
    const { group, session } = fullSession();
    const before = traceOf(group.state);
    const { results, events } = group.run([group.acquireCommand(session, 'free', { key: 'more' })]);
    expect(results).toMatchObject([{ code: 'QUOTA_EXCEEDED', limit: UNSETTLED_OUTCOMES_MAX }]);
    expect(events).toEqual([]);
    expect(traceOf(group.state)).toEqual(before);
  });

  it('rule C5: nothing is ever evicted', () => {
    const { group, session } = fullSession();
    for (let i = 0; i < 10; i++) group.acquire(session, 'free', { key: `more-${i}` });
    group.pass(24 * 3_600_000);
    for (let i = 1; i < UNSETTLED_OUTCOMES_MAX; i++) {
      const again = group.acquire(session, 'taken', { key: `k${i}` });
      expect(again).toEqual({ type: 'ended', by: 'HELD', token: 0 });
    }
    expect(group.session(session).keys.size).toBe(UNSETTLED_OUTCOMES_MAX);
  });

  it.each(['acquire', 'release', 'cancel'] as const)('rule C5: an ack inside %s settles', (type) => {
    const { group, session } = fullSession();
    const acks = ['k0', 'k1', 'k2', 'unknown'];
    const commands = {
      acquire: group.acquireCommand(session, 'free', { key: 'new', acks }),
      release: group.releaseCommand(session, 'nothing', 1, { acks }),
      cancel: group.cancelCommand(session, 'unknown', { acks }),
    };
    group.one(commands[type]);
    const { keys, unsettled } = group.session(session);
    expect(unsettled).toBe(UNSETTLED_OUTCOMES_MAX - 3 + (type === 'acquire' ? 1 : 0));
    expect(keys.has('k1') || keys.has('k2')).toBe(false);
    // A settled hold stays known while it is held, and is forgotten with it.
    expect(keys.get('k0')).toMatchObject({ settled: true, state: { kind: 'held' } });
    group.release(session, 'x', group.holder('x')?.token ?? 0);
    expect(keys.has('k0')).toBe(false);
    expect(group.session(session).unsettled).toBe(unsettled);
  });

  it('rule C5: an ack frees the place of the very acquire that carries it', () => {
    const { group, session } = fullSession();
    expect(group.acquire(session, 'free', { acks: ['k7'] })).toMatchObject({ type: 'granted' });
  });

  it('rule C5: what an acquire settled is not kept with it', () => {
    const { group, session } = fullSession();
    const acks = Array.from({ length: UNSETTLED_OUTCOMES_MAX }, (_, i) => `k${i}`);
    group.acquire(session, 'free', { key: 'new', acks });
    expect(group.session(session).keys.get('new')).toMatchObject({
      state: { kind: 'held' },
      request: { name: 'free', acks: [] },
    });
  });

  it('rule C5: an ack twice, or of a wait, settles nothing more', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x', { key: 'held' });
    group.wait(b, 'x', { key: 'waits' });
    group.cancel(a, 'none', { acks: ['held', 'held'] });
    group.cancel(b, 'none', { acks: ['waits'] });
    expect(group.session(a).unsettled).toBe(0);
    expect(group.session(b).unsettled).toBe(0);
    group.release(a, 'x', token);
    expect(group.session(b).unsettled).toBe(1);
    expect(group.acquire(b, 'x', { key: 'waits' })).toMatchObject({ type: 'granted' });
  });

  it('rule C5: a refused attach number settles nothing', () => {
    const { group, session } = fullSession();
    group.attach(session, 2);
    const stale = { attach: 1, acks: ['k1'] };
    for (const command of [
      group.acquireCommand(session, 'free', stale),
      group.releaseCommand(session, 'x', 1, stale),
      group.cancelCommand(session, 'k0', stale),
    ]) {
      const before = traceOf(group.state);
      const { results, events } = group.run([command]);
      expect(results).toMatchObject([{ code: 'SUPERSEDED' }]);
      expect(events).toEqual([]);
      expect(traceOf(group.state)).toEqual(before);
    }
  });

  it('rule C5: grants out of the queue may go over 256; every one of them is remembered', () => {
    const { group, session } = fullSession();
    group.cancel(session, 'none', { acks: ['k1', 'k2', 'k3'] });
    for (const key of ['w1', 'w2', 'w3', 'w4', 'w5']) group.wait(session, 'taken', { key });
    for (let i = 0; i < 3; i++) group.acquire(session, 'taken', { key: `again-${i}` });
    const taken = group.holder('taken');
    group.release(taken?.session ?? 0, 'taken', taken?.token ?? 0);
    for (let i = 0; i < 4; i++) group.release(session, 'taken', group.holder('taken')?.token ?? 0);
    expect(group.session(session).unsettled).toBe(UNSETTLED_OUTCOMES_MAX + 5);
    for (const key of ['w1', 'w2', 'w3', 'w4']) {
      expect(group.acquire(session, 'taken', { key })).toMatchObject({ type: 'ended', by: 'RELEASED' });
    }
    expect(group.acquire(session, 'taken', { key: 'w5' })).toMatchObject({ type: 'granted' });
  });

  it('rule C5: releases and cancels keep no outcome and may be repeated', () => {
    const group = new TestGroup();
    const session = group.open();
    const token = group.lock(session, 'x', { key: 'k' });
    expect(group.release(session, 'x', token)).toMatchObject({ type: 'done' });
    for (let i = 0; i < 3; i++) {
      expect(group.release(session, 'x', token)).toMatchObject({ code: 'NOT_HELD', events: [] });
    }
    group.lock(session, 'y', { key: 'l' });
    for (let i = 0; i < 3; i++) expect(group.cancel(session, 'l').results).toEqual([{ type: 'done' }]);
    expect([...group.session(session).keys.keys()]).toEqual(['k']);
    expect(group.cancel(session, 'k').events).toEqual([]);
    expect(group.session(session)).toMatchObject({ unsettled: 0 });
  });

  it('rule C5: a cancel takes back what is held, settled or not, and passes the lock on', () => {
    for (const acks of [[], ['k']]) {
      const group = new TestGroup();
      const [a, b] = [group.open(), group.open()];
      const token = group.lock(a, 'x', { key: 'k' });
      group.wait(b, 'x', { key: 'w' });
      const { events } = group.cancel(a, 'k', { acks });
      expect(events).toMatchObject([
        { type: 'cancelled', key: 'k', token },
        { type: 'granted', session: b },
      ]);
      expect(group.session(a)).toMatchObject({ unsettled: 0, keys: new Map() });
    }
  });
});
