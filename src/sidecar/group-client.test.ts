/** The line to a lock group by itself: reconnects, keepalive frames, what of an old stream is still heard (rules S2, S8). */
import { describe, expect, test } from 'vitest';
import type { AnswerBody } from '../api/wire.ts';
import { alive, bench, FakeSession, joined, POSITION } from './group-client.fixture.ts';

test('a refused stream is remembered until one is accepted; one that is cut says nothing about that', async () => {
  const { runtime, streams, client, frame } = bench();
  client.open();
  const refusal = { code: 'UNAUTHENTICATED', message: 'the token is for another audience' } as const;
  streams[0]?.handler.onClose(refusal);
  expect(client.refused).toEqual(refusal);
  await runtime.pass(1_000);
  streams[1]?.handler.onClose();
  expect(client.refused).toEqual(refusal);
  await runtime.pass(1_000);
  // Late words of an earlier stream change nothing.
  streams[0]?.handler.onFrame(frame());
  expect(client.refused).toEqual(refusal);
  streams.at(-1)?.handler.onFrame(frame());
  expect(client.refused).toBeNull();
});

describe('rule S8: keepalives', () => {
  test('all sessions in one frame every fifth of the shortest TTL, without those that must not be renewed', async () => {
    const { runtime, streams, client } = bench();
    client.open();
    const [a, b] = [joined(client, 1), joined(client, 2)];
    await runtime.pass(3_000);
    expect(streams[0]?.sent.map(({ keepalive }) => keepalive)).toEqual([
      {
        number: 1,
        sessions: [
          { session: 1, attach: 1 },
          { session: 2, attach: 1 },
        ],
      },
    ]);
    const c = new FakeSession(3);
    c.ttlMs = 5_000;
    client.add(c);
    b.isKept = false;
    await runtime.pass(1_000);
    expect(streams[0]?.sent.at(-1)?.keepalive?.sessions.map(({ session }) => session)).toEqual([1, 3]);
    for (const session of [a, b, c]) session.isKept = false;
    const sent = streams[0]?.sent.length;
    await runtime.pass(10_000);
    expect(streams[0]?.sent).toHaveLength(sent ?? 0);
  });

  test('a session unheard for too long is tried over a new stream', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    const session = joined(client, 1);
    session.unheardInMs = 0;
    await runtime.pass(2_900);
    expect(streams).toHaveLength(1);
    // The next keepalive, a jitter of TTL/8, the reconnect.
    await runtime.pass(100 + 1_875 + 100);
    expect(streams).toHaveLength(2);
    expect(streams[0]?.isClosed).toBe(true);
    expect([session.connects, session.disconnects]).toEqual([2, 1]);
  });

  test('it is tried as soon as it is due, not with the keepalive after that (rule S8)', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    const session = joined(client, 1);
    await runtime.pass(3_000);
    const dueAtMs = runtime.nowMs + 3_500;
    Object.defineProperty(session, 'unheardInMs', { get: () => dueAtMs - runtime.nowMs });
    await runtime.pass(3_400);
    expect(streams).toHaveLength(1);
    // A jitter of TTL/8 and the reconnect; the next keepalive would come 1.9 s before that ends, and plan another jitter.
    await runtime.pass(100 + 1_875 + 50);
    expect(streams).toHaveLength(2);
  });

  test('one that is answered before its turn comes stays where it is', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    const session = joined(client, 1);
    session.unheardInMs = 0;
    await runtime.pass(3_000);
    session.unheardInMs = Number.POSITIVE_INFINITY;
    await runtime.pass(10_000);
    expect(streams).toHaveLength(1);
  });

  test('while its front end says that nobody leads, no other is tried', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    joined(client, 1).unheardInMs = 0;
    for (let i = 0; i < 40; i++) {
      streams[0]?.handler.onFrame(frame({ leading: false }));
      await runtime.pass(500);
    }
    expect(streams).toHaveLength(1);
    await runtime.pass(1_000 + 3_000 + 1_875 + 100);
    expect(streams.length).toBeGreaterThan(1);
  });

  test('a new stream on which no word comes is left soon, later ones after twice the time', async () => {
    const openedAtMs: number[] = [];
    const { runtime, client } = bench(() => void openedAtMs.push(runtime.nowMs));
    client.open();
    joined(client, 1).unheardInMs = 6_000;
    await runtime.pass(15_000);
    const gaps = openedAtMs.slice(1, 4).map((atMs, at) => atMs - (openedAtMs[at] as number));
    expect(gaps).toHaveLength(3);
    // With a jitter of a quarter, and the pause before a reconnect.
    for (const [at, leastMs] of [1_500, 1_500, 3_000].entries()) {
      expect(gaps[at]).toBeGreaterThanOrEqual(leastMs);
      expect(gaps[at]).toBeLessThan(leastMs * 1.25 + 250);
    }
  });

  test('when somebody leads again, keepalives go out at once: older ones are not acknowledged any more', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    joined(client, 1);
    await runtime.pass(100);
    streams[0]?.handler.onFrame(frame({ leading: false }));
    expect(streams[0]?.sent).toHaveLength(0);
    for (let again = 0; again < 2; again++) streams[0]?.handler.onFrame(frame());
    expect(streams[0]?.sent.map(({ keepalive }) => keepalive?.sessions.length)).toEqual([1]);
  });

  test('without sessions nothing is sent and no timer runs', async () => {
    const { runtime, streams, client } = bench();
    client.open();
    const session = joined(client, 1);
    await runtime.pass(10_000);
    client.remove(session);
    const [sent, steps] = [streams[0]?.sent.length, runtime.steps];
    await runtime.pass(600_000);
    expect(streams[0]?.sent).toHaveLength(sent ?? 0);
    expect(runtime.steps - steps).toBe(1);
  });
});

describe('rule S2: what is heard', () => {
  test('a keepalive answer goes with the time at which that keepalive was sent, once', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    await runtime.pass(7_000);
    const handler = streams[0]?.handler;
    handler?.onFrame(frame({ keepalive: { number: 2, sessions: [alive(1)] } }));
    handler?.onFrame(frame({ keepalive: { number: 2, sessions: [alive(1)] } }));
    handler?.onFrame(frame({ keepalive: { number: 9, sessions: [alive(1)] } }));
    handler?.onFrame(frame({ keepalive: { number: 1, sessions: [alive(1), alive(77)] } }));
    expect(session.kept_.map(({ sent }) => sent.monotonicMs)).toEqual([6_000, 3_000]);
  });

  test('keepalives without an answer are not remembered for ever', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    await runtime.pass(3_000 * 100);
    const handler = streams[0]?.handler;
    handler?.onFrame(frame({ keepalive: { number: 1, sessions: [alive(1)] } }));
    expect(session.kept_).toEqual([]);
    handler?.onFrame(frame({ keepalive: { number: 99, sessions: [alive(1)] } }));
    expect(session.kept_).toHaveLength(1);
  });

  test('older frames of the same lineage are dropped; another lineage is a new beginning', () => {
    const { streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    const handler = streams[0]?.handler;
    const notices = [{ session: 1, attach: 1, event: { type: 'sessionEnded', session: 1 } as const }];
    handler?.onFrame(frame());
    handler?.onFrame(frame({ notices, position: { ...POSITION, index: 9 } }));
    handler?.onFrame(frame({ notices, position: { ...POSITION, epoch: 1, index: 99 } }));
    expect(session.events).toHaveLength(0);
    handler?.onFrame(frame({ notices }));
    handler?.onFrame(frame({ notices, position: { ...POSITION, epoch: 3, index: 1 } }));
    handler?.onFrame(frame({ notices, position: { lineage: 'other', epoch: 1, index: 1 } }));
    expect(session.events).toHaveLength(3);
    expect(client.seen.lineage).toBe('other');
  });

  test('what a front end refuses by itself is heard, though it is behind what was seen through another', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    const heard: AnswerBody[] = [];
    const ids = [1, 2].map(() =>
      client.send({ type: 'getLock', name: 'a' }, (body) => void heard.push(body)),
    );
    await runtime.pass(1);
    const old = { ...POSITION, index: POSITION.index - 1 };
    const limited: AnswerBody = { type: 'rejected', code: 'RATE_LIMITED', message: 'too many' };
    const answers = [limited, { type: 'done' } as const].map((body, i) => ({ id: ids[i] ?? 0, body }));
    streams[0]?.handler.onFrame(frame({ position: old, answers }));
    expect(heard).toEqual([limited]);
    expect(client.seen).toEqual(POSITION);
  });

  test('the end of a session takes no notices from one that has its number in a new lineage', () => {
    const { streams, client, frame } = bench();
    client.open();
    const [old, young] = [joined(client, 1), joined(client, 1)];
    client.remove(old);
    const event = { type: 'sessionEnding', session: 1, cause: 'expired' } as const;
    streams[0]?.handler.onFrame(frame({ notices: [{ session: 1, attach: 1, event }] }));
    expect([old.events, young.events]).toEqual([[], [event]]);
  });

  test('a notice for another attach number is not for this session', () => {
    const { streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    session.attach = 4;
    const event = { type: 'sessionEnded', session: 1 } as const;
    const notices = [3, 4, 5].map((attach) => ({ session: 1, attach, event }));
    streams[0]?.handler.onFrame(frame({ notices }));
    expect(session.events).toHaveLength(1);
  });

  test('an answer is told once, to who asked, and not any more when its stream is gone', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const answers: string[] = [];
    client.send({ type: 'getLock', name: 'a' }, (answer) => void answers.push(`a ${answer.type}`));
    client.send({ type: 'getLock', name: 'b' }, (answer) => void answers.push(`b ${answer.type}`));
    await runtime.pass(1);
    expect(streams[0]?.sent).toHaveLength(1);
    const [a, b] = streams[0]?.sent[0]?.requests.map(({ id }) => id) ?? [];
    const done = (id = 0) => ({ answers: [{ id, body: { type: 'done' } as const }] });
    streams[0]?.handler.onFrame(frame(done(b)));
    streams[0]?.handler.onFrame(frame(done(b)));
    expect(answers).toEqual(['b done']);
    streams[0]?.handler.onClose();
    await runtime.pass(100);
    streams[1]?.handler.onFrame(frame(done(a)));
    expect(answers).toEqual(['b done']);
  });
});

describe('streams', () => {
  test('one that closes is followed by another, each later than the one before while nobody answers', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const times: number[] = [];
    for (let i = 0; i < 12; i++) {
      streams.at(-1)?.handler.onClose();
      const before = runtime.nowMs;
      const count = streams.length;
      while (streams.length === count) await runtime.pass(5);
      times.push(runtime.nowMs - before);
    }
    expect(times[0]).toBeLessThanOrEqual(55);
    expect(times.at(-1)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...times)).toBeLessThanOrEqual(1_005);
    streams.at(-1)?.handler.onFrame(frame());
    streams.at(-1)?.handler.onClose();
    const count = streams.length;
    await runtime.pass(55);
    expect(streams).toHaveLength(count + 1);
  });

  test('what an old stream still says is not heard, and its end does not end the new one', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    client.reconnect();
    await runtime.pass(100);
    expect(streams).toHaveLength(2);
    const notices = [{ session: 1, attach: 1, event: { type: 'sessionEnded', session: 1 } as const }];
    streams[0]?.handler.onFrame(frame({ notices }));
    streams[0]?.handler.onClose();
    await runtime.pass(2_000);
    expect(session.events).toEqual([]);
    expect(streams).toHaveLength(2);
    expect(client.isConnected).toBe(true);
    streams[1]?.handler.onFrame(frame({ notices }));
    expect(session.events).toHaveLength(1);
  });

  test('one that is closed before it is open is not mistaken for a connection', async () => {
    let isDown = true;
    const { runtime, streams, client } = bench((handler) => {
      if (isDown) handler.onClose();
    });
    client.open();
    const session = joined(client, 1);
    expect(client.isConnected).toBe(false);
    expect(session.connects).toBe(0);
    isDown = false;
    await runtime.pass(100);
    expect(client.isConnected).toBe(true);
    expect(streams).toHaveLength(2);
    expect(session.connects).toBe(1);
  });

  test('after close there is no other, and no timer', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    const session = joined(client, 1);
    client.close();
    streams[0]?.handler.onClose();
    streams[0]?.handler.onFrame(frame({ keepalive: { number: 1, sessions: [alive(1)] } }));
    client.open();
    const { steps } = runtime;
    await runtime.pass(100_000);
    expect(streams).toHaveLength(1);
    expect(streams[0]?.isClosed).toBe(true);
    expect(runtime.steps - steps).toBe(1);
    expect(session.kept_).toEqual([]);
  });

  test('a read without a stream, or without an answer, ends at its limit', async () => {
    const { runtime, client } = bench();
    const without = client.read({ type: 'getLock', name: 'a' }, 5_000);
    expect(await runtime.until(without, 5_001)).toBeNull();
    client.open();
    const startedMs = runtime.nowMs;
    expect(await runtime.until(client.read({ type: 'getLock', name: 'a' }, 5_000), 5_001)).toBeNull();
    expect(runtime.nowMs - startedMs).toBe(5_000);
  });
});
