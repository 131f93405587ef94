/** A session lives as long as its application does: rule A3. */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';
import type { LockEvent } from '../api/entry.ts';

async function eventsOf(pod: Pod): Promise<readonly LockEvent[]> {
  const events: LockEvent[] = [];
  for await (const entry of pod.jobs.replica.history(1)) events.push(...entry.events);
  return events;
}

describe('rule A3: liveness by calls', () => {
  test('one TTL after its last call the session is over and the lock is free: one TTL, not two', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const { token } = await pod.acquire('a', { sessionId });
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(4_000);
    await pod.sidecar.keepaliveSession(sessionId);
    await pod.runtime.pass(TTL_MS - 1);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    expect(pod.held('a', token).held).toBe(true);
    await pod.runtime.pass(2);
    expect(pod.held('a', token).held).toBe(false);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    expect(lines.map(({ event }) => event)).toEqual(['lost', 'sessionLost']);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test('it ends uncleanly, so lock-delay applies', async () => {
    const pod = await Pod.start({ config: { lockDelayMs: 10_000 } });
    const sessionId = await pod.open();
    await pod.acquire('a', { sessionId });
    await pod.runtime.pass(TTL_MS + 10);
    expect(await pod.jobs.lock('a')).toMatchObject({ holders: [] });
    expect((await pod.jobs.lock('a')).lockDelayMs).toBeGreaterThan(9_000);
  });

  test('keepalive, acquire, release, renew and opening the stream are signs of life; held is none', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const { token } = await pod.acquire('a', { sessionId });
    const signs: (() => Promise<unknown> | undefined)[] = [
      () => pod.sidecar.keepaliveSession(sessionId),
      () =>
        pod
          .acquiring('b', { sessionId })
          .granted.then((granted) => pod.sidecar.release('jobs/b', { sessionId, token: granted.token })),
      () => pod.sidecar.renew('jobs/a', { sessionId, token }),
      () => void pod.stream(sessionId).close(),
    ];
    for (const sign of signs) {
      await pod.runtime.pass(TTL_MS - 10);
      const given = sign();
      if (given !== undefined) await pod.runtime.until(given, 100);
    }
    await pod.runtime.pass(TTL_MS - 10);
    expect(pod.held('a', token).held).toBe(true);
    await pod.runtime.pass(20);
    expect(pod.held('a', token).held).toBe(false);
  });

  test('a call that stays open shows all the while that its application is there', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    const { token } = await pod.acquire('mine', { sessionId });
    const waiting = pod.acquiring('a', { sessionId, waitMs: 600_000 });
    await pod.runtime.pass(6 * TTL_MS);
    expect(pod.held('mine', token).held).toBe(true);
    await pod.release('a', holder.sessionId, holder.token);
    const granted = await pod.runtime.until(waiting.granted, 100);
    await pod.runtime.pass(TTL_MS - 10);
    expect(pod.held('a', granted.token).held).toBe(true);
    await pod.runtime.pass(20);
    expect(pod.held('a', granted.token).held).toBe(false);
  });
});

describe('rule A3: liveness by the stream', () => {
  test('not opened within one TTL: over, whatever the application calls meanwhile', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    pod.keepAlive(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    await pod.runtime.pass(TTL_MS - 10);
    expect(pod.held('a', token).held).toBe(true);
    await pod.runtime.pass(20);
    expect(pod.held('a', token).held).toBe(false);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a deadline told while it is missing lies no later than the end that this will bring', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    await pod.runtime.pass(TTL_MS - 5_000);
    const { deadlineInMs, token } = await pod.acquire('a', { sessionId });
    expect(deadlineInMs).toBeGreaterThan(4_000);
    expect(deadlineInMs).toBeLessThanOrEqual(5_000);
    await pod.runtime.pass(deadlineInMs + 10);
    expect(pod.held('a', token).held).toBe(false);
  });

  test('open, it carries the session for hours without any call', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    const stream = pod.stream(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    await pod.runtime.pass(3_600_000);
    expect(pod.held('a', token).held).toBe(true);
    expect(stream.events()).toEqual(['granted']);
  });

  test('closed, it ends the session at once, uncleanly', async () => {
    const pod = await Pod.start({ config: { lockDelayMs: 10_000 } });
    const sessionId = await pod.open({ keepalive: 'stream' });
    const stream = pod.stream(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    stream.close();
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 0 });
    expect(pod.held('a', token).held).toBe(false);
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).lockDelayMs).toBeGreaterThan(9_000);
    const events = await eventsOf(pod);
    expect(events).toContainEqual(expect.objectContaining({ type: 'sessionEnding', cause: 'stream' }));
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test('alone it needs a max hold: the namespace’s, unless the session chose one', async () => {
    const pod = await Pod.start({ config: { maxHoldMs: 120_000 } });
    const [own, default_] = [
      await pod.open({ keepalive: 'stream', maxHoldMs: 60_000 }),
      await pod.open({ keepalive: 'stream' }),
    ];
    const lines = [own, default_].map((id) => pod.stream(id).lines);
    await pod.acquire('a', { sessionId: own });
    await pod.acquire('b', { sessionId: default_ });
    await pod.runtime.pass(61_000);
    expect(lines[0]?.at(-1)).toMatchObject({ event: 'revoking', cause: 'maxHold' });
    expect(lines[1]?.at(-1)).toMatchObject({ event: 'granted' });
    await pod.runtime.pass(60_000);
    expect(lines[1]?.find(({ event }) => event === 'revoking')).toMatchObject({ cause: 'maxHold' });
  });

  test('there is one at a time; the second is refused and the first goes on', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    const stream = pod.stream(sessionId);
    expect(() => pod.stream(sessionId)).toThrow('open already');
    await pod.acquire('a', { sessionId });
    expect(stream.events()).toEqual(['granted']);
  });
});

describe('rule A3: liveness by both', () => {
  test('either missing for one TTL ends the session', async () => {
    const pod = await Pod.start();
    const [silent, streamless] = [
      await pod.open({ keepalive: 'both' }),
      await pod.open({ keepalive: 'both' }),
    ];
    pod.stream(silent);
    const first = await pod.acquire('a', { sessionId: silent });
    pod.keepAlive(streamless);
    const second = await pod.acquire('b', { sessionId: streamless });
    await pod.runtime.pass(TTL_MS - 10);
    expect([pod.held('a', first.token).held, pod.held('b', second.token).held]).toEqual([true, true]);
    await pod.runtime.pass(20);
    expect([pod.held('a', first.token).held, pod.held('b', second.token).held]).toEqual([false, false]);
    expect([await pod.jobs.tokenOf('a'), await pod.jobs.tokenOf('b')]).toEqual([null, null]);
  });

  test('with both it goes on; then closing the stream ends it at once', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'both' });
    const stream = pod.stream(sessionId);
    pod.keepAlive(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    await pod.runtime.pass(10 * TTL_MS);
    expect(pod.held('a', token).held).toBe(true);
    stream.close();
    expect(pod.held('a', token).held).toBe(false);
    await pod.runtime.pass(10);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('closing a stream that is no sign of life changes nothing', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    const stream = pod.stream(sessionId);
    stream.close();
    stream.close();
    const again = pod.stream(sessionId);
    await pod.runtime.pass(2 * TTL_MS);
    expect(pod.held('a', token).held).toBe(true);
    expect([stream.events(), again.events()]).toEqual([[], []]);
  });
});

describe('the end of a session', () => {
  test('DELETE gives everything back at once, cleanly, and resolves when the group has confirmed it', async () => {
    const pod = await Pod.start({ config: { lockDelayMs: 10_000 } });
    const { sessionId, token } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    pod.jobs.log.hold();
    const closing = pod.sidecar.closeSession(sessionId);
    let isClosed = false;
    void closing.then(() => {
      isClosed = true;
    });
    expect(pod.held('a', token).held).toBe(false);
    await pod.runtime.pass(100);
    expect(isClosed).toBe(false);
    pod.jobs.log.letGo();
    await pod.runtime.until(closing, 100);
    expect(await pod.jobs.lock('a')).toMatchObject({ holders: [], lockDelayMs: 0 });
    expect(lines.map(({ event }) => event)).toEqual(['sessionLost']);
    expect(pod.counts).toMatchObject({ lost: 0, expiredWhileWorking: 0 });
    expect((await pod.refusal(pod.sidecar.closeSession(sessionId))).code).toBe('SESSION_EXPIRED');
    // Nobody released this grant by itself, so a release of it is no repeat.
    expect((await pod.refusal(pod.sidecar.release('jobs/a', { sessionId, token }))).code).toBe(
      'SESSION_EXPIRED',
    );
  });

  test('waiting calls of it end with SESSION_EXPIRED, and leave the queue', async () => {
    const pod = await Pod.start();
    await pod.holding('a');
    const sessionId = await pod.open();
    const waiting = pod.acquiring('a', { sessionId, waitMs: 60_000 });
    await pod.runtime.pass(10);
    await pod.runtime.until(pod.sidecar.closeSession(sessionId), 100);
    expect((await pod.refusal(waiting.granted)).code).toBe('SESSION_EXPIRED');
    expect((await pod.jobs.lock('a')).waiterCount).toBe(0);
  });

  test('an acquire, a release and a DELETE at the same moment leave nothing behind', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    const acquiring = pod.acquiring('b', { sessionId });
    const releasing = pod.sidecar.release('jobs/a', { sessionId, token }).catch(() => null);
    const closing = pod.sidecar.closeSession(sessionId);
    await pod.runtime.until(Promise.all([closing, releasing]), 1_000);
    expect((await pod.refusal(acquiring.granted)).code).toBe('SESSION_EXPIRED');
    await pod.runtime.pass(100);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 0, held: 0, waiting: 0, names: 0 });
    expect(pod.store.size).toBe(0);
  });

  test('a session that the group ends is told once, with every grant lost once', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    const other = await pod.acquire('b', { sessionId });
    const { lines } = pod.stream(sessionId);
    const expire = { type: 'expireSessions', sessions: [1], cause: 'expired' } as const;
    await pod.runtime.until(pod.jobs.replica.submit(expire), 100);
    await pod.runtime.pass(TTL_MS);
    expect(lines).toMatchObject([
      { event: 'lost', name: 'jobs/a', token },
      { event: 'lost', name: 'jobs/b', token: other.token },
      { event: 'sessionLost' },
    ]);
    expect(pod.counts).toMatchObject({ lost: 2, expiredWhileWorking: 2 });
    expect(pod.store.size).toBe(0);
  });
});
