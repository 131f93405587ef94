/** Sessions as the leader sees them: attach numbers (S3), a new leader (S5). */
import { describe, expect, test } from 'vitest';
import { acquireCommand, SECRET_HASH, TTL_MS } from '../../../test/support/core.ts';
import { attachCommand, closeCommand, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import type { LockEvent } from '../../api/entry.ts';
import { TOKENS_PER_SECOND } from '../../api/limits.ts';
import { digestOf } from '../../api/wire.ts';

/** A verdict waits for the beat, which comes four times a second. */
const BEAT_MS = 250;
/** As high as the clock of these tests makes it, a little less. */
const FLOOR = 1_735_689_600 * TOKENS_PER_SECOND;

function endings(events: readonly LockEvent[]): readonly number[] {
  return events.flatMap((event) => (event.type === 'sessionEnding' ? [event.session] : []));
}

describe('rule S3: the attach number', () => {
  test('an old front-end stream is superseded: its commands are refused, its keepalives renew nothing', async () => {
    const bench = await LeaderBench.start();
    const [old, young] = [bench.frontEnd(), bench.frontEnd()];
    const session = await old.open(1);
    await old.acquire(1, { session, key: 'k' });
    expect(await young.get(1, attachCommand(session, 2))).toMatchObject({ type: 'attached' });
    const release = { type: 'release', session, attach: 1, name: 'a', token: 1, key: '', acks: [] } as const;
    expect(await old.get(1, release)).toMatchObject({ type: 'refused', code: 'SUPERSEDED' });
    expect(await old.get(1, closeCommand(session))).toMatchObject({ code: 'SUPERSEDED' });
    expect(await old.acquire(1, { session, key: 'k2', name: 'b' })).toMatchObject({ code: 'SUPERSEDED' });
    const attachedAt = bench.runtime.nowMs;
    for (let number = 1; number < 30; number++) {
      old.keepalive(1, number, [session, 1]);
      await bench.runtime.pass(500);
    }
    expect(old.keepalives.flatMap(({ what }) => what.sessions).filter(({ alive }) => alive)).toEqual([]);
    await bench.runtime.pass(attachedAt + TTL_MS + BEAT_MS - bench.runtime.nowMs);
    expect(endings(bench.events)).toEqual([session]);
  });

  test('an attach counts as a keepalive; a lower or equal number, or another secret, does not', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    await bench.runtime.pass(10_000);
    expect(await front.get(2, attachCommand(session, 5))).toMatchObject({ type: 'attached', ttlMs: TTL_MS });
    const attachedAt = bench.runtime.nowMs;
    await bench.runtime.pass(5_000);
    expect(await front.get(3, attachCommand(session, 5))).toMatchObject({ code: 'SUPERSEDED' });
    expect(await front.get(3, attachCommand(session, 4))).toMatchObject({ code: 'SUPERSEDED' });
    const guess = { ...attachCommand(session, 6), secretHash: 'b6'.repeat(32) };
    expect(await front.get(3, guess)).toMatchObject({ code: 'SESSION_EXPIRED' });
    await bench.runtime.pass(attachedAt + TTL_MS - bench.runtime.nowMs - 1);
    expect(endings(bench.events)).toEqual([]);
    await bench.runtime.pass(BEAT_MS + 1);
    expect(endings(bench.events)).toEqual([session]);
  });

  test('who guesses at secrets does not keep a dead session alive', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    const openedAt = bench.runtime.nowMs;
    const guess = { ...attachCommand(session, 9), secretHash: 'b6'.repeat(32) };
    while (bench.runtime.nowMs < openedAt + TTL_MS + 2 * BEAT_MS) {
      front.ask(2, guess);
      await bench.runtime.pass(100);
    }
    expect(endings(bench.events)).toEqual([session]);
  });

  test('the answer to an attach lists all grants and waits of the session', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [holder, other] = [await front.open(1), await front.open(2)];
    await front.acquire(1, { session: holder, key: 'a1', name: 'a' });
    await front.acquire(1, { session: holder, key: 'b1', name: 'b' });
    await front.acquire(2, { session: other, key: 'c1', name: 'c' });
    await front.acquire(1, { session: holder, key: 'c2', name: 'c', waitMs: 60_000 });
    expect(await front.get(3, attachCommand(holder, 2))).toMatchObject({
      grants: [
        { name: 'a', keys: ['a1'] },
        { name: 'b', keys: ['b1'] },
      ],
      waits: [{ name: 'c', key: 'c2', position: 1 }],
    });
  });

  test('events go to the stream attached last, also when both lie in one entry', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [holder, waiter] = [await front.open(1), await front.open(2)];
    const granted = await front.acquire(1, { session: holder, key: 'h' });
    await front.acquire(2, { session: waiter, key: 'w', waitMs: 60_000 });
    const token = granted.type === 'granted' ? granted.token : 0;
    front.ask(3, attachCommand(waiter, 2));
    front.ask(1, { type: 'release', session: holder, attach: 1, name: 'a', token, key: '', acks: [] });
    await bench.runtime.pass(1);
    expect(front.notices).toHaveLength(1);
    expect(front.notices[0]).toMatchObject({
      client: 3,
      what: { session: waiter, attach: 2, event: { type: 'granted', key: 'w' } },
    });
  });

  test('keepalive answers carry count and digest of the grants', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    const tokens: number[] = [];
    for (const name of ['a', 'b', 'c']) {
      const answer = await front.acquire(1, { session, key: name, name });
      if (answer.type === 'granted') tokens.push(answer.token);
    }
    front.keepalive(1, 1, [session, 1]);
    await bench.runtime.pass(BEAT_MS);
    const digest = tokens.reduce((sum, token) => sum ^ digestOf(token), 0) >>> 0;
    expect(front.keepalives[0]?.what.sessions).toEqual([
      { session, attach: 1, alive: true, grants: 3, digest, revoking: [] },
    ]);
  });

  test('a client stream that is closed hears nothing more; its sessions live on to their TTL', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [holder, waiter] = [await front.open(1), await front.open(2)];
    const granted = await front.acquire(1, { session: holder, key: 'h' });
    await front.acquire(2, { session: waiter, key: 'w', waitMs: 60_000 });
    front.closeClient(2);
    const token = granted.type === 'granted' ? granted.token : 0;
    await front.get(1, { type: 'release', session: holder, attach: 1, name: 'a', token, key: '', acks: [] });
    expect(front.notices).toEqual([]);
    expect(bench.events.at(-1)).toMatchObject({ type: 'granted', session: waiter });
    front.keepalive(1, 1, [holder, 1]);
    await bench.runtime.pass(TTL_MS - 100);
    expect(endings(bench.events)).toEqual([]);
  });
});

describe('rule S5: a new leader', () => {
  test('raises the token, gives every session a full TTL and serves what was granted', async () => {
    const bench = await LeaderBench.start({ tokenFloor: FLOOR });
    const front = bench.frontEnd();
    const session = await front.open(1);
    const before = await front.acquire(1, { session, key: 'k' });
    await bench.runtime.pass(TTL_MS - 1_000);
    await bench.lead();
    const ledAt = bench.runtime.nowMs;
    const next = bench.frontEnd();
    expect(await next.get(1, { type: 'getLock', name: 'a' })).toMatchObject({
      lock: { holders: [{ session }] },
    });
    const other = await next.open(1, { ttlMs: 60_000 });
    const after = await next.acquire(1, { session: other, key: 'k', name: 'b' });
    const token = (answer: typeof before): number => (answer.type === 'granted' ? answer.token : Number.NaN);
    expect(token(after)).toBeGreaterThan(token(before));
    expect(token(after)).toBeGreaterThan(Math.floor(bench.runtime.clock.wallMs() / 1000) * TOKENS_PER_SECOND);
    await bench.runtime.pass(ledAt + TTL_MS - bench.runtime.nowMs - 1);
    expect(endings(bench.events)).toEqual([]);
    await bench.runtime.pass(BEAT_MS + 1);
    expect(endings(bench.events)).toEqual([session]);
  });

  test('a raise is never refused: a clock that went back raises nothing, and tokens still grow', async () => {
    const bench = await LeaderBench.start({ tokenFloor: FLOOR });
    const front = bench.frontEnd();
    const session = await front.open(1);
    const before = await front.acquire(1, { session, key: 'k' });
    bench.runtime.stepWall(-10 * 365 * 86_400_000);
    await bench.lead();
    const next = bench.frontEnd();
    const other = await next.open(1);
    const after = await next.acquire(1, { session: other, key: 'k', name: 'b' });
    if (before.type !== 'granted' || after.type !== 'granted') throw new Error('not granted');
    expect(after.token).toBe(before.token + 1);
  });

  test('the floor counts at birth alone', async () => {
    const floor = 2 ** 52;
    const bench = await LeaderBench.start({ tokenFloor: floor });
    const front = bench.frontEnd();
    const session = await front.open(1);
    expect(await front.acquire(1, { session, key: 'k' })).toMatchObject({ token: floor + 1 });
    await bench.lead({ tokenFloor: floor + 1_000 });
    const next = bench.frontEnd();
    const again = await next.get(1, attachCommand(session, 2));
    expect(again).toMatchObject({ type: 'attached' });
    expect(await next.acquire(1, { session, key: 'l', name: 'b', attach: 2 })).toMatchObject({
      token: floor + 2,
    });
  });

  test('the deposed one stops by itself, says why, and answers nothing from its state any more', async () => {
    const bench = await LeaderBench.start();
    const old = bench.leader;
    const front = bench.frontEnd();
    const session = await front.open(1);
    await bench.lead();
    const young = bench.frontEnd();
    old.receive(young, {
      format: 1,
      groups: [{ client: 1, requests: [{ id: 1, body: acquireCommand({ session, key: 'k' }) }] }],
      closed: [],
    });
    await bench.runtime.pass(1);
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(young.answers).toEqual([]);
    old.receive(young, {
      format: 1,
      groups: [{ client: 1, requests: [{ id: 2, body: { type: 'getLock', name: 'a' } }] }],
      closed: [],
    });
    expect(young.answers.map(({ what }) => what)).toMatchObject([
      { id: 2, body: { type: 'rejected', code: 'UNAVAILABLE' } },
    ]);
    await expect(old.submit([{ type: 'resign', epoch: 1 }])).rejects.toThrow('does not lead');
    const { steps } = bench.runtime;
    await bench.runtime.pass(1_000);
    // The new leader may have timers; the old one has none left.
    expect(bench.runtime.steps - steps).toBeLessThanOrEqual(1_000 / BEAT_MS + 2);
  });
});

test('a leader that has nothing to do keeps one timer and no memory of those who left', async () => {
  const bench = await LeaderBench.start();
  const front = bench.frontEnd();
  for (let client = 1; client <= 50; client++) {
    const session = await front.open(client, { secretHash: SECRET_HASH });
    await front.acquire(client, { session, key: 'k', name: `${client}` });
    await front.get(client, closeCommand(session));
    front.closeClient(client);
  }
  await bench.runtime.pass(TTL_MS);
  const { state } = bench.leader;
  expect([state.sessions.size, state.locks.size, state.holds, state.timers.first()]).toEqual([
    0,
    0,
    0,
    undefined,
  ]);
  const { steps } = bench.runtime;
  await bench.runtime.pass(60_000);
  // A beat every two seconds.
  expect(bench.runtime.steps - steps).toBeLessThanOrEqual(32);
});
