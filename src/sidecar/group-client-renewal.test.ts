/** Streams that prove anew who this is, beside the one in use (rules S8, S10). */
import { describe, expect, test } from 'vitest';
import { bench, FakeSession, joined, POSITION } from './group-client.fixture.ts';

describe('a stream that proves anew who this is', () => {
  test('takes the place of the old one only when it is accepted', () => {
    const { client, streams } = bench();
    const session = new FakeSession(7);
    client.open();
    client.add(session);
    client.renew();
    expect(streams).toHaveLength(2);
    expect([session.connects, session.disconnects, streams[0]?.isClosed]).toEqual([1, 0, false]);
    streams[1]?.handler.onOpen?.();
    expect([session.connects, session.disconnects, streams[0]?.isClosed]).toEqual([2, 1, true]);
    // The old one ends late, and is not heard.
    streams[0]?.handler.onClose();
    expect(session.disconnects).toBe(1);
    expect(client.isConnected).toBe(true);
  });

  test('shows what was seen last, as every new stream does (rule S10)', () => {
    const { client, streams, frame } = bench();
    client.open();
    const mark = { ...POSITION, hash: 'h', seal: 's' };
    streams[0]?.handler.onFrame(frame({ mark }));
    client.renew();
    streams[1]?.handler.onOpen?.();
    expect(streams[1]?.sent[0]?.mark).toEqual(mark);
  });

  test('costs nothing when it is refused, and is tried again', async () => {
    const { client, streams, runtime } = bench();
    const session = new FakeSession(7);
    client.open();
    client.add(session);
    client.renew();
    streams[1]?.handler.onClose();
    expect([session.disconnects, client.isConnected, streams[0]?.isClosed]).toEqual([0, true, false]);
    await runtime.pass(5_000);
    expect(streams).toHaveLength(3);
    streams[2]?.handler.onOpen?.();
    expect(streams[0]?.isClosed).toBe(true);
  });

  test('leaves the sessions to the next stream when the old one breaks before it is accepted', async () => {
    const { client, streams, runtime } = bench();
    client.open();
    client.renew();
    streams[0]?.handler.onClose();
    await runtime.pass(1_000);
    expect(client.isConnected).toBe(true);
    const count = streams.length;
    client.close();
    await runtime.pass(60_000);
    expect(streams).toHaveLength(count);
    expect(streams.slice(1).every(({ isClosed }) => isClosed)).toBe(true);
  });

  test('is given up where nobody takes or refuses it, and another is tried', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    const session = joined(client, 1);
    client.renew();
    await runtime.pass(4_900);
    expect(streams.map(({ isClosed }) => isClosed)).toEqual([false, false]);
    await runtime.pass(200);
    expect(streams.map(({ isClosed }) => isClosed)).toEqual([false, true, false]);
    streams[2]?.handler.onOpen?.();
    streams[2]?.handler.onFrame(frame());
    await runtime.pass(60_000);
    expect(streams.map(({ isClosed }) => isClosed)).toEqual([true, true, false]);
    expect([session.connects, session.disconnects]).toEqual([2, 1]);
  });

  test('is waited for no longer once it is taken, refused, or the client is closed', async () => {
    const { runtime, streams, client, frame } = bench();
    client.open();
    streams[0]?.handler.onFrame(frame());
    client.renew();
    streams[1]?.handler.onOpen?.();
    streams[1]?.handler.onFrame(frame());
    await runtime.pass(20_000);
    expect(streams).toHaveLength(2);
    client.renew();
    streams[2]?.handler.onClose({ code: 'UNAUTHENTICATED', message: 'the token has ended' });
    await runtime.pass(4_900);
    expect(streams).toHaveLength(3);
    await runtime.pass(200);
    expect(streams).toHaveLength(4);
    client.close();
    await runtime.pass(60_000);
    expect(streams).toHaveLength(4);
  });
});
