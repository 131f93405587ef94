/** The naive model against src/core/README.md: break, configure, take-over, quarantine. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../api/entry.ts';
import {
  acquire,
  breakGrant,
  brief,
  close,
  configure,
  ModelGroup,
  modelGroup,
  namespaceConfig,
  openSession,
  release,
} from '../model.fixture.ts';

describe('break', () => {
  it('names the token; others are told STALE_TOKEN or NOT_HELD', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.code(breakGrant('a', 0))).toBe('STALE_TOKEN');
    expect(group.code(breakGrant('a', 2))).toBe('NOT_HELD');
    expect(group.code(breakGrant('b', 1))).toBe('NOT_HELD');
  });

  it('revokes, once', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.now(breakGrant('a', 1)).events).toEqual([
      { type: 'broken', name: 'a', session: 1, token: 1, now: false, reason: 'stuck', by: 'operator' },
      { type: 'revoking', name: 'a', session: 1, token: 1, cause: 'break', until: 15_000 },
    ]);
    expect(brief(group.apply(10, breakGrant('a', 1)).events)).toEqual(['broken a s1 t1']);
    expect(group.apply(14_989).events).toEqual([]);
    expect(brief(group.apply(1).events)).toEqual(['revoked a s1 t1 break']);
  });

  it('now: frees at once, unsafe, without lock-delay, also what is being revoked', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), breakGrant('a', 1));
    const { events } = group.now(breakGrant('a', 1, true));
    expect(brief(events)).toEqual(['broken a s1 t1', 'revoked a s1 t1 break', 'granted a s2 t2']);
    expect(events[1]).toMatchObject({ unsafe: true });
    expect(group.result(acquire(1, 'k1', 'a'))).toEqual({ type: 'ended', by: 'REVOKED', token: 1 });
  });
});

describe('configure, takeOver, resign, raiseBehaviour, reportStale', () => {
  it('versions only grow', () => {
    const group = modelGroup();
    expect(group.code(configure(1, null))).toBe('INVALID');
    expect(group.now(configure(7, namespaceConfig()))).toEqual({
      events: [{ type: 'configured', version: 7 }],
      results: [{ type: 'done' }],
    });
    expect(group.code(configure(6, null))).toBe('INVALID');
  });

  it('takeOver raises the counter by the clock, by at most 2^45, and never past the year 2100 (rule C12)', () => {
    const group = new ModelGroup();
    const floor = 2 ** 46;
    expect(group.takeOver(1_000, floor).events).toMatchObject([{ token: floor }]);
    expect(group.takeOver(4_102_444_800).events).toMatchObject([{ token: floor + 2 ** 45 }]);
    expect(group.takeOver(4_102_444_801).events).toMatchObject([{ token: floor + 2 ** 45 }]);
    const seconds = 1_800_000_000;
    const steps: number[] = [];
    for (let i = 0; i < 60; i++) {
      const [event] = group.takeOver(seconds).events;
      if (event?.type === 'tookOver') steps.push(event.token);
    }
    expect(steps.at(-1)).toBe(seconds * 2 ** 20);
    group.now(configure(1, namespaceConfig()), openSession());
    expect(group.result(acquire(1, 'k', 'a'))).toEqual({ type: 'granted', token: seconds * 2 ** 20 + 1 });
  });

  it('takeOver refuses a floor after the first entry and another epoch than its own', () => {
    const group = modelGroup();
    expect(() => group.takeOver(0, 5)).toThrow('token floor');
    const other = modelGroup();
    expect(() =>
      other.now({ type: 'takeOver', epoch: 2, unixSeconds: 0, tokenFloor: 0, reason: '' }),
    ).toThrow('another epoch');
  });

  it('resign and raiseBehaviour make no event', () => {
    const group = modelGroup();
    expect(group.now({ type: 'resign', epoch: 1 })).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(group.code({ type: 'raiseBehaviour', level: 1 })).toBe('INVALID');
    expect(group.code({ type: 'raiseBehaviour', level: 3 })).toBe('INVALID');
  });

  it('reportStale is an event of a live session', () => {
    const group = modelGroup();
    const stale: Command = { type: 'reportStale', session: 1, name: 'a', token: 3, resource: 'db' };
    expect(group.now(stale)).toEqual({
      events: [{ type: 'fencingRejected', session: 1, name: 'a', token: 3, resource: 'db' }],
      results: [{ type: 'done' }],
    });
    expect(group.code({ ...stale, session: 8 })).toBe('SESSION_EXPIRED');
  });
});

describe('quarantine', () => {
  const quarantine: Command = { type: 'quarantine', name: 'a', reason: 'threw' };
  const unquarantine: Command = { type: 'unquarantine', name: 'a', by: 'operator' };

  it('refuses all waiters in order, keeps the hold, grants nobody', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'));
    expect(brief(group.now(quarantine).events)).toEqual([
      'quarantined a',
      'refused a s2 QUARANTINED',
      'refused a s3 QUARANTINED',
    ]);
    expect(group.model.view().held).toHaveLength(1);
    expect(brief(group.now(release(1, 'a', 1)).events)).toEqual(['released a s1 t1 release']);
    expect(group.code(acquire(2, 'k4', 'a'))).toBe('QUARANTINED');
    expect(group.now(quarantine)).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(brief(group.now(unquarantine).events)).toEqual(['unquarantined a']);
    expect(group.code(unquarantine)).toBe('INVALID');
    expect(group.code(acquire(2, 'k5', 'a'))).toBe('granted');
  });

  it('drops a lock-delay with its timer', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), close(1, false));
    group.now(quarantine);
    expect(group.model.view()).toMatchObject({ delayed: [], timers: 0, quarantined: ['a'] });
    group.now(unquarantine);
    expect(group.code(acquire(2, 'k2', 'a'))).toBe('granted');
  });

  it('a hold that ends uncleanly on a quarantined name leaves no lock-delay', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), quarantine, breakGrant('a', 1));
    expect(brief(group.now(release(1, 'a', 1)).events)).toEqual(['released a s1 t1 release']);
    group.now(unquarantine);
    expect(group.code(acquire(2, 'k2', 'a'))).toBe('granted');
  });

  it('stops the timer of max hold, and sets it again for its time or for now', () => {
    const group = modelGroup({ config: { maxHoldMs: 20_000 } });
    group.now(acquire(1, 'k1', 'a'), quarantine);
    expect(group.apply(10_000, unquarantine, quarantine).events).toHaveLength(2);
    expect(group.apply(20_000).events).toEqual([]);
    expect(brief(group.now(unquarantine).events)).toEqual(['unquarantined a']);
    expect(group.now().events).toMatchObject([{ type: 'revoking', cause: 'maxHold', until: 45_000 }]);
  });

  it('stops a revoke; one that begins meanwhile only notes its end', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'b'), breakGrant('b', 2), quarantine);
    expect(group.now(breakGrant('a', 1)).events).toMatchObject([{}, { type: 'revoking', until: 15_000 }]);
    group.now({ ...quarantine, name: 'b' });
    expect(group.apply(30_000).events).toEqual([]);
    expect(group.model.view()).toMatchObject({
      timers: 0,
      held: [{ revoking: 'break' }, { revoking: 'break' }],
    });
    group.now({ ...unquarantine, name: 'b' }, unquarantine);
    expect(brief(group.now().events)).toEqual(['revoked b s2 t2 break', 'revoked a s1 t1 break']);
  });
});
