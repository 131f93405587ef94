/** A leader to which front ends come from its predecessor: routes, what was lost on the way, and who may expire when (rules S4, S5). */
import { expect, test } from 'vitest';
import { attachCommand, FrontEndStub, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import type { Position, Reattachment } from '../../api/wire.ts';
import type { Leader } from './leader.ts';
import { RecentEvents } from './recent-events.ts';

const TTL_MS = 5_000;

function reattach(
  leader: Leader,
  link: FrontEndStub,
  sessions: readonly Reattachment[],
  seen: Position,
): void {
  leader.receive(link, { format: 1, groups: [], closed: [], reattach: { sessions, seen } });
}

function allAttached(leader: Leader, link: FrontEndStub): void {
  leader.receive(link, { format: 1, groups: [], closed: [], allAttached: true });
}

/** A leader with two sessions, one holding a lock for which the other waits, and its successor. */
async function succession() {
  const bench = await LeaderBench.start();
  const old = bench.frontEnd();
  const holder = await old.open(1, { ttlMs: TTL_MS });
  const waiter = await old.open(2, { ttlMs: TTL_MS });
  const granted = await old.acquire(1, { session: holder, key: 'held', name: 'a' });
  if (granted.type !== 'granted') throw new Error('not granted');
  await old.acquire(2, { session: waiter, key: 'waits', name: 'a', waitMs: 60_000 });
  const seen = bench.leader.position;
  const release = {
    type: 'release',
    session: holder,
    attach: 1,
    name: 'a',
    token: granted.token,
    key: '',
    acks: [],
  } as const;
  return { bench, old, holder, waiter, seen, release };
}

const sessionsEnded = (bench: LeaderBench): number[] =>
  bench.events.flatMap((event) => (event.type === 'sessionEnding' ? [event.session] : []));

test('notices go where the bulk re-attachment says', async () => {
  const { bench, holder, waiter, release, seen } = await succession();
  const leader = await bench.lead();
  const link = new FrontEndStub(bench);
  leader.connect(link);
  const sessions = [
    { client: 42, session: waiter, attach: 1 },
    { client: 7, session: holder, attach: 1 },
  ];
  reattach(leader, link, sessions, seen);
  allAttached(leader, link);
  await link.get(7, release);
  expect(link.notices.map(({ client, what }) => [client, what.session, what.event.type])).toEqual([
    [42, waiter, 'granted'],
  ]);
});

test('a session that was attached elsewhere since stays there', async () => {
  const { bench, holder, waiter, release, seen } = await succession();
  const leader = await bench.lead();
  const [newer, older] = [new FrontEndStub(bench), new FrontEndStub(bench)];
  expect(await newer.get(5, attachCommand(waiter, 2))).toMatchObject({ type: 'attached' });
  leader.connect(older);
  const sessions = [
    { client: 2, session: waiter, attach: 1 },
    { client: 1, session: holder, attach: 1 },
  ];
  reattach(leader, older, sessions, seen);
  await older.get(1, release);
  expect(older.notices).toEqual([]);
  expect(newer.notices.map(({ client }) => client)).toEqual([5]);
});

test('what was committed and never told is told to those who have not seen it, and to them once', async () => {
  const { bench, waiter, holder, release, seen } = await succession();
  // The old leader grants, and dies before anybody hears of it.
  await bench.submit({ type: 'break', name: 'a', token: release.token, now: true, reason: 'r', by: 'me' });
  const after = bench.leader.position;
  const recent = new RecentEvents();
  for (const { index, events } of bench.history) recent.add(index, events);
  const leader = await bench.lead({ recent });
  const [missed, knows] = [new FrontEndStub(bench), new FrontEndStub(bench)];
  for (const link of [missed, knows]) leader.connect(link);
  reattach(leader, missed, [{ client: 2, session: waiter, attach: 1 }], seen);
  reattach(leader, knows, [{ client: 1, session: holder, attach: 1 }], after);
  expect(missed.notices.map(({ what }) => what.event)).toMatchObject([{ type: 'granted', key: 'waits' }]);
  expect(knows.notices).toEqual([]);
});

test('nobody expires while a front end has not re-attached all of its sessions', async () => {
  const { bench, holder, waiter } = await succession();
  const leader = await bench.lead();
  const ready = new FrontEndStub(bench);
  const late = new FrontEndStub(bench);
  for (const link of [ready, late]) leader.connect(link);
  allAttached(leader, ready);
  await bench.runtime.pass(TTL_MS + 1_500);
  expect(sessionsEnded(bench)).toEqual([]);
  allAttached(leader, late);
  await bench.runtime.pass(500);
  expect(sessionsEnded(bench)).toEqual([holder, waiter]);
});

test('but for no longer than one more TTL', async () => {
  const { bench, holder, waiter } = await succession();
  const leader = await bench.lead();
  leader.connect(new FrontEndStub(bench));
  await bench.runtime.pass(2 * TTL_MS - 100);
  expect(sessionsEnded(bench)).toEqual([]);
  await bench.runtime.pass(600);
  expect(sessionsEnded(bench)).toEqual([holder, waiter]);
});

test('a front end that is gone holds nobody back', async () => {
  const { bench, holder, waiter } = await succession();
  const leader = await bench.lead();
  const gone = new FrontEndStub(bench);
  leader.connect(gone);
  leader.disconnect(gone);
  await bench.runtime.pass(TTL_MS + 500);
  expect(sessionsEnded(bench)).toEqual([holder, waiter]);
});

test('a bulk re-attachment renews nothing; keepalives after it do', async () => {
  const { bench, holder, waiter, seen } = await succession();
  const leader = await bench.lead();
  const link = new FrontEndStub(bench);
  leader.connect(link);
  await bench.runtime.pass(TTL_MS - 1_000);
  const sessions = [
    { client: 1, session: holder, attach: 1 },
    { client: 2, session: waiter, attach: 1 },
  ];
  reattach(leader, link, sessions, seen);
  allAttached(leader, link);
  link.keepalive(2, 1, [waiter, 1]);
  await bench.runtime.pass(1_500);
  expect(sessionsEnded(bench)).toEqual([holder]);
  expect(link.keepalives.map(({ client, what }) => [client, what.number])).toEqual([[2, 1]]);
});
