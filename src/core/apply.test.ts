/** The frame of `apply`: purity, the order of steps, the budget, the chained event hash (rules C1, C14). */
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  deepFreeze,
  eventsOf,
  faultOf,
  LINEAGE,
  openCommand,
  TestGroup,
  traceOf,
} from '../../test/support/core.ts';
import type { Command, Entry } from '../api/entry.ts';
import { COMMANDS_PER_ENTRY_MAX, TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { apply, createState, type Draft, decodeEntry, encodeEntry, hasBacklog, nextDue } from './index.ts';

afterEach(() => vi.restoreAllMocks());

/** A little of everything: queue, time-out, revoke, lock-delay, forced end, session end. */
function aLittleOfEverything(): TestGroup {
  const group = new TestGroup({ config: { lockDelayMs: 1_000 } });
  const [a, b, c] = [group.open(), group.open(), group.open()];
  const token = group.lock(a, 'x');
  group.wait(b, 'x', { waitMs: 2_000 });
  group.wait(c, 'x', { waitMs: 60_000 });
  group.pass(2_000);
  group.breakLock('x', token);
  group.pass(15_000);
  group.pass(1_000);
  group.lock(b, 'y');
  group.expire(b);
  group.quarantine('z');
  group.close(c);
  return group;
}

describe('what apply depends on', () => {
  it('rule C1: the same entries give the same events and hash, read back from their bytes too', () => {
    const group = aLittleOfEverything();
    const direct = createState(LINEAGE);
    const decoded = createState(LINEAGE);
    for (const draft of group.entries) {
      const entry: Entry = { ...draft, previous: '', wallMs: 7, eventHash: '' };
      const first = apply(direct, draft);
      const second = apply(decoded, decodeEntry(encodeEntry(entry).bytes));
      expect(second).toEqual(first);
      expect(decoded.eventHash).toBe(direct.eventHash);
    }
    expect(direct.eventHash).toBe(group.state.eventHash);
    expect(traceOf(decoded)).toEqual(traceOf(group.state));
  });

  it('rule C1: apply uses no clock and no randomness, and changes nothing of the entry', () => {
    const { entries, state } = aLittleOfEverything();
    const forbidden = (): never => {
      throw new Error('apply is not pure');
    };
    vi.spyOn(Date, 'now').mockImplementation(forbidden);
    vi.spyOn(Math, 'random').mockImplementation(forbidden);
    vi.spyOn(performance, 'now').mockImplementation(forbidden);
    const again = createState(LINEAGE);
    for (const draft of entries) apply(again, deepFreeze(draft));
    expect(again.eventHash).toBe(state.eventHash);
  });
});

describe('the place of an entry', () => {
  const cases: [what: string, differs: Partial<Draft>][] = [
    ['an index that does not follow', { index: 7 }],
    ['the same index again', { index: 2 }],
    ['another lineage', { lineage: 'other' }],
    ['a lower epoch', { epoch: 4 }],
    ['a higher epoch without take-over', { epoch: 6 }],
    [
      'a higher epoch whose take-over is not first',
      {
        epoch: 6,
        commands: [
          { type: 'resign', epoch: 5 },
          { type: 'takeOver', epoch: 6, unixSeconds: 0, tokenFloor: 0, reason: '' },
        ],
      },
    ],
    ['time that goes back', { at: 999 }],
    ['time that is no whole number', { at: 1_000.5 }],
    ['an unknown format', { format: 2 }],
    ['a lower behaviour level', { behaviour: 1 }],
    ['an unknown behaviour level', { behaviour: 3 }],
  ];

  it.each(cases)('rule C1: %s breaks the log, not the locks', (_what, differs) => {
    const group = new TestGroup({ takeOver: { epoch: 5 } });
    group.pass(1_000);
    const fault = faultOf(() => apply(group.state, { ...group.draft([]), ...differs }));
    expect(fault.step).toEqual({ kind: 'entry' });
  });
});

describe('the order of steps', () => {
  it('rule C1: timers due fire before the commands of the entry', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const token = group.lock(a, 'x');
    group.wait(b, 'x', { key: 'late', waitMs: 1_000 });
    const { events, results } = group.run([group.releaseCommand(a, 'x', token)], 1_000);
    expect(events).toMatchObject([
      { type: 'refused', key: 'late', code: 'WAIT_TIMEOUT', fromQueue: true },
      { type: 'released', token },
    ]);
    expect(results).toEqual([{ type: 'done' }]);
    expect(group.holder('x')).toBeNull();
  });

  it('rule C1: timers fire by due time, and by their order of setting when due together', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    for (const name of ['x', 'y', 'z']) group.lock(a, name);
    group.wait(b, 'z', { waitMs: 3_000 });
    group.wait(b, 'y', { waitMs: 2_000 });
    group.wait(b, 'x', { waitMs: 2_000 });
    expect(nextDue(group.state)).toBe(2_000);
    expect(group.pass(1_999)).toEqual([]);
    expect(eventsOf(group.pass(5_000), 'refused').map(({ name }) => name)).toEqual(['y', 'x', 'z']);
  });

  it('rule C1: an entry carries out 2,000 consequences, and the next carries on', () => {
    const group = new TestGroup();
    const a = group.open();
    const holder = group.openWithLocks(2_500);
    expect(group.session(holder).holds.size).toBe(2_500);
    const first = group.run([{ type: 'closeSession', session: holder, attach: 1, clean: true }]);
    expect(eventsOf(first.events, 'released')).toHaveLength(TRANSITIONS_PER_ENTRY_MAX);
    expect(hasBacklog(group.state)).toBe(true);
    // Commands of the entry that is busy are answered all the same.
    const second = group.run([group.acquireCommand(a, 'free', { key: 'k' })]);
    expect(second.results).toMatchObject([{ type: 'granted' }]);
    expect(eventsOf(second.events, 'released')).toHaveLength(500);
    expect(second.events.at(-2)).toEqual({ type: 'sessionEnded', session: holder });
    expect(hasBacklog(group.state)).toBe(false);
  });
});

describe('the budget', () => {
  it('rule C1: commands of an entry are never deferred, however many consequences there are', () => {
    const group = new TestGroup();
    const names = Array.from({ length: COMMANDS_PER_ENTRY_MAX }, (_, i) => `n${i}`);
    const sessions = Array.from({ length: 10 }, () => group.open());
    const commands = names.map((name, i) => group.acquireCommand(sessions[i % 10] as number, name));
    const { results } = group.run(commands);
    expect(results).toHaveLength(COMMANDS_PER_ENTRY_MAX);
    expect(results.every(({ type }) => type === 'granted')).toBe(true);
    const ends: Command[] = sessions.map((session) => ({
      type: 'closeSession',
      session,
      attach: 1,
      clean: true,
    }));
    const more = group.run([...ends, openCommand()]);
    expect(more.results.slice(0, 10)).toEqual(ends.map(() => ({ type: 'done' })));
    expect(more.results[10]).toEqual({ type: 'opened', session: 11 });
  });

  it('rule C1: timers and ends share one budget, what was begun comes first', () => {
    const group = new TestGroup();
    const [holder, waiter] = [group.openWithLocks(1_500), group.open()];
    const owner = group.openWithLocks(3_000);
    group.run(
      Array.from({ length: 1_500 }, (_, i) =>
        group.acquireCommand(waiter, `lock-${i}-of-${holder}`, { waitMs: 1_000 }),
      ),
    );
    group.run([{ type: 'expireSessions', sessions: [owner], cause: 'expired' }]);
    const second = group.run([], 1_000);
    expect(eventsOf(second.events, 'expired')).toHaveLength(1_000);
    expect(eventsOf(second.events, 'refused')).toHaveLength(1_000);
    expect(second.events.findLastIndex(({ type }) => type === 'expired')).toBeLessThan(
      second.events.findIndex(({ type }) => type === 'refused'),
    );
    expect(hasBacklog(group.state)).toBe(true);
    const third = group.run([]);
    expect(eventsOf(third.events, 'refused')).toHaveLength(500);
    expect(hasBacklog(group.state)).toBe(false);
    expect(group.run([]).events).toEqual([]);
  });

  it('rule C1: a session without locks ends at once even when the budget is used up', () => {
    const group = new TestGroup();
    const bare = group.open();
    const owner = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX);
    const { events } = group.run([
      { type: 'closeSession', session: owner, attach: 1, clean: true },
      { type: 'closeSession', session: bare, attach: 1, clean: true },
    ]);
    expect(eventsOf(events, 'sessionEnded').map(({ session }) => session)).toEqual([owner, bare]);
    expect(group.state.backlog).toEqual([]);
  });

  it('rule C1: behind a session that is not done yet, nobody is dealt with', () => {
    const group = new TestGroup();
    const bare = group.open();
    const owner = group.openWithLocks(TRANSITIONS_PER_ENTRY_MAX + 1);
    const { events } = group.run([
      { type: 'closeSession', session: owner, attach: 1, clean: true },
      { type: 'closeSession', session: bare, attach: 1, clean: true },
    ]);
    expect(eventsOf(events, 'sessionEnded')).toEqual([]);
    expect(eventsOf(group.run([]).events, 'sessionEnded').map(({ session }) => session)).toEqual([
      owner,
      bare,
    ]);
  });
});

describe('quarantine at the front of an entry', () => {
  it('rule C1: applies before backlog and timers', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.wait(b, 'x', { waitMs: 1_000, key: 'w' });
    const { events, results } = group.run(
      [
        { type: 'quarantine', name: 'x', reason: 'test' },
        { type: 'quarantine', name: 'y', reason: 'test' },
        group.acquireCommand(a, 'z'),
      ],
      1_000,
    );
    expect(results.map(({ type }) => type)).toEqual(['done', 'done', 'granted']);
    expect(events).toMatchObject([
      { type: 'quarantined', name: 'x' },
      { type: 'refused', key: 'w', code: 'QUARANTINED' },
      { type: 'quarantined', name: 'y' },
      { type: 'granted', name: 'z' },
    ]);
  });

  it('rule C1: applies in its turn anywhere else', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    group.lock(a, 'x');
    group.wait(b, 'x', { waitMs: 1_000 });
    const { events } = group.run(
      [group.acquireCommand(a, 'z'), { type: 'quarantine', name: 'x', reason: 'test' }],
      1_000,
    );
    expect(events).toMatchObject([
      { type: 'refused', code: 'WAIT_TIMEOUT' },
      { type: 'granted', name: 'z' },
      { type: 'quarantined', name: 'x' },
    ]);
  });
});

describe('the event hash', () => {
  it('rule C14: grows with every entry that has events, and only with those', () => {
    const group = new TestGroup();
    const session = group.open();
    const before = group.state.eventHash;
    group.pass(1_000);
    group.attach(session, 2);
    group.release(session, 'nobody', 3);
    expect(group.state.eventHash).toBe(before);
    group.lock(session, 'x');
    expect(group.state.eventHash).toMatch(/^[0-9a-f]{64}$/);
    expect(group.state.eventHash).not.toBe(before);
  });

  it.each<[what: string, differs: { name?: string; owner?: string; key?: string; waitMs?: number }]>([
    ['name', { name: 'y' }],
    ['owner', { owner: 'other' }],
    ['key', { key: 'other' }],
  ])('rule C14: a replica whose grant differs in its %s computes another hash', (_what, differs) => {
    const [first, second] = [new TestGroup(), new TestGroup()];
    const session = first.open();
    second.open();
    expect(second.state.eventHash).toBe(first.state.eventHash);
    first.lock(session, 'x', { key: 'k' });
    second.lock(session, differs.name ?? 'x', { key: 'k', ...differs });
    expect(second.state.eventHash).not.toBe(first.state.eventHash);
    // ...and stays different, though what follows is the same.
    first.open();
    second.open();
    expect(second.state.eventHash).not.toBe(first.state.eventHash);
  });

  it('rule C14: covers the order of events and where one entry ends', () => {
    const [apart, together, swapped] = [new TestGroup(), new TestGroup(), new TestGroup()];
    const [a, b] = [openCommand({ client: 'a' }), openCommand({ client: 'b' })];
    apart.run([a]);
    apart.run([b]);
    together.run([a, b]);
    swapped.run([b, a]);
    const hashes = [apart, together, swapped].map(({ state }) => state.eventHash);
    expect(new Set(hashes).size).toBe(3);
  });
});
