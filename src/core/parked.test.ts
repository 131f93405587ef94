/** Sessions that end while some of their locks are out of service: nothing is repeated for ever, nothing is forgotten (rule C13). */
import { describe, expect, it } from 'vitest';
import { eventsOf, faultOf, LINEAGE, TestGroup, TTL_MS } from '../../test/support/core.ts';
import type { Command, LockEvent } from '../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { AssertionError, apply, createState, type FaultProbe, hasBacklog } from './index.ts';

/** A machine whose consequences for one name throw, as those of a bug would. */
function breaking(name: string): FaultProbe {
  return {
    beforeConsequence(about) {
      if (about === name) throw new AssertionError(`planted fault at ${name}`);
    },
  };
}

function twinOf(group: TestGroup) {
  const state = createState(LINEAGE);
  for (const entry of group.entries) apply(state, entry);
  return state;
}

const quarantineX: Command = { type: 'quarantine', name: 'x', reason: 'it threw' };

/** A session that holds `w`, `x` and `y`, and has ended but for `x`, which is quarantined. */
function parked() {
  const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
  const session = group.open();
  const tokens = ['w', 'x', 'y'].map((name) => group.lock(session, name));
  group.quarantine('x');
  const { events } = group.expire(session);
  return { group, session, token: tokens[1] ?? 0, events };
}

describe('a step of a session’s end that throws', () => {
  it('rule C13: is not taken again once its name is quarantined; the rest of the session ends', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const session = group.open();
    for (const name of ['w', 'x', 'y']) group.lock(session, name);
    const state = twinOf(group);
    const expire: Command = { type: 'expireSessions', sessions: [session], cause: 'expired' };
    expect(faultOf(() => group.run([expire], 0, breaking('x'))).step).toEqual({
      kind: 'consequence',
      name: 'x',
    });
    const last = group.entries.at(-1);
    if (last === undefined) throw new Error('no entries');
    // As the leader tries it again, and then goes on.
    const first = apply(
      state,
      { ...last, index: last.index + 1, commands: [quarantineX, expire] },
      breaking('x'),
    );
    expect(first.events).toMatchObject([
      { type: 'quarantined' },
      { type: 'sessionEnding' },
      { type: 'expired', name: 'w' },
      { type: 'delayed', name: 'w' },
      { type: 'expired', name: 'y' },
      { type: 'delayed', name: 'y' },
    ]);
    expect(hasBacklog(state)).toBe(false);
    const later = apply(
      state,
      { ...last, index: last.index + 2, at: 10 * TTL_MS, commands: [] },
      breaking('x'),
    );
    expect(later.events).toEqual([]);
    expect(state.sessions.get(session)).toMatchObject({ ending: 'expired', endItem: null });
  });

  it('rule C13: that of serving a name is not taken again either', () => {
    const group = new TestGroup({ config: { modes: ['exclusive', 'shared'] } });
    const [holder, reader] = [group.open(), group.open()];
    const token = group.lock(holder, 'x');
    for (const key of ['r1', 'r2', 'r3']) group.wait(reader, 'x', { mode: 'shared', key });
    const state = twinOf(group);
    const release = group.releaseCommand(holder, 'x', token);
    expect(faultOf(() => group.run([release], 0, breaking('x'))).step).toEqual({
      kind: 'consequence',
      name: 'x',
    });
    const last = group.entries.at(-1);
    if (last === undefined) throw new Error('no entries');
    const again = apply(
      state,
      { ...last, index: last.index + 1, commands: [quarantineX, release] },
      breaking('x'),
    );
    expect(again.events.map(({ type }) => type)).toEqual([
      'quarantined',
      'refused',
      'refused',
      'refused',
      'released',
    ]);
    expect(hasBacklog(state)).toBe(false);
  });

  it('rule C13: a fault in finishing the session is nobody’s lock’s', () => {
    const group = new TestGroup();
    const session = group.open();
    for (const name of ['x', 'y']) group.lock(session, name);
    // Planted: the state has lost the session, which shows only when it is to be removed.
    Object.defineProperty(group.state.sessions, 'delete', { value: () => false });
    const close: Command = { type: 'closeSession', session, attach: 1, clean: true };
    const fault = faultOf(() => group.run([close]));
    expect(fault.step).toEqual({ kind: 'entry' });
    expect(fault.message).toContain('a session ends that is unknown');
  });
});

describe('a session parked on a quarantined name', () => {
  it('rule C13: stays ending, with nobody working on it', () => {
    const { group, session, events } = parked();
    expect(events.map(({ type }) => type)).toEqual([
      'sessionEnding',
      'expired',
      'delayed',
      'expired',
      'delayed',
    ]);
    expect(hasBacklog(group.state)).toBe(false);
    expect(group.pass(24 * 3_600_000)).toEqual([]);
    expect(group.acquire(session, 'z')).toMatchObject({ code: 'SESSION_EXPIRED' });
    expect(group.holders('x')).toHaveLength(1);
  });

  const finishes: [
    what: string,
    finish: (held: ReturnType<typeof parked>) => readonly LockEvent[],
    ends: string[],
  ][] = [
    ['unquarantine', ({ group }) => group.unquarantine('x').events, ['unquarantined', 'expired', 'delayed']],
    ['break --now', ({ group, token }) => group.breakLock('x', token, true).events, ['broken', 'revoked']],
  ];

  it.each(finishes)('rule C13: is finished by %s', (_what, finish, ends) => {
    const held = parked();
    const { group, session } = held;
    group.pass(5_000);
    const events = finish(held);
    expect(events.map(({ type }) => type)).toEqual([...ends, 'sessionEnded']);
    expect(events.at(-1)).toEqual({ type: 'sessionEnded', session });
    expect(group.state.sessions.size).toBe(0);
  });

  it('rule C13: may be parked on several names, and ends with the last of them', () => {
    const group = new TestGroup();
    const session = group.open();
    const tokens = ['x', 'y'].map((name) => group.lock(session, name));
    group.quarantine('x');
    group.quarantine('y');
    group.close(session);
    expect(group.unquarantine('y').events.map(({ type }) => type)).toEqual(['unquarantined', 'released']);
    expect(group.state.sessions.size).toBe(1);
    expect(group.breakLock('x', tokens[0] ?? 0, true).events.at(-1)).toEqual({
      type: 'sessionEnded',
      session,
    });
    group.unquarantine('x');
    expect(group.state.locks.size).toBe(0);
  });

  it('rule C13: a revoke whose time came meanwhile ends with the next entry', () => {
    const { group, token, session } = parked();
    group.breakLock('x', token);
    group.pass(2 * TTL_MS);
    // The session is worked on at once, before the timer can fire.
    expect(group.unquarantine('x').events).toMatchObject([
      { type: 'unquarantined' },
      { type: 'expired', token },
      { type: 'delayed' },
      { type: 'sessionEnded', session },
    ]);
    expect(group.state.revoking).toBe(0);
  });

  it('rule C9: a removed consumer’s hold on a quarantined name is revoked when that is lifted', () => {
    const group = new TestGroup();
    const session = group.open();
    const [x, y] = ['x', 'y'].map((name) => group.lock(session, name));
    group.quarantine('x');
    const { events } = group.run([group.configureCommand({ consumers: [] })]);
    expect(events).toMatchObject([{ type: 'configured' }, { type: 'revoking', token: y }]);
    expect(group.unquarantine('x').events).toMatchObject([
      { type: 'unquarantined' },
      { type: 'revoking', token: x, cause: 'consumerRemoved', until: TTL_MS },
    ]);
    expect(eventsOf(group.pass(TTL_MS), 'revoked')).toHaveLength(2);
  });

  it('rule C10: a quarantine lifted while the session is being ended puts its hold in its place by token', () => {
    const group = new TestGroup();
    const session = group.open();
    const early = group.lock(session, 'x', { key: 'early' });
    const count = TRANSITIONS_PER_ENTRY_MAX + 5;
    const commands = Array.from({ length: count }, (_, i) =>
      group.acquireCommand(session, `l${i}`, { key: `k${i}`, acks: [i === 0 ? 'early' : `k${i - 1}`] }),
    );
    group.run(commands);
    group.quarantine('x');
    const { events } = group.run([
      { type: 'closeSession', session, attach: 1, clean: true },
      // The budget is used up by now, and five are left, all of them younger than `x`.
      { type: 'unquarantine', name: 'x', by: 'somebody' },
    ]);
    expect(eventsOf(events, 'released').map(({ token }) => token)).not.toContain(early);
    const rest = eventsOf(group.pass(0), 'released').map(({ token }) => token);
    expect(rest).toHaveLength(6);
    expect(rest[0]).toBe(early);
    expect(group.state.sessions.size).toBe(0);
  });

  it('rule C9: permits cut while a name is quarantined are revoked when that is lifted', () => {
    const config = (permits: number) => ({
      modes: ['semaphore'] as const,
      semaphores: [{ pattern: 's', permits }],
    });
    const group = new TestGroup({ config: config(3) });
    const session = group.open();
    const tokens = Array.from({ length: 3 }, () => group.lock(session, 's', { mode: 'semaphore' }));
    group.quarantine('s');
    expect(group.run([group.configureCommand(config(1))]).events).toHaveLength(1);
    expect(group.unquarantine('s').events).toMatchObject([
      { type: 'unquarantined' },
      { type: 'revoking', token: tokens[2], cause: 'permitsCut' },
      { type: 'revoking', token: tokens[1], cause: 'permitsCut' },
    ]);
  });

  it('rule C13: the timers of several holds go on where they stood', () => {
    const group = new TestGroup({ config: { modes: ['shared'], maxHoldMs: 60_000 } });
    const session = group.open();
    const tokens: number[] = [];
    for (let i = 0; i < 3; i++) {
      tokens.push(group.lock(session, 'x', { mode: 'shared' }));
      group.pass(1_000);
    }
    group.quarantine('x');
    expect(group.state.timers.size).toBe(0);
    group.pass(58_000);
    group.unquarantine('x');
    // The first two are due already or now; the third in a second.
    expect(eventsOf(group.pass(0), 'revoking').map(({ token }) => token)).toEqual(tokens.slice(0, 2));
    expect(eventsOf(group.pass(1_000), 'revoking').map(({ token }) => token)).toEqual(tokens.slice(2));
  });
});
