/** The verdict over silent sessions, and standstills that are not held against them: rule S6. */
import { describe, expect, test } from 'vitest';
import { acquireCommand, TTL_MS } from '../../../test/support/core.ts';
import { attachCommand, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import type { LockEvent } from '../../api/entry.ts';

/** A verdict waits for the beat, which comes four times a second. */
const BEAT_MS = 250;

function endings(events: readonly LockEvent[]): readonly number[] {
  return events.flatMap((event) => (event.type === 'sessionEnding' ? [event.session] : []));
}

describe('rule S6: the verdict', () => {
  test('a silent session ends one TTL after its last keepalive, within a beat', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    await bench.runtime.pass(7_777);
    front.keepalive(1, 1, [session, 1]);
    const renewedAt = bench.runtime.nowMs;
    await bench.runtime.pass(TTL_MS - 1);
    expect(endings(bench.events)).toEqual([]);
    await bench.runtime.pass(BEAT_MS + 2);
    expect(endings(bench.events)).toEqual([session]);
    expect(front.notices.at(-1)?.what.event).toMatchObject({ type: 'sessionEnding', cause: 'expired' });
    expect(bench.runtime.nowMs - renewedAt).toBeLessThanOrEqual(TTL_MS + 2 * BEAT_MS);
    expect(bench.leader.state.sessions.size).toBe(0);
  });

  test('a keepalive that has arrived spares its session, though nothing could be committed since', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [kept, silent] = [await front.open(1), await front.open(2)];
    await bench.runtime.pass(TTL_MS - 300);
    bench.log.hold();
    front.ask(1, acquireCommand({ session: kept, key: 'k' }));
    await bench.runtime.pass(200);
    front.keepalive(1, 1, [kept, 1]);
    await bench.runtime.pass(200);
    bench.log.letGo();
    await bench.runtime.pass(2 * BEAT_MS);
    expect(endings(bench.events)).toEqual([silent]);
  });

  test('an attach that has arrived spares its session, and the others of its batch get theirs', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [attaching, silent] = [await front.open(1), await front.open(2)];
    await bench.runtime.pass(TTL_MS - 400);
    bench.log.hold();
    const other = front.ask(3, { type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'r' });
    await bench.runtime.pass(300);
    const [attach] = front.ask(4, attachCommand(attaching, 2));
    await bench.runtime.pass(200);
    bench.log.letGo();
    await bench.runtime.pass(1);
    expect(front.answerTo(other[0])).toEqual({ type: 'done' });
    expect(front.answerTo(attach)).toMatchObject({ type: 'attached' });
    expect(endings(bench.events)).toEqual([silent]);
  });

  test('an attach that waits behind a full entry spares its session as well', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [attaching, busy] = [await front.open(1), await front.open(2, { ttlMs: 60_000 })];
    await bench.runtime.pass(TTL_MS - 400);
    bench.log.hold();
    front.ask(3, { type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'r' });
    await bench.runtime.pass(1);
    const flood = Array.from({ length: 5_000 }, (_, i) =>
      acquireCommand({ session: busy, key: `k${i % 200}` }),
    );
    front.ask(2, ...flood);
    const [attach] = front.ask(4, attachCommand(attaching, 2));
    await bench.runtime.pass(450);
    bench.log.letGo();
    await bench.runtime.pass(1);
    expect(front.answerTo(attach)).toMatchObject({ type: 'attached' });
    expect(endings(bench.events)).toEqual([]);
  });

  test('a standstill of the loop spares the silent for TTL/3, then counts in full', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [silent, alive] = [await front.open(1), await front.open(2)];
    await bench.runtime.pass(1_000);
    bench.runtime.stall(TTL_MS + 5_000);
    const woke = bench.runtime.nowMs;
    await bench.runtime.pass(1);
    // What lay in the sockets meanwhile.
    front.keepalive(2, 1, [alive, 1]);
    await bench.runtime.pass(TTL_MS / 3 - 2);
    expect(endings(bench.events)).toEqual([]);
    await bench.runtime.pass(BEAT_MS + 2);
    expect(endings(bench.events)).toEqual([silent]);
    expect(bench.runtime.nowMs - woke).toBeLessThanOrEqual(TTL_MS / 3 + 2 * BEAT_MS);
  });

  test('a standstill is noticed also when a keepalive is what wakes the loop', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [first, second] = [await front.open(1), await front.open(2)];
    await bench.runtime.pass(1_000);
    bench.runtime.stall(TTL_MS);
    front.keepalive(1, 1, [first, 1]);
    await bench.runtime.pass(2_000);
    front.keepalive(2, 1, [second, 1]);
    await bench.runtime.pass(TTL_MS / 3);
    expect(endings(bench.events)).toEqual([]);
  });

  test('a standstill of commits spares the silent for TTL/3 as well, once per TTL', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const silent = await front.open(1);
    const busy = await front.open(2, { ttlMs: 60_000 });
    const openedAt = bench.runtime.nowMs;
    const stall = async (ms: number): Promise<void> => {
      bench.log.hold();
      front.ask(2, { type: 'getLock', name: 'a' });
      front.keepalive(2, 1, [busy, 1]);
      await bench.runtime.pass(ms);
      bench.log.letGo();
      await bench.runtime.pass(1);
    };
    await bench.runtime.pass(TTL_MS - 2_000);
    await stall(3_000);
    const spared = bench.runtime.nowMs;
    await bench.runtime.pass(3_000);
    expect(endings(bench.events)).toEqual([]);
    await stall(600);
    await bench.runtime.pass(spared + TTL_MS / 3 + 2 * BEAT_MS - bench.runtime.nowMs);
    expect(endings(bench.events)).toEqual([silent]);
    expect(bench.runtime.nowMs - openedAt).toBeLessThan(2 * TTL_MS);
  });

  test('when commits are possible only now and then, nobody expires in between', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    bench.log.hold();
    front.ask(1, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(10 * TTL_MS);
    expect(endings(bench.events)).toEqual([]);
    expect(bench.leader.state.sessions.get(session)?.ending).toBeNull();
    front.keepalive(1, 1, [session, 1]);
    bench.log.letGo();
    await bench.runtime.pass(TTL_MS - 1);
    expect(endings(bench.events)).toEqual([]);
  });

  test('it works off the ends of many sessions over as many entries as it takes', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    for (let i = 0; i < 5_000; i += 100) {
      const keys = Array.from({ length: 100 }, (_, j) => `${i + j}`);
      const acks = i === 0 ? [] : Array.from({ length: 100 }, (_, j) => `${i - 100 + j}`);
      front.ask(
        1,
        ...keys.map((key, j) => acquireCommand({ session, key, name: key, acks: j === 0 ? acks : [] })),
      );
    }
    await bench.runtime.pass(1);
    expect(bench.leader.state.holds).toBe(5_000);
    await bench.runtime.pass(TTL_MS + BEAT_MS);
    expect(bench.leader.state.holds).toBe(0);
    const ends = bench.history.filter(({ events }) => events.some(({ type }) => type === 'expired'));
    expect(ends.length).toBeGreaterThanOrEqual(3);
    expect(bench.runtime.nowMs).toBeLessThan(TTL_MS + 1_000);
  });
});
