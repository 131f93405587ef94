/** The naive model against src/core/README.md: grants, ends, release and cancel. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import {
  acquire,
  applyWhileBusy,
  breakGrant,
  brief,
  cancel,
  configure,
  expire,
  modelGroup,
  namespaceConfig,
  openSession,
  release,
} from '../model.fixture.ts';

describe('grant, serve, end of a hold', () => {
  it('passes a released lock to exactly the head of the queue, with the time it waited', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'));
    const { events } = group.apply(700, release(1, 'a', 1));
    expect(brief(events)).toEqual(['released a s1 t1 release', 'granted a s2 t2']);
    expect(events[1]).toMatchObject({ fromQueue: true, waitedMs: 700 });
    expect(group.model.view().queues).toEqual([
      { name: 'a', waits: [{ session: 3, key: 'k3', due: 60_000 }] },
    ]);
  });

  it('skips dead waiters, one at once and the others by the backlog (cases A01, F03)', () => {
    const group = modelGroup({ sessions: 5 });
    group.now(acquire(1, 'k1', 'a'));
    group.now(acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'));
    group.now(acquire(4, 'k4', 'a', { waitMs: 5_000 }), acquire(5, 'k5', 'a'));
    // Filling the budget keeps the timer of k4 and the ends of 2 and 3 from running before the release.
    const { events } = applyWhileBusy(group, 5_000, expire(2, 3), release(1, 'a', 1));
    expect(brief(events)).toEqual([
      'sessionEnding s2 expired',
      'sessionEnding s3 expired',
      'released a s1 t1 release',
      'refused a s2 SESSION_EXPIRED',
      // Its wait was all it had, so there is no step left that would need budget.
      'sessionEnded s2',
    ]);
    expect(brief(group.apply(0).events).slice(0, 4)).toEqual([
      'refused a s3 SESSION_EXPIRED',
      'refused a s4 WAIT_TIMEOUT',
      'sessionEnded s3',
      expect.stringMatching(/^granted a s5 t/),
    ]);
  });

  it('refuses the whole queue when the quota of holds is used up', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'), acquire(1, 'k4', 'b'));
    group.now(configure(2, namespaceConfig({ heldLocks: 1 })));
    expect(brief(group.now(release(1, 'a', 1)).events)).toEqual([
      'released a s1 t1 release',
      'refused a s2 QUOTA_EXCEEDED',
      'refused a s3 QUOTA_EXCEEDED',
    ]);
  });

  it('gives waiters that are no consumers any more FORBIDDEN, or INVALID without the mode', () => {
    const group = modelGroup({ sessions: 2 });
    group.now(openSession({ identity: { account: 'billing/batch', podUid: '' } }));
    group.now(acquire(1, 'k1', 'a'), acquire(3, 'k3', 'a'), acquire(2, 'k2', 'a'));
    const only = namespaceConfig({
      consumers: [{ namespace: 'payments', serviceAccounts: null }],
      modes: ['shared'],
    });
    const { events } = applyWhileBusy(group, 1, configure(2, only), release(1, 'a', 1));
    expect(brief(events)).toEqual(['configured', 'released a s1 t1 release', 'refused a s3 FORBIDDEN']);
    expect(brief(group.now().events)).toContain('refused a s2 INVALID');
  });

  it('forgets a settled key with its hold, keeps an unsettled one as an outcome', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), acquire(1, 'k2', 'b', { acks: ['k1'] }));
    group.now(release(1, 'a', 1), release(1, 'b', 2));
    expect(group.model.view().sessions[0]?.keys).toEqual([{ key: 'k2', is: 'ended', settled: false }]);
  });

  it('delays after an unclean end, and grants when the delay is over', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'));
    expect(brief(group.now(expire(1)).events)).toEqual([
      'sessionEnding s1 expired',
      'expired a s1 t1 expired',
      'delayed a',
      'sessionEnded s1',
    ]);
    expect(group.apply(4_999).events).toEqual([]);
    expect(brief(group.apply(1).events)).toEqual(['granted a s2 t2']);
  });

  it('does not delay without configuration', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'));
    group.now(configure(2, null));
    expect(brief(group.apply(15_000).events)).toEqual(['revoked a s1 t1 namespaceDeleted']);
  });
});

describe('release', () => {
  it('changes nothing for those who do not hold (rule C7)', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'));
    expect(group.code(release(1, 'a', 9))).toBe('NOT_HELD');
    expect(group.code(release(1, 'b', 1))).toBe('NOT_HELD');
    expect(group.code(release(2, 'a', 1))).toBe('NOT_HELD');
    expect(group.code(release(1, 'a', 0))).toBe('STALE_TOKEN');
    expect(group.code(release(9, 'a', 1))).toBe('SESSION_EXPIRED');
    expect(group.code(release(1, 'a', 1, { attach: 2 }))).toBe('SUPERSEDED');
    expect(group.model.view().held).toMatchObject([{ name: 'a', token: 1, session: 1 }]);
  });

  it('is told STALE_TOKEN once the name went on, NOT_HELD when it is free (cases C01, D05)', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), release(1, 'a', 1));
    expect(group.code(release(1, 'a', 1))).toBe('NOT_HELD');
    group.now(acquire(1, 'k2', 'a'));
    expect(group.code(release(1, 'a', 1))).toBe('STALE_TOKEN');
    expect(group.model.view().held).toMatchObject([{ token: 2 }]);
  });

  it('settles acks, also when nothing is released', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), release(1, 'a', 1));
    group.now(release(1, 'a', 1, { acks: ['k1'] }));
    expect(group.model.view().sessions[0]?.keys).toEqual([]);
  });

  it('is unclean while a revoke runs', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'));
    group.now(breakGrant('a', 1));
    expect(brief(group.now(release(1, 'a', 1)).events)).toEqual(['released a s1 t1 release', 'delayed a']);
  });
});

describe('cancel', () => {
  it('takes a wait out of the middle and grants nothing (case A05)', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), acquire(3, 'k3', 'a'));
    const { events, results } = group.now(cancel(2, 'k2'));
    expect(events).toEqual([{ type: 'cancelled', name: 'a', session: 2, key: 'k2', token: 0, remaining: 0 }]);
    expect(results).toEqual([{ type: 'done' }]);
    expect(group.result(acquire(3, 'k3', 'a'))).toEqual({ type: 'queued', position: 1 });
    expect(group.apply(60_000).events).toMatchObject([{ type: 'refused', session: 3 }]);
  });

  it('undoes a grant and removes its key', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'));
    expect(brief(group.now(cancel(1, 'k1')).events)).toEqual(['cancelled a s1 t1', 'granted a s2 t2']);
    expect(group.model.view().sessions[0]?.keys).toEqual([]);
  });

  it('removes the record of an ended key, says done for an unknown one', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), release(1, 'a', 1));
    expect(group.now(cancel(1, 'k1'))).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(group.model.view().sessions[0]?.keys).toEqual([]);
    expect(group.now(cancel(1, 'k9'))).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(group.code(cancel(9, 'k1'))).toBe('SESSION_EXPIRED');
    expect(group.code(cancel(1, 'k1', { attach: 3 }))).toBe('SUPERSEDED');
  });

  it('is unclean while a revoke runs', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), breakGrant('a', 1));
    expect(brief(group.now(cancel(1, 'k1')).events)).toEqual(['cancelled a s1 t1', 'delayed a']);
  });
});
