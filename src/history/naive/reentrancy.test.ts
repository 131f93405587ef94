/** The naive model against src/core/README.md: re-entrant acquires (rule C6). Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import type { Acquire, Command } from '../../api/entry.ts';
import { acquire, breakGrant, brief, cancel, expire, modelGroup, release } from '../model.fixture.ts';

const enter = (session: number, key: string, differs: Partial<Acquire> = {}): Command =>
  acquire(session, key, 'a', { reentrant: true, ...differs });

describe('join', () => {
  it('gives the token of the hold, with an event of its own', () => {
    const group = modelGroup();
    group.now(enter(1, 'k1'));
    const { events, results } = group.now(enter(1, 'k2'));
    expect(results).toEqual([{ type: 'granted', token: 1 }]);
    expect(events).toMatchObject([{ type: 'granted', key: 'k2', token: 1, joined: true, fromQueue: false }]);
    expect(group.model.view()).toMatchObject({ held: [{ token: 1, keys: ['k1', 'k2'] }], timers: 1 });
    expect(group.result(enter(1, 'k2'))).toEqual({ type: 'granted', token: 1 });
  });

  it.each([
    ['another owner', { owner: 'other' }],
    ['another mode', { mode: 'shared' }],
    ['no wish to', { reentrant: false }],
  ] as const)('with %s it queues', (_what, differs) => {
    const group = modelGroup();
    group.now(enter(1, 'k1'));
    expect(group.code(enter(1, 'k2', differs))).toBe('queued');
  });

  it('queues behind a hold that was not asked for as re-entrant, another session behind any', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.code(enter(1, 'k2'))).toBe('queued');
    const other = modelGroup();
    other.now(enter(1, 'k1'));
    expect(other.code(enter(2, 'k2'))).toBe('queued');
  });

  it('passes those who wait, also during a lock-delay, but joins no hold that is being revoked', () => {
    const group = modelGroup({ sessions: 3, config: { lockDelayMs: 1_000 } });
    group.now(enter(1, 'k1', { mode: 'shared' }), enter(2, 'k2', { mode: 'shared' }), acquire(3, 'w', 'a'));
    expect(group.code(enter(1, 'k3', { mode: 'shared' }))).toBe('granted');
    group.now(expire(2));
    expect(group.code(enter(1, 'k4', { mode: 'shared' }))).toBe('granted');
    group.now(breakGrant('a', 1));
    expect(group.code(enter(1, 'k5', { mode: 'shared' }))).toBe('queued');
  });

  it('of several it joins the one with the lowest token', () => {
    const group = modelGroup({ config: { semaphores: [{ pattern: 'a', permits: 9 }] } });
    const take = (key: string, permits: number, reentrant = true): Command =>
      enter(1, key, { mode: 'semaphore', permits, reentrant });
    group.now(take('k1', 2), take('k2', 1), take('k3', 1));
    expect(group.model.view().held).toMatchObject([
      { token: 1, permits: 2, keys: ['k1'] },
      { token: 2, permits: 1, keys: ['k2', 'k3'] },
    ]);
    group.now(breakGrant('a', 2), take('k4', 1), take('k5', 1));
    expect(group.model.view().held[2]).toMatchObject({ token: 3, keys: ['k4', 'k5'] });
  });

  it('counts no lock more for the client and the namespace, but 64 keys are enough', () => {
    const group = modelGroup({ config: { locksPerClient: 1, heldLocks: 1 } });
    for (let i = 0; i < 64; i++) expect(group.code(enter(1, `k${i}`))).toBe('granted');
    expect(group.code(enter(1, 'k64'))).toBe('QUOTA_EXCEEDED');
    expect(group.now(release(1, 'a', 1, { key: 'k7' })).results).toEqual([{ type: 'done' }]);
    expect(group.code(enter(1, 'k65'))).toBe('granted');
  });

  it('from the queue: who was granted is joined by its own next requests', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), enter(2, 'k2'), enter(2, 'k3'), acquire(3, 'k4', 'a'));
    const { events } = group.apply(300, release(1, 'a', 1));
    expect(brief(events)).toEqual(['released a s1 t1 release', 'granted a s2 t2', 'granted a s2 t2']);
    expect(events[2]).toMatchObject({ joined: true, fromQueue: true, waitedMs: 300, key: 'k3' });
  });
});

describe('keys leave a hold', () => {
  it('a release needs one of its keys, and tells how many remain', () => {
    const group = modelGroup();
    group.now(enter(1, 'k1'), enter(1, 'k2'), acquire(2, 'w', 'a'));
    expect(group.result(release(1, 'a', 1))).toMatchObject({ code: 'INVALID', field: 'key' });
    expect(group.code(release(1, 'a', 1, { key: 'k9' }))).toBe('NOT_HELD');
    expect(group.now(release(1, 'a', 1, { key: 'k1' })).events).toEqual([
      { type: 'released', name: 'a', session: 1, token: 1, cause: 'release', key: 'k1', remaining: 1 },
    ]);
    expect(group.code(release(1, 'a', 1, { key: 'k1' }))).toBe('NOT_HELD');
    expect(group.result(enter(1, 'k1'))).toEqual({ type: 'ended', by: 'RELEASED', token: 1 });
    expect(brief(group.now(release(1, 'a', 1, { key: 'k2' })).events)).toEqual([
      'released a s1 t1 release',
      'granted a s2 t2',
    ]);
  });

  it('other holds ignore the key', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.now(release(1, 'a', 1, { key: 'whatever' })).events).toMatchObject([
      { type: 'released', key: 'k1', remaining: 0 },
    ]);
  });

  it('a cancel takes its key out and forgets it; a settled key is forgotten with its release', () => {
    const group = modelGroup();
    group.now(enter(1, 'k1'), enter(1, 'k2'), enter(1, 'k3'));
    expect(group.now(cancel(1, 'k2', { acks: ['k1'] })).events).toEqual([
      { type: 'cancelled', name: 'a', session: 1, key: 'k2', token: 1, remaining: 2 },
    ]);
    group.now(release(1, 'a', 1, { key: 'k1' }));
    expect(group.model.view().sessions[0]?.keys.map(({ key }) => key)).toEqual(['k3']);
  });

  it('all keys end with the hold; only the last release of a revoked one is unclean', () => {
    const group = modelGroup({ config: { lockDelayMs: 1_000 } });
    group.now(enter(1, 'k1'), enter(1, 'k2'), enter(1, 'k3'));
    group.now(breakGrant('a', 1));
    expect(brief(group.now(release(1, 'a', 1, { key: 'k1' })).events)).toEqual(['released a s1 t1 release']);
    expect(brief(group.apply(15_000).events)).toEqual(['revoked a s1 t1 break', 'delayed a']);
    expect(group.result(enter(1, 'k2'))).toEqual({ type: 'ended', by: 'REVOKED', token: 1 });
    expect(group.result(enter(1, 'k1'))).toEqual({ type: 'ended', by: 'RELEASED', token: 1 });
  });

  it('attach lists the keys of each grant', () => {
    const group = modelGroup();
    group.now(enter(1, 'k1'), enter(1, 'k2'));
    const attach: Command = { type: 'attach', session: 1, attach: 2, secretHash: 'ab'.repeat(32) };
    const grants = [{ name: 'a', token: 1, keys: ['k1', 'k2'], mode: 'exclusive', revoking: null }];
    expect(group.result(attach)).toMatchObject({ type: 'attached', grants });
  });
});
