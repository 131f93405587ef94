/** What a leader may say, and when: rules S1 and S2. */
import { describe, expect, test } from 'vitest';
import { acquireCommand } from '../../../test/support/core.ts';
import { LeaderBench } from '../../../test/support/virtual/leader-bench.ts';

/** Longest time a keepalive waits for a commit while sessions are open. */
const BEAT_MS = 250;

describe('rule S1: nothing is acknowledged that no later commit proves', () => {
  test('a keepalive that arrives while an append is under way is answered with the next one', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    bench.log.hold();
    front.ask(1, acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    const sentBefore = bench.log.sent.length;
    front.keepalive(1, 7, [session, 1]);
    bench.log.letGoOne();
    await bench.runtime.pass(BEAT_MS - 1);
    expect(front.answers.at(-1)?.what.body).toMatchObject({ type: 'granted' });
    expect(front.keepalives).toEqual([]);
    await bench.runtime.pass(1);
    expect(bench.log.sent).toHaveLength(sentBefore + 1);
    expect(front.keepalives).toEqual([]);
    bench.log.letGo();
    await bench.runtime.pass(1);
    expect(front.keepalives).toHaveLength(1);
    expect(front.keepalives[0]).toMatchObject({
      what: { number: 7, sessions: [{ session, attach: 1, alive: true, grants: 1 }] },
      position: { index: bench.log.sent.at(-1)?.index },
    });
  });

  test('a keepalive alone is answered by a beat within 250 ms', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    await bench.runtime.pass(10_000);
    const arrived = bench.runtime.nowMs;
    const sentBefore = bench.log.sent.length;
    front.keepalive(1, 1, [session, 1]);
    await bench.runtime.pass(BEAT_MS);
    expect(front.keepalives).toHaveLength(1);
    expect((front.keepalives[0]?.atMs ?? Infinity) - arrived).toBeLessThanOrEqual(BEAT_MS);
    expect(bench.log.sent).toHaveLength(sentBefore + 1);
  });

  test('keepalives of many clients, closer together than a beat, do not put the beat off', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const sessions: number[] = [];
    for (let client = 1; client <= 20; client++) sessions.push(await front.open(client));
    await bench.runtime.pass(BEAT_MS);
    const arrivals = new Map<number, number>();
    for (let number = 1; number <= 60; number++) {
      const client = 1 + (number % 20);
      arrivals.set(number, bench.runtime.nowMs);
      front.keepalive(client, number, [sessions[client - 1] as number, 1]);
      await bench.runtime.pass(50);
    }
    await bench.runtime.pass(BEAT_MS);
    expect(front.keepalives).toHaveLength(60);
    for (const { atMs, what } of front.keepalives) {
      expect(atMs - (arrivals.get(what.number) as number)).toBeLessThanOrEqual(BEAT_MS + 1);
    }
  });

  test('a read is answered by a commit sent after it arrived, which it triggers at once', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    bench.log.hold();
    front.ask(1, acquireCommand({ session, key: 'k', name: 'a' }));
    await bench.runtime.pass(1);
    const [read] = front.ask(1, { type: 'getLock', name: 'a' });
    bench.log.letGoOne();
    await bench.runtime.pass(1);
    expect(front.answerTo(read)).toBeUndefined();
    const [appended] = bench.log.sent.slice(-1);
    bench.log.letGo();
    await bench.runtime.pass(1);
    expect(front.answerTo(read)).toMatchObject({ type: 'lock', lock: { holders: [{ session }] } });
    expect(front.answers.at(-1)?.position.index).toBe(appended?.index);
  });

  test('a refusal that depends on the state waits for its commit', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    await front.acquire(1, { session, key: 'k' });
    bench.log.hold();
    const [again] = front.ask(1, acquireCommand({ session, key: 'other' }));
    const [closed] = front.ask(1, { type: 'cancel', session: 99, attach: 1, key: 'x', acks: [] });
    await bench.runtime.pass(BEAT_MS);
    expect(front.answerTo(again)).toBeUndefined();
    expect(front.answerTo(closed)).toBeUndefined();
    bench.log.letGo();
    await bench.runtime.pass(1);
    expect(front.answerTo(again)).toMatchObject({ type: 'refused', code: 'HELD' });
    expect(front.answerTo(closed)).toMatchObject({ type: 'refused', code: 'SESSION_EXPIRED' });
  });

  test('a keepalive that renews no lease is not acknowledged', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    await front.acquire(1, { session, key: 'k' });
    front.closeClient(1);
    // Another stream that never attached the session: nothing says that its client may speak for it.
    for (let number = 1; number <= 20; number++) {
      front.keepalive(2, number, [session, 1]);
      await bench.runtime.pass(1_000);
    }
    const told = front.keepalives.flatMap(({ what }) => what.sessions);
    expect(told.filter(({ alive }) => alive)).toEqual([]);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'expired', session }));
  });
});

test('a keepalive over another stream than the session’s own renews nothing', async () => {
  const bench = await LeaderBench.start();
  const front = bench.frontEnd();
  const session = await front.open(1);
  for (let number = 1; number <= 20; number++) {
    front.keepalive(2, number, [session, 1]);
    await bench.runtime.pass(1_000);
  }
  expect(front.keepalives.flatMap(({ what }) => what.sessions).filter(({ alive }) => alive)).toEqual([]);
  expect(bench.events).toContainEqual({ type: 'sessionEnding', session, cause: 'expired' });
});

describe('rule S2: what is said carries its place, in order', () => {
  test('answers echo the number of their keepalive, each of them', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    front.keepalive(1, 4, [session, 1]);
    front.keepalive(1, 5, [session, 1]);
    await bench.runtime.pass(BEAT_MS);
    expect(front.keepalives.map(({ what }) => what.number)).toEqual([4, 5]);
  });

  test('frames to a front end never go back in index, and carry lineage and epoch', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    for (let i = 0; i < 20; i++) {
      front.ask(1, acquireCommand({ session, key: `k${i}`, name: `n${i}` }));
      front.keepalive(1, i, [session, 1]);
      if (i % 3 === 0) await bench.runtime.pass(1);
    }
    await bench.runtime.pass(BEAT_MS);
    const positions = front.frames.map(({ frame }) => frame.position);
    expect(positions.length).toBeGreaterThan(5);
    for (const { lineage, epoch } of positions)
      expect({ lineage, epoch }).toEqual({ lineage: 'test-lineage', epoch: 1 });
    const indexes = positions.map(({ index }) => index);
    expect(indexes).toEqual([...indexes].sort((a, b) => a - b));
  });
});

test('a lone replica appends nothing without a reason; in a group it beats', async () => {
  const lone = await LeaderBench.start();
  await lone.frontEnd().open(1, { ttlMs: 60_000 });
  const before = lone.log.sent.length;
  await lone.runtime.pass(20_000);
  expect(lone.log.sent).toHaveLength(before);
  const member = await LeaderBench.start({ beatWhenIdle: true });
  await member.frontEnd().open(1, { ttlMs: 60_000 });
  const start = member.log.sent.length;
  await member.runtime.pass(10_000);
  expect(member.log.sent.length - start).toBe(10_000 / BEAT_MS);
});
