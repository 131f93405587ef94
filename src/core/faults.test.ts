/** When the machine itself fails: the step is named, and the name can be taken out of service (rule C13). */
import { describe, expect, it } from 'vitest';
import { eventsOf, faultOf, LINEAGE, TestGroup, TTL_MS, traceOf } from '../../test/support/core.ts';
import type { Command } from '../api/entry.ts';
import { AssertionError, apply, CoreFault, createState, type FaultProbe } from './index.ts';

/** A machine whose consequences for one name throw, as those of a bug would. */
function breaking(name: string): FaultProbe {
  return {
    beforeConsequence(about) {
      if (about === name) throw new AssertionError(`planted fault at ${name}`);
    },
  };
}

function breakingOn(type: Command['type']): FaultProbe {
  return {
    beforeCommand(command) {
      if (command.type === type) throw new AssertionError(`planted fault in ${type}`);
    },
  };
}

/** The state as the leader makes it again: from the entries that were committed. */
function rebuilt(group: TestGroup) {
  const state = createState(LINEAGE);
  for (const entry of group.entries) apply(state, entry);
  return state;
}

describe('a command that throws', () => {
  it('rule C13: is named by its place', () => {
    const group = new TestGroup();
    const session = group.open();
    const acquire = group.acquireCommand(session, 'x');
    const release = group.releaseCommand(session, 'x', 1);
    const fault = faultOf(() => group.run([acquire, release, acquire], 0, breakingOn('release')));
    expect(fault.step).toEqual({ kind: 'command', position: 1 });
    expect(fault).toBeInstanceOf(CoreFault);
    expect(fault.cause).toBeInstanceOf(AssertionError);
    expect(fault.message).toContain('planted fault in release');
  });

  it('rule C13: is named by its place at the front of an entry too', () => {
    const group = new TestGroup();
    const quarantine: Command = { type: 'quarantine', name: 'x', reason: 'test' };
    const resign: Command = { type: 'resign', epoch: 1 };
    const fault = faultOf(() => group.run([quarantine, resign], 0, breakingOn('quarantine')));
    expect(fault.step).toEqual({ kind: 'command', position: 0 });
    const second = faultOf(() => new TestGroup().run([quarantine, resign], 0, breakingOn('resign')));
    expect(second.step).toEqual({ kind: 'command', position: 1 });
  });

  it('rule C13: can be left out, and its session ended, on a state made again from the log', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    const poison = group.releaseCommand(a, 'x', token);
    const others = [group.acquireCommand(b, 'y')];
    const before = traceOf(rebuilt(group));
    faultOf(() => apply(group.state, group.draft([...others, poison]), breakingOn('release')));
    const state = rebuilt(group);
    expect(traceOf(state)).toEqual(before);
    const last = group.entries.at(-1);
    if (last === undefined) throw new Error('no entries');
    const commands: Command[] = [...others, { type: 'expireSessions', sessions: [a], cause: 'threw' }];
    const { events } = apply(state, { ...last, index: last.index + 1, commands }, breakingOn('release'));
    expect(events).toMatchObject([
      { type: 'granted', name: 'y', session: b },
      { type: 'sessionEnding', session: a, cause: 'threw' },
      { type: 'expired', name: 'x', session: a, token, cause: 'threw' },
      { type: 'delayed', name: 'x' },
      { type: 'sessionEnded', session: a },
    ]);
  });
});

describe('a consequence that throws', () => {
  const timers: [
    what: string,
    prepare: (group: TestGroup, holder: number, waiter: number) => void,
    ms: number,
  ][] = [
    ['the end of a wait', (group, _holder, waiter) => group.wait(waiter, 'x', { waitMs: 1_000 }), 1_000],
    ['max hold', () => undefined, 60_000],
    ['the end of a revoke', (group) => group.breakLock('x', 1), TTL_MS],
  ];

  it.each(timers)(
    'rule C13: %s is named by its lock, and quarantine puts it out of action',
    (_what, prepare, ms) => {
      const group = new TestGroup({ config: { maxHoldMs: 60_000, lockDelayMs: 1_000 } });
      const [holder, waiter] = [group.open(), group.open()];
      const token = group.lock(holder, 'x');
      prepare(group, holder, waiter);
      const twin = new TestGroup({ config: { maxHoldMs: 60_000, lockDelayMs: 1_000 } });
      for (const entry of group.entries.slice(2)) twin.run(entry.commands);
      const fault = faultOf(() => group.run([], ms, breaking('x')));
      expect(fault.step).toEqual({ kind: 'consequence', name: 'x' });
      // The same entry again, with the quarantine in front of it: nothing touches `x`, and all else goes on.
      const { events, results } = twin.run(
        [{ type: 'quarantine', name: 'x', reason: 'it threw' }, twin.acquireCommand(waiter, 'y')],
        ms,
        breaking('x'),
      );
      expect(results).toMatchObject([{ type: 'done' }, { type: 'granted' }]);
      expect(events[0]).toEqual({ type: 'quarantined', name: 'x', reason: 'it threw' });
      expect(twin.run([], 10 * 60_000, breaking('x')).events).toMatchObject([
        { type: 'revoking', name: 'y' },
      ]);
      expect(twin.holder('x')).toEqual({ session: holder, token });
    },
  );

  it('rule C13: the end of a lock-delay is named by its lock, and quarantine puts it out of action', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const session = group.open();
    group.lock(session, 'x');
    group.expire(session);
    const state = rebuilt(group);
    expect(faultOf(() => group.run([], 1_000, breaking('x'))).step).toEqual({
      kind: 'consequence',
      name: 'x',
    });
    const last = group.entries.at(-1);
    if (last === undefined) throw new Error('no entries');
    const commands: Command[] = [{ type: 'quarantine', name: 'x', reason: 'it threw' }];
    const entry = { ...last, index: last.index + 1, at: last.at + 1_000, commands };
    expect(apply(state, entry, breaking('x')).events).toMatchObject([{ type: 'quarantined' }]);
    expect(state.timers.size).toBe(0);
  });

  it('rule C13: the end of a session is named by the lock it was at', () => {
    const group = new TestGroup();
    const session = group.open();
    for (const name of ['x', 'y', 'z']) group.lock(session, name);
    const close: Command = { type: 'closeSession', session, attach: 1, clean: true };
    expect(faultOf(() => group.run([close], 0, breaking('y'))).step).toEqual({
      kind: 'consequence',
      name: 'y',
    });
  });
});

describe('quarantine', () => {
  it('rule C13: grants the name to nobody until it is lifted', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const [a, b] = [group.open(), group.open()];
    group.quarantine('x');
    expect(group.acquire(a, 'x', { waitMs: 1_000 })).toMatchObject({ code: 'QUARANTINED' });
    expect(group.pass(24 * 3_600_000)).toEqual([]);
    expect(group.unquarantine('x').events).toEqual([{ type: 'unquarantined', name: 'x', by: 'somebody' }]);
    expect(group.state.locks.size).toBe(0);
    expect(group.acquire(b, 'x')).toMatchObject({ type: 'granted' });
  });

  it('rule C13: refuses who waits, in the order of the queue', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.wait(b, 'x', { key: 'first' });
    group.wait(a, 'x', { key: 'second' });
    const refused = eventsOf(group.quarantine('x').events, 'refused');
    expect(refused).toMatchObject([
      { key: 'first', code: 'QUARANTINED', fromQueue: true },
      { key: 'second', code: 'QUARANTINED', fromQueue: true },
    ]);
    expect(group.state.waits).toBe(0);
  });

  it('rule C13: a holder keeps the lock and may give it up, without lock-delay', () => {
    const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    const other = group.lock(b, 'y');
    group.quarantine('x');
    group.quarantine('y');
    expect(group.release(a, 'x', token).events).toMatchObject([{ type: 'released' }]);
    const { events } = group.release(b, 'y', other);
    expect(eventsOf(events, 'delayed')).toEqual([]);
    expect(group.acquire(a, 'x')).toMatchObject({ code: 'QUARANTINED' });
    expect(group.acquire(a, 'y')).toMatchObject({ code: 'QUARANTINED' });
    expect(group.state.holds).toBe(0);
  });

  it('rule C13: the timer of a hold goes on where it stood when the quarantine is lifted', () => {
    const group = new TestGroup({ config: { maxHoldMs: 60_000 } });
    const session = group.open();
    const token = group.lock(session, 'x');
    group.quarantine('x');
    group.pass(10_000);
    group.unquarantine('x');
    expect(group.pass(49_999)).toEqual([]);
    expect(group.pass(1)).toMatchObject([{ type: 'revoking', token, cause: 'maxHold' }]);
    // Overdue when it is lifted: it fires with the next entry.
    group.quarantine('x');
    group.pass(10 * TTL_MS);
    expect(group.unquarantine('x').events).toMatchObject([{ type: 'unquarantined' }]);
    expect(group.pass(0)).toMatchObject([{ type: 'revoked', token, cause: 'maxHold' }]);
  });

  it('rule C13: a revoke during a quarantine only sets the time', () => {
    const group = new TestGroup();
    const session = group.open();
    const token = group.lock(session, 'x');
    group.quarantine('x');
    const { at } = group.state;
    expect(group.breakLock('x', token).events).toMatchObject([
      { type: 'broken' },
      { type: 'revoking', token, until: at + TTL_MS },
    ]);
    expect(group.pass(2 * TTL_MS)).toEqual([]);
    group.unquarantine('x');
    expect(group.pass(0)).toMatchObject([{ type: 'revoked', token, cause: 'break' }]);
  });

  it('rule C13: twice is once, and lifting what is not there is INVALID', () => {
    const group = new TestGroup();
    group.quarantine('x');
    const before = traceOf(group.state);
    expect(group.quarantine('x')).toEqual({ events: [], results: [{ type: 'done' }] });
    expect(traceOf(group.state)).toEqual(before);
    group.lock(group.open(), 'y');
    for (const name of ['y', 'z']) {
      expect(group.unquarantine(name)).toMatchObject({ events: [], results: [{ code: 'INVALID' }] });
    }
  });
});
