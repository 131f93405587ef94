/** Commands of leader and operator: configuration, tokens, behaviour, stale reports (rules C11, C12, C15). */
import { describe, expect, it } from 'vitest';
import {
  eventsOf,
  faultOf,
  LINEAGE,
  namespaceConfig,
  TestGroup,
  takeOverCommand,
  traceOf,
} from '../../test/support/core.ts';
import type { Entry, TakeOver } from '../api/entry.ts';
import {
  BEHAVIOUR_LEVEL_MAX,
  TOKEN_MAX,
  TOKEN_RAISE_MAX,
  TOKENS_PER_SECOND,
  UNIX_SECONDS_MAX,
} from '../api/limits.ts';
import { apply, createState } from './index.ts';

const NOW_SECONDS = 1_800_000_000;

describe('configure', () => {
  it('rule C11: versions only grow', () => {
    const group = new TestGroup();
    group.one({ type: 'configure', version: 7, config: namespaceConfig() });
    const before = traceOf(group.state);
    for (const version of [0, 1, 6, 7]) {
      const { results, events } = group.run([{ type: 'configure', version, config: null }]);
      expect(results).toMatchObject([{ type: 'refused', code: 'INVALID', field: 'version', limit: 7 }]);
      expect(events).toEqual([]);
    }
    expect(traceOf(group.state)).toEqual(before);
    const { events } = group.run([{ type: 'configure', version: 8, config: null }]);
    expect(events).toEqual([{ type: 'configured', version: 8 }]);
    expect(group.state.config).toBeNull();
  });

  it('rule C11: existing grants keep mode and TTL, new limits bind new grants', () => {
    const group = new TestGroup({ config: { maxHoldMs: 60_000 } });
    const session = group.open({ ttlMs: 20_000 });
    const before = group.lock(session, 'before');
    group.configure({
      maxHoldMs: 5_000,
      modes: ['exclusive'],
      ttlMsMin: 6_000,
      ttlMsMax: 7_000,
      heldLocks: 2,
    });
    const after = group.lock(session, 'after');
    expect(group.acquire(session, 'third')).toMatchObject({ code: 'QUOTA_EXCEEDED', limit: 2 });
    expect(group.pass(5_000)).toMatchObject([{ type: 'revoking', token: after, until: 25_000 }]);
    group.configure({ modes: ['shared'], heldLocks: 1 });
    expect(group.pass(54_999)).toMatchObject([{ type: 'revoked', token: after }]);
    expect(group.holder('before')).toEqual({ session, token: before });
    expect(group.pass(1)).toMatchObject([{ type: 'revoking', token: before, until: 80_000 }]);
  });

  it('rule C11: limits lowered below what is in use take nothing away', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.lock(a, 'y');
    group.wait(b, 'x', { key: 'w1' });
    group.wait(a, 'x');
    const lowered = {
      sessions: 1,
      heldLocks: 1,
      waiters: 1,
      maxWaitersPerName: 1,
      locksPerClient: 1,
      maxWaitMs: 1,
    };
    expect(group.run([group.configureCommand(lowered)]).events).toMatchObject([{ type: 'configured' }]);
    expect(group.state).toMatchObject({ holds: 2, waits: 2 });
    group.configure({ ...lowered, heldLocks: 2 });
    expect(eventsOf(group.release(a, 'x', token).events, 'granted')).toMatchObject([{ session: b }]);
  });

  it('rule C11: a namespace may come back after it was removed', () => {
    const group = new TestGroup();
    const session = group.open();
    const token = group.lock(session, 'x');
    group.configure(null);
    expect(group.acquire(session, 'y')).toMatchObject({ code: 'NAMESPACE_NOT_FOUND' });
    group.configure({});
    expect(group.acquire(session, 'z')).toMatchObject({ type: 'granted' });
    // What was revoked meanwhile stays revoked.
    expect(group.pass(15_000)).toMatchObject([{ type: 'revoked', token, cause: 'namespaceDeleted' }]);
  });
});

describe('the token counter', () => {
  function afterTakeOver(first: Partial<TakeOver>, second?: Partial<TakeOver>): number {
    const group = new TestGroup({ config: null, takeOver: first });
    if (second !== undefined) group.one(takeOverCommand({ epoch: 2, ...second }));
    return group.state.lastToken;
  }

  it('rule C12: each grant takes the next value, over all names', () => {
    const group = new TestGroup();
    const session = group.open();
    const tokens: number[] = [];
    for (const name of ['x', 'y', 'x', 'z', 'y']) {
      const token = group.lock(session, name);
      tokens.push(token);
      group.release(session, name, token);
    }
    expect(tokens).toEqual([1, 2, 3, 4, 5]);
  });

  it('rule C12: a take-over raises it to what the clock allows, at most by 2^45', () => {
    expect(afterTakeOver({ unixSeconds: 1_000_000 })).toBe(1_000_000 * TOKENS_PER_SECOND);
    expect(afterTakeOver({ unixSeconds: NOW_SECONDS })).toBe(TOKEN_RAISE_MAX);
    expect(afterTakeOver({ unixSeconds: NOW_SECONDS }, { unixSeconds: NOW_SECONDS })).toBe(
      2 * TOKEN_RAISE_MAX,
    );
    const floor = NOW_SECONDS * TOKENS_PER_SECOND;
    expect(afterTakeOver({ tokenFloor: floor }, { unixSeconds: NOW_SECONDS + 5 })).toBe(
      floor + 5 * TOKENS_PER_SECOND,
    );
  });

  it('rule C12: a clock that is behind changes nothing, and refuses nobody', () => {
    const floor = NOW_SECONDS * TOKENS_PER_SECOND;
    for (const unixSeconds of [0, 1, NOW_SECONDS - 1, NOW_SECONDS]) {
      expect(afterTakeOver({ tokenFloor: floor }, { unixSeconds })).toBe(floor);
    }
  });

  it('rule C12: clocks past the year 2100 raise nothing', () => {
    const floor = UNIX_SECONDS_MAX * TOKENS_PER_SECOND - 5;
    expect(afterTakeOver({ tokenFloor: floor }, { unixSeconds: UNIX_SECONDS_MAX })).toBe(floor + 5);
    expect(afterTakeOver({ tokenFloor: floor }, { unixSeconds: UNIX_SECONDS_MAX + 1 })).toBe(floor);
    expect(afterTakeOver({ unixSeconds: Number.MAX_SAFE_INTEGER })).toBe(0);
  });

  it('rule C12: no clock can use up the range: the highest raise leaves room to 2^53', () => {
    expect(UNIX_SECONDS_MAX * TOKENS_PER_SECOND).toBeLessThan(TOKEN_MAX / 2);
    expect(afterTakeOver({ tokenFloor: TOKEN_MAX - 1 }, { unixSeconds: UNIX_SECONDS_MAX })).toBe(
      TOKEN_MAX - 1,
    );
  });

  it('rule C12: only the first entry of a log may set a floor', () => {
    const floor = NOW_SECONDS * TOKENS_PER_SECOND;
    expect(afterTakeOver({ tokenFloor: floor })).toBe(floor);
    // The clock counts from the floor on.
    expect(afterTakeOver({ tokenFloor: floor, unixSeconds: NOW_SECONDS + 1 })).toBe(
      floor + TOKENS_PER_SECOND,
    );
    const group = new TestGroup();
    const fault = faultOf(() => group.run([takeOverCommand({ epoch: 2, tokenFloor: floor })]));
    expect(fault.step).toEqual({ kind: 'command', position: 0 });
  });

  it('rule C12: tokens stay below 2^53; the grant that would reach it is refused by an assertion', () => {
    const group = new TestGroup({ takeOver: { tokenFloor: TOKEN_MAX - 2 } });
    const session = group.open();
    expect(group.lock(session, 'x')).toBe(TOKEN_MAX - 1);
    expect(group.lock(session, 'y')).toBe(TOKEN_MAX);
    const fault = faultOf(() => group.acquire(session, 'z'));
    expect(fault.step).toEqual({ kind: 'command', position: 0 });
    expect(fault.message).toContain('used up');
    expect(faultOf(() => new TestGroup({ takeOver: { tokenFloor: 2 ** 53 } })).step.kind).toBe('command');
  });

  it('rule C12: a take-over is recorded with the counter it raised to', () => {
    const state = createState(LINEAGE);
    const entry: Omit<Entry, 'previous' | 'eventHash' | 'wallMs'> = {
      format: 1,
      behaviour: 1,
      lineage: LINEAGE,
      epoch: 3,
      index: 1,
      at: 0,
      commands: [takeOverCommand({ epoch: 3, unixSeconds: 10, reason: 'killed' })],
    };
    expect(apply(state, entry)).toEqual({
      events: [{ type: 'tookOver', epoch: 3, token: 10 * TOKENS_PER_SECOND, reason: 'killed' }],
      results: [{ type: 'done' }],
    });
    expect(state.epoch).toBe(3);
  });

  it('rule C12: a take-over that names another epoch than its entry is a fault', () => {
    const group = new TestGroup();
    const draft = { ...group.draft([takeOverCommand({ epoch: 3 })]), epoch: 2 };
    expect(faultOf(() => apply(group.state, draft)).step).toEqual({ kind: 'command', position: 0 });
  });
});

describe('the rest', () => {
  it('rule C15: a behaviour level is raised only to one that this program supports', () => {
    const group = new TestGroup({ behaviour: 1 });
    const raise = (level: number) => group.one({ type: 'raiseBehaviour', level });
    for (const level of [0, 1, BEHAVIOUR_LEVEL_MAX + 1]) {
      expect(raise(level)).toMatchObject({ code: 'INVALID', field: 'level' });
      expect(group.state.behaviour).toBe(1);
    }
    expect(raise(2)).toEqual({ type: 'done' });
    for (const level of [1, 2]) expect(raise(level)).toMatchObject({ code: 'INVALID', field: 'level' });
    expect(group.state.behaviour).toBe(2);
  });

  it('rule S7: resign has no effect on locks', () => {
    const group = new TestGroup();
    group.lock(group.open(), 'x');
    const before = traceOf(group.state);
    expect(group.run([{ type: 'resign', epoch: 1 }])).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(traceOf(group.state)).toEqual(before);
  });

  it('rule C13: a stale report is recorded, and changes nothing', () => {
    const group = new TestGroup();
    const session = group.open();
    const { eventHash: _before, ...before } = JSON.parse(traceOf(group.state)[0] ?? '') as Record<
      string,
      unknown
    >;
    const { results, events } = group.run([
      { type: 'reportStale', session, name: 'x', token: 12, resource: 'table' },
    ]);
    expect(results).toEqual([{ type: 'done' }]);
    expect(events).toEqual([{ type: 'fencingRejected', name: 'x', session, token: 12, resource: 'table' }]);
    expect(JSON.parse(traceOf(group.state)[0] ?? '')).toMatchObject(before);
    expect(group.state.locks.size).toBe(0);
    expect(group.one({ type: 'reportStale', session: 99, name: 'x', token: 12, resource: '' })).toMatchObject(
      {
        code: 'SESSION_EXPIRED',
      },
    );
  });
});
