/** The naive model against src/core/README.md: shared and semaphore locks, permits cut. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import type { Acquire, Command } from '../../api/entry.ts';
import {
  acquire,
  breakGrant,
  brief,
  cancel,
  close,
  configure,
  expire,
  modelGroup,
  namespaceConfig,
  release,
} from '../model.fixture.ts';

const read = (session: number, key: string, differs: Partial<Acquire> = {}): Command =>
  acquire(session, key, 'a', { mode: 'shared', ...differs });
const take = (session: number, key: string, permits: number, differs: Partial<Acquire> = {}): Command =>
  acquire(session, key, 'pool/a', { mode: 'semaphore', permits, ...differs });
const pool = (permits: number) => ({ semaphores: [{ pattern: 'pool/*', permits }] });

describe('behaviour level 1 (rule C15)', () => {
  it('refuses the other modes and re-entrancy without an outcome, level 2 takes them from the next command on', () => {
    const group = modelGroup({ level: 1, config: pool(2) });
    const { events, results } = group.now(
      read(1, 'k1'),
      take(1, 'k2', 1),
      acquire(1, 'k3', 'a', { reentrant: true }),
      { type: 'raiseBehaviour', level: 2 },
      read(1, 'k1'),
      take(1, 'k2', 1),
      acquire(1, 'k3', 'b', { reentrant: true }),
    );
    expect(results.map((result) => ('code' in result ? result.code : result.type))).toEqual([
      'INVALID',
      'INVALID',
      'INVALID',
      'done',
      'granted',
      'granted',
      'granted',
    ]);
    expect(events).toHaveLength(3);
    expect(group.model.view().behaviour).toBe(2);
  });

  it('an entry of another level than the state is refused', () => {
    const group = modelGroup();
    group.behaviour = 1;
    expect(() => group.now()).toThrow('behaviour 1');
  });
});

describe('shared', () => {
  it('readers hold together; a writer waits for all, and readers behind it wait for the writer (case F07)', () => {
    const group = modelGroup({ sessions: 5 });
    group.now(read(1, 'k1'), read(2, 'k2'), acquire(3, 'w', 'a'), read(4, 'k4'));
    expect(group.model.view().queues[0]?.waits.map(({ key }) => key)).toEqual(['w', 'k4']);
    expect(brief(group.now(release(1, 'a', 1)).events)).toEqual(['released a s1 t1 release']);
    expect(group.code(read(5, 'k5'))).toBe('queued');
    expect(brief(group.now(release(2, 'a', 2)).events)).toEqual([
      'released a s2 t2 release',
      'granted a s3 t3',
    ]);
    expect(brief(group.now(release(3, 'a', 3)).events)).toEqual([
      'released a s3 t3 release',
      'granted a s4 t4',
      'granted a s5 t5',
    ]);
  });

  it('the run of readers behind a writer is let in when the writer gives up waiting', () => {
    const group = modelGroup({ sessions: 4 });
    group.now(read(1, 'k1'), acquire(2, 'w', 'a', { waitMs: 1_000 }), read(3, 'k3'), read(4, 'k4'));
    expect(brief(group.apply(1_000).events)).toEqual(['refused a s2 WAIT_TIMEOUT', 'granted a s3 t2']);
    // The timer served one; the backlog comes first in the next entry.
    expect(group.model.view().backlog).toEqual(['serve a']);
    expect(group.model.hasWork).toBe(true);
    expect(brief(group.now().events)).toEqual(['granted a s4 t3']);
  });

  it('HELD and QUEUE_FULL show the holder with the lowest token', () => {
    const group = modelGroup({ sessions: 3, config: { maxWaitersPerName: 0 } });
    group.now(read(1, 'k1', { purpose: 'why' }), read(2, 'k2'));
    group.apply(500);
    const holder = { session: 1, token: 1, purpose: 'why', mode: 'shared', permits: 1, heldForMs: 500 };
    expect(group.result(acquire(3, 'w', 'a', { waitMs: 0 }))).toMatchObject({ code: 'HELD', holder });
    expect(group.result(acquire(3, 'x', 'a'))).toMatchObject({ code: 'QUEUE_FULL', holder, waiters: 0 });
  });

  it('a lock-delay runs beside other readers: nobody new comes in, and a later end makes it longer', () => {
    const group = modelGroup({ sessions: 4, config: { lockDelayMs: 2_000 } });
    group.now(read(1, 'k1'), read(2, 'k2'), read(3, 'k3'));
    expect(group.now(expire(1)).events).toContainEqual({ type: 'delayed', name: 'a', until: 2_000 });
    expect(group.code(read(4, 'k4'))).toBe('queued');
    expect(group.result(read(4, 'k5', { waitMs: 0 }))).toMatchObject({ code: 'HELD', lockDelayMs: 2_000 });
    // Clean beside a delay that runs: it goes on.
    expect(brief(group.apply(500, release(2, 'a', 2)).events)).toEqual(['released a s2 t2 release']);
    expect(group.apply(500, expire(3)).events).toContainEqual({ type: 'delayed', name: 'a', until: 3_000 });
    expect(group.apply(1_999).events).toEqual([]);
    expect(brief(group.apply(1).events)).toEqual(['granted a s4 t4']);
    expect(group.model.view()).toMatchObject({ delayed: [], timers: 1 });
  });

  it('a delay that ends no earlier is not made again', () => {
    const group = modelGroup({ sessions: 2, config: { lockDelayMs: 5_000 } });
    group.now(read(1, 'k1'), read(2, 'k2'));
    group.now(expire(1));
    group.now(configure(2, namespaceConfig({ lockDelayMs: 1_000 })));
    expect(brief(group.now(expire(2)).events)).not.toContain('delayed a');
    expect(group.model.view().delayed).toEqual([{ name: 'a', until: 5_000 }]);
  });

  it('break names one of several holders', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(read(1, 'k1'), read(2, 'k2'));
    expect(brief(group.now(breakGrant('a', 2, true)).events)).toEqual([
      'broken a s2 t2',
      'revoked a s2 t2 break',
    ]);
    expect(group.code(breakGrant('a', 2))).toBe('NOT_HELD');
    expect(group.code(breakGrant('a', 0))).toBe('STALE_TOKEN');
    expect(group.model.view().held).toMatchObject([{ token: 1 }]);
  });
});

describe('semaphore', () => {
  it('hands out its permits; a big request blocks those behind it', () => {
    const group = modelGroup({ sessions: 5, config: pool(3) });
    group.now(take(1, 'k1', 1), take(2, 'k2', 1), take(3, 'big', 3), take(4, 'k4', 1));
    expect(group.model.view().queues[0]?.waits.map(({ key }) => key)).toEqual(['big', 'k4']);
    expect(group.code(take(5, 'k5', 1, { waitMs: 0 }))).toBe('HELD');
    group.now(release(1, 'pool/a', 1));
    expect(group.model.view().queues[0]?.waits).toHaveLength(2);
    expect(brief(group.now(release(2, 'pool/a', 2)).events)).toEqual([
      'released pool/a s2 t2 release',
      'granted pool/a s3 t3',
    ]);
    expect(brief(group.now(cancel(3, 'big')).events)).toEqual([
      'cancelled pool/a s3 t3',
      'granted pool/a s4 t4',
    ]);
  });

  it.each([
    ['mode', 'exclusive', 'pool/a', 1],
    ['mode', 'shared', 'pool/a', 1],
    ['mode', 'semaphore', 'other', 1],
    ['permits', 'semaphore', 'pool/a', 4],
  ] as const)('refuses for its %s: %s of %s, %i permits', (field, mode, name, permits) => {
    const group = modelGroup({ config: pool(3) });
    const limit = field === 'permits' ? { limit: 3 } : {};
    expect(group.now(acquire(1, 'k', name, { mode, permits }))).toMatchObject({
      events: [{ type: 'refused', code: 'INVALID', fromQueue: false }],
      results: [{ code: 'INVALID', field, ...limit }],
    });
  });

  it('the first pattern that matches decides: an exact name, or a prefix that crosses slashes', () => {
    const semaphores = [
      { pattern: 'pool/a', permits: 1 },
      { pattern: 'po*', permits: 2 },
      { pattern: 'pool/a*', permits: 9 },
      { pattern: 'pool/*', permits: 9 },
    ];
    const group = modelGroup({ config: { semaphores } });
    const limitOf = (name: string): unknown =>
      group.result(acquire(1, `k ${name}`, name, { mode: 'semaphore', permits: 10 }));
    expect(limitOf('pool/a')).toMatchObject({ limit: 1 });
    expect(limitOf('pool/a/b')).toMatchObject({ limit: 2 });
    expect(limitOf('po')).toMatchObject({ limit: 2 });
    expect(limitOf('p')).toMatchObject({ field: 'mode' });
  });

  it('a cut revokes the youngest until the rest fits, and the head comes in when enough was given back', () => {
    const group = modelGroup({ sessions: 4, config: pool(4) });
    group.now(take(1, 'k1', 1), take(2, 'k2', 2), take(3, 'k3', 1), take(4, 'w', 1));
    expect(brief(group.now(configure(2, namespaceConfig(pool(2)))).events)).toEqual([
      'configured',
      'revoking pool/a s3 t3 permitsCut',
      'revoking pool/a s2 t2 permitsCut',
    ]);
    expect(brief(group.now(release(3, 'pool/a', 3)).events)).toEqual(['released pool/a s3 t3 release']);
    expect(brief(group.apply(15_000).events)).toEqual([
      'revoked pool/a s2 t2 permitsCut',
      'granted pool/a s4 t4',
    ]);
  });

  it('more permits let in who waits, and a head that asks for too many is refused', () => {
    const group = modelGroup({ sessions: 4, config: pool(2) });
    group.now(take(1, 'k1', 2), take(2, 'k2', 2), take(3, 'k3', 1), take(4, 'k4', 1));
    expect(brief(group.now(configure(2, namespaceConfig(pool(4)))).events)).toEqual([
      'configured',
      'granted pool/a s2 t2',
    ]);
    const { events } = group.now(configure(3, namespaceConfig({ semaphores: [] })));
    expect(brief(events)).toEqual(['configured', 'refused pool/a s3 INVALID', 'refused pool/a s4 INVALID']);
    // Grants keep their mode when the pattern goes; an exclusive request waits for all of them.
    expect(group.model.view().held).toHaveLength(2);
    expect(group.code(acquire(3, 'x', 'pool/a'))).toBe('queued');
    group.now(release(1, 'pool/a', 1));
    expect(brief(group.now(release(2, 'pool/a', 2)).events).at(-1)).toBe('granted pool/a s3 t3');
  });

  it('names whose permits change are served in order of UTF-16 units, once', () => {
    const group = modelGroup({ sessions: 2, config: pool(2) });
    for (const name of ['pool/b', 'pool/A', 'pool/é', 'pool/a']) {
      group.now(acquire(1, `k ${name}`, name, { mode: 'semaphore', permits: 2 }));
    }
    const { events } = group.now(configure(2, namespaceConfig(pool(1))));
    expect(events.flatMap((event) => ('name' in event ? [event.name] : []))).toEqual([
      'pool/A',
      'pool/a',
      'pool/b',
      'pool/é',
    ]);
  });
});

describe('quarantine in the middle', () => {
  const quarantine: Command = { type: 'quarantine', name: 'pool/a', reason: 'threw' };
  const unquarantine: Command = { type: 'unquarantine', name: 'pool/a', by: 'operator' };

  it('a cut waits for the end of the quarantine', () => {
    const group = modelGroup({ sessions: 2, config: pool(2) });
    group.now(take(1, 'k1', 1), take(2, 'k2', 1), quarantine);
    expect(brief(group.now(configure(2, namespaceConfig(pool(1)))).events)).toEqual(['configured']);
    expect(brief(group.now(unquarantine).events)).toEqual([
      'unquarantined pool/a',
      'revoking pool/a s2 t2 permitsCut',
    ]);
  });

  it('an ending session is parked with its holds there, and over when the last of them is', () => {
    const group = modelGroup({ sessions: 2, config: { ...pool(2), lockDelayMs: 1_000 } });
    group.now(take(1, 'k1', 1), acquire(1, 'k2', 'b'), quarantine);
    expect(brief(group.now(close(1)).events)).toEqual(['sessionEnding s1 closed', 'released b s1 t2 close']);
    expect(group.model.view()).toMatchObject({ backlog: [], sessions: [{ id: 1, ending: true }, { id: 2 }] });
    expect(brief(group.now(unquarantine).events)).toEqual([
      'unquarantined pool/a',
      'released pool/a s1 t1 close',
      'sessionEnded s1',
    ]);
  });

  it('a parked session is over when its last hold is broken at once', () => {
    const group = modelGroup({ sessions: 1, config: pool(2) });
    group.now(take(1, 'k1', 1), quarantine, close(1));
    expect(brief(group.now(breakGrant('pool/a', 1, true)).events)).toEqual([
      'broken pool/a s1 t1',
      'revoked pool/a s1 t1 break',
      'sessionEnded s1',
    ]);
  });

  it('a stripped session keeps its hold there until the quarantine ends', () => {
    const group = modelGroup({ sessions: 1, config: pool(2) });
    group.now(take(1, 'k1', 1), acquire(1, 'k2', 'b'), quarantine);
    expect(brief(group.now(configure(2, null)).events)).toEqual([
      'configured',
      'revoking b s1 t2 namespaceDeleted',
    ]);
    expect(brief(group.now(unquarantine).events)).toEqual([
      'unquarantined pool/a',
      'revoking pool/a s1 t1 namespaceDeleted',
    ]);
  });
});
