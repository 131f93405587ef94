/** When the log does not answer: work pauses, nothing is guessed (rules L2, S11). */
import { Buffer } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { acquireCommand, TTL_MS } from '../../../test/support/core.ts';
import { attachCommand, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import { LogClosedError, LogUnavailableError } from '../../log/errors.ts';

/** How often an append is sent again. */
const RETRY_MS = 500;

describe('rule L2: an index once sent is only ever sent again with the same bytes', () => {
  test('the same entry is sent until its outcome is known, and no other is built meanwhile', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    const before = bench.log.sent.length;
    bench.log.isOut = true;
    const [first] = front.ask(1, acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    const [second] = front.ask(1, acquireCommand({ session, key: 'l', name: 'b' }));
    await bench.runtime.pass(10 * RETRY_MS);
    const sent = bench.log.sent.slice(before);
    expect(sent.length).toBeGreaterThanOrEqual(10);
    for (const entry of sent) {
      expect(entry.index).toBe(sent[0]?.index);
      expect(entry.hash).toBe(sent[0]?.hash);
      expect(Buffer.compare(entry.bytes, sent[0]?.bytes as Uint8Array)).toBe(0);
    }
    expect(front.answerTo(first)).toBeUndefined();
    expect(front.answerTo(second)).toBeUndefined();
    bench.log.isOut = false;
    await bench.runtime.pass(RETRY_MS + 1);
    expect(front.answerTo(first)).toMatchObject({ type: 'granted' });
    expect(front.answerTo(second)).toMatchObject({ type: 'granted' });
    expect(bench.stopped).toEqual([]);
    expect(bench.leader.position.index).toBe(bench.log.sent.at(-1)?.index);
  });

  test('an entry that got through although nobody said so is there once', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    const index = bench.leader.position.index + 1;
    bench.log.isOut = true;
    const [asked] = front.ask(1, acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    // Another way to the same storage is open: the entry arrives, and its answer is lost.
    const [entry] = bench.log.sent.slice(-1);
    bench.store.append({ serverId: 'test', epoch: 1, fence: 'test-lineage/1' }, entry as never);
    bench.log.isOut = false;
    await bench.runtime.pass(RETRY_MS);
    expect(front.answerTo(asked)).toMatchObject({ type: 'granted' });
    expect(bench.store.head()).toMatchObject({ index });
    expect(bench.events.filter(({ type }) => type === 'granted')).toHaveLength(1);
  });

  test('when another leader has come meanwhile, it steps down and nothing of the entry is told', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    const { log } = bench;
    log.isOut = true;
    const [asked] = front.ask(1, acquireCommand({ session, key: 'k' }));
    front.keepalive(1, 1, [session, 1]);
    await bench.runtime.pass(1);
    await bench.lead();
    log.isOut = false;
    await bench.runtime.pass(RETRY_MS);
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(front.answerTo(asked)).toBeUndefined();
    expect(front.keepalives).toEqual([]);
    expect(bench.leader.state.holds).toBe(0);
  });
});

describe('rule S11: while nothing can be committed', () => {
  test('nothing expires, and waiters keep their places for as long as it takes', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const [holder, first, second] = [await front.open(1), await front.open(2), await front.open(3)];
    const granted = await front.acquire(1, { session: holder, key: 'h' });
    await front.acquire(2, { session: first, key: 'w', waitMs: 3_600_000 });
    await front.acquire(3, { session: second, key: 'w', waitMs: 3_600_000 });
    bench.log.isOut = true;
    front.ask(1, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(20 * TTL_MS);
    expect(bench.leader.state.waits).toBe(2);
    expect(bench.leader.state.holds).toBe(1);
    for (const [client, session] of [holder, first, second].entries())
      front.keepalive(client + 1, 1, [session, 1]);
    bench.log.isOut = false;
    await bench.runtime.pass(RETRY_MS + 300);
    expect(front.keepalives.map(({ what }) => what.sessions[0]?.alive)).toEqual([true, true, true]);
    expect(bench.events.filter(({ type }) => type === 'sessionEnding')).toEqual([]);
    const token = granted.type === 'granted' ? granted.token : 0;
    const release = {
      type: 'release',
      session: holder,
      attach: 1,
      name: 'a',
      token,
      key: '',
      acks: [],
    } as const;
    await front.get(1, release);
    expect(front.notices.at(-1)).toMatchObject({
      client: 2,
      what: { event: { type: 'granted', session: first } },
    });
  });

  test('after it the silent are spared for TTL/3, then expire', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const session = await front.open(1);
    bench.log.isOut = true;
    front.ask(1, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(10 * TTL_MS);
    bench.log.isOut = false;
    await bench.runtime.pass(RETRY_MS);
    const resumed = bench.runtime.nowMs;
    await bench.runtime.pass(TTL_MS / 3 - RETRY_MS - 1);
    expect(bench.events.filter(({ type }) => type === 'sessionEnding')).toEqual([]);
    await bench.runtime.pass(RETRY_MS + 300);
    expect(bench.events).toContainEqual({ type: 'sessionEnding', session, cause: 'expired' });
    expect(bench.runtime.nowMs - resumed).toBeLessThan(TTL_MS / 3 + 1_000);
  });

  test('an hour of it, with clients that connect anew all the time, leaves nothing piled up', async () => {
    const bench = await LeaderBench.start();
    const front = bench.frontEnd();
    const sessions: number[] = [];
    for (let client = 1; client <= 50; client++) sessions.push(await front.open(client));
    bench.log.isOut = true;
    front.ask(1, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(1);
    let attach = 1;
    let last: number[] = [];
    for (let now = 0; now < 3_600_000; now += 6_000) {
      attach++;
      last = sessions.map((session, i) => {
        front.closeClient((attach - 2) * 1_000 + i + 1);
        const client = (attach - 1) * 1_000 + i + 1;
        front.keepalive(client, attach, [session, attach - 1]);
        return front.ask(client, attachCommand(session, attach))[0] as number;
      });
      await bench.runtime.pass(6_000);
    }
    const started = bench.log.sent.length;
    bench.log.isOut = false;
    await bench.runtime.pass(1_000);
    // One entry for what waited, a beat for the keepalives: not hundreds of entries of attaches that nobody waits for.
    expect(bench.log.sent.length - started).toBeLessThan(10);
    for (const id of last) expect(front.answerTo(id)).toMatchObject({ type: 'attached' });
    expect(front.keepalives.length).toBeLessThanOrEqual(sessions.length);
    expect(bench.events.filter(({ type }) => type === 'sessionEnding')).toEqual([]);
  });
});

test('a log that can never be written again stops the leader, with the reason', async () => {
  const bench = await LeaderBench.start();
  const front = bench.frontEnd();
  await front.open(1);
  await bench.log.close();
  const waiting = bench.leader.submit([{ type: 'resign', epoch: 1 }]);
  const refused = expect(waiting).rejects.toThrow('stopped leading');
  await bench.runtime.pass(1);
  await refused;
  expect(bench.stopped).toEqual([{ kind: 'failed', error: expect.any(LogClosedError) }]);
});

test('a leader that cannot give its leadership back has stopped all the same', async () => {
  const bench = await LeaderBench.start();
  bench.log.resign = () => Promise.reject(new LogUnavailableError('the storage does not answer'));
  await bench.runtime.until(bench.leader.stop(), 1_000);
  expect(bench.leader.isLeading).toBe(false);
  expect(bench.log.entries.at(-1)?.commands).toEqual([{ type: 'resign', epoch: 1 }]);
  expect(bench.runtime.logged).toContain('the leadership could not be given back; it runs out by itself');
});

test('rule S9: a full queue refuses acquires and reads at once, and takes releases', async () => {
  const bench = await LeaderBench.start();
  const front = bench.frontEnd();
  const session = await front.open(1);
  const granted = await front.acquire(1, { session, key: 'h' });
  bench.log.hold();
  front.ask(1, { type: 'getLock', name: 'a' });
  await bench.runtime.pass(1);
  front.ask(1, ...Array.from({ length: 20_000 }, () => acquireCommand({ session, key: 'l', name: 'b' })));
  const [refused, read] = front.ask(1, acquireCommand({ session, key: 'm' }), { type: 'getLock', name: 'a' });
  expect(front.answerTo(refused)).toMatchObject({ type: 'rejected', code: 'UNAVAILABLE' });
  expect(front.answerTo(read)).toMatchObject({ type: 'rejected', code: 'UNAVAILABLE' });
  const inside = expect(bench.leader.read({ type: 'getLock', name: 'a' })).rejects.toThrow('too many');
  const token = granted.type === 'granted' ? granted.token : 0;
  const [released] = front.ask(1, {
    type: 'release',
    session,
    attach: 1,
    name: 'a',
    token,
    key: '',
    acks: [],
  });
  expect(front.answerTo(released)).toBeUndefined();
  bench.log.letGo();
  await bench.runtime.pass(1);
  expect(front.answerTo(released)).toEqual({ type: 'done' });
  await inside;
});

test('keepalives of one stream do not pile up, and the newest are answered in the end', async () => {
  const bench = await LeaderBench.start();
  const front = bench.frontEnd();
  const [session, other] = [await front.open(1), await front.open(2)];
  bench.log.isOut = true;
  front.ask(1, acquireCommand({ session, key: 'k' }));
  await bench.runtime.pass(1);
  for (let number = 1; number <= 10_000; number++) front.keepalive(1, number, [session, 1]);
  front.keepalive(2, 1, [other, 1]);
  bench.log.isOut = false;
  await bench.runtime.pass(2 * RETRY_MS);
  const of = (client: number) =>
    front.keepalives.filter((sent) => sent.client === client).map(({ what }) => what.number);
  expect(of(1).length).toBeLessThan(10);
  expect(of(1).at(-1)).toBe(10_000);
  expect(of(2)).toEqual([1]);
});
