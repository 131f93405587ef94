/** The sidecar's process ends and comes back on what it had written down: rules A3, A4, A5, S3. */
import { describe, expect, test } from 'vitest';
import { LEASE_MS, Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const HOUR_MS = 3_600_000;

describe('rule A4: after a restart the sessions go on', () => {
  test('same session, same grants, same tokens, a higher attach number', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const { token } = await pod.acquire('a', { sessionId });
    for (let life = 2; life < 5; life++) {
      await pod.restart(1_000);
      expect(pod.held('a', token).held).toBe(false);
      await pod.runtime.pass(10);
      expect(pod.held('a', token).held).toBe(true);
      expect(pod.jobs.line.requests('attachWithSecret').at(-1)).toMatchObject({ session: 1, attach: life });
      await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 100);
    }
    const renewed = await pod.runtime.until(pod.sidecar.renew('jobs/a', { sessionId, token }), 100);
    expect(renewed).toMatchObject({ sessionId, token });
    await pod.release('a', sessionId, token);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 1, held: 0 });
  });

  test('nothing is called held before the group has said so, and a renew waits for it', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    pod.sidecar.stop();
    await pod.jobs.break('a', token, { now: true });
    pod.jobs.line.toClient = 'held';
    await pod.restart();
    await pod.runtime.pass(100);
    expect(pod.held('a', token)).toEqual({ held: false });
    // The application is heard all the same, and is told no deadline to come (rule A1).
    const { deadlineInMs } = await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 10);
    expect(deadlineInMs).toBeLessThanOrEqual(0);
    const renewing = pod.sidecar.renew('jobs/a', { sessionId, token });
    await pod.runtime.pass(1_000);
    pod.jobs.line.toClient = 'flows';
    expect((await pod.refusal(renewing)).code).toBe('NOT_HELD');
    const { lines } = pod.stream(sessionId);
    expect(lines).toEqual([]);
  });

  test('when the group cannot be reached, calls after a restart end, and "held" stays false', async () => {
    const pod = await Pod.start();
    const { sessionId, token, keeping } = await pod.holding('a');
    keeping.stop();
    pod.jobs.line.isDown = true;
    await pod.restart();
    const startedMs = pod.runtime.nowMs;
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe('UNAVAILABLE');
    expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(6_000);
    expect(pod.held('a', token).held).toBe(false);
    await pod.runtime.pass(LEASE_MS);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test.each(['renew', 'release again'] as const)(
    'when the group answers late, and then no more, %s has one bound for both',
    async (what) => {
      const pod = await Pod.start();
      const { sessionId, token } = await pod.holding('a', { request: 'r' });
      await pod.acquire('other', { sessionId });
      const reference = { sessionId, token };
      if (what === 'release again') {
        // Confirmed by nobody, and so made good by the next process, which tells of it only when it is.
        pod.jobs.line.both = 'lost';
        pod.sidecar.release('jobs/a', reference).catch(() => undefined);
        await pod.runtime.pass(10);
      } else await pod.jobs.break('a', token, { now: true });
      pod.jobs.line.both = 'flows';
      pod.jobs.line.toClient = 'held';
      await pod.restart();
      const startedMs = pod.runtime.nowMs;
      const again =
        what === 'renew' ? pod.sidecar.renew('jobs/a', reference) : pod.sidecar.release('jobs/a', reference);
      await pod.runtime.pass(3_000);
      pod.jobs.line.toClient = 'flows';
      pod.jobs.line.both = 'lost';
      await pod.refusal(again, 10_000);
      expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(5_100);
    },
  );

  test('a session that the group has ended meanwhile is over, and so is what comes with its requests', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a', { request: 'r' });
    pod.sidecar.stop();
    await pod.runtime.pass(TTL_MS + 500);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    await pod.restart();
    const again = pod.acquiring('a', { sessionId, request: 'r' });
    expect((await pod.refusal(again.granted)).code).toBe('SESSION_EXPIRED');
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
    expect(pod.store.size).toBe(0);
  });

  test('a grant that was never told to anybody is given back before a repeat of the call is sent', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    await pod.acquire('other', { sessionId });
    // The kill falls between commit and answer.
    pod.jobs.line.toClient = 'lost';
    pod.acquiring('a', { sessionId, request: 'r' });
    await pod.runtime.pass(10);
    const orphan = await pod.jobs.tokenOf('a');
    expect(orphan).not.toBeNull();
    pod.jobs.line.break();
    pod.jobs.line.toClient = 'flows';
    await pod.restart();
    const again = await pod.acquire('a', { sessionId, request: 'r' });
    expect(again.token).toBeGreaterThan(orphan as number);
    expect(await pod.jobs.tokenOf('a')).toBe(again.token);
  });

  test('a wait of the earlier life leaves the queue', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    pod.acquiring('a', { sessionId, waitMs: HOUR_MS }).granted.catch(() => undefined);
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    await pod.restart();
    await pod.runtime.pass(10);
    expect(await pod.jobs.lock('a')).toMatchObject({ waiterCount: 0, holders: [{ token: holder.token }] });
  });

  test('requests are remembered: held ones answer with their token, ended ones with NOT_HELD', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const held = await pod.acquire('a', { sessionId, request: 'held', owner: 'me' });
    const over = await pod.acquire('b', { sessionId, request: 'over' });
    await pod.release('b', sessionId, over.token);
    for (let life = 0; life < 3; life++) {
      await pod.restart();
      expect((await pod.acquire('a', { sessionId, request: 'held', owner: 'me' })).token).toBe(held.token);
      const error = await pod.refusal(pod.acquire('b', { sessionId, request: 'over' }));
      expect(error).toMatchObject({ code: 'NOT_HELD', details: { token: over.token } });
      const other = await pod.refusal(pod.acquire('c', { sessionId, request: 'held' }));
      expect(other.code).toBe('INVALID');
      expect(await pod.release('b', sessionId, over.token)).toEqual({ already: true });
    }
    await pod.release('a', sessionId, held.token);
    await pod.restart();
    expect((await pod.refusal(pod.acquire('a', { sessionId, request: 'held', owner: 'me' }))).code).toBe(
      'NOT_HELD',
    );
  });

  test('a release that was not confirmed when the process ended is made good', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const plain = await pod.acquire('a', { sessionId });
    const named = await pod.acquire('b', { sessionId, request: 'r' });
    pod.jobs.line.toServer = 'lost';
    for (const [name, { token }] of [
      ['a', plain],
      ['b', named],
    ] as const) {
      pod.sidecar.release(`jobs/${name}`, { sessionId, token }).catch(() => undefined);
    }
    await pod.runtime.pass(10);
    pod.jobs.line.break();
    pod.jobs.line.toServer = 'flows';
    await pod.restart();
    await pod.runtime.pass(100);
    expect([await pod.jobs.tokenOf('a'), await pod.jobs.tokenOf('b')]).toEqual([null, null]);
    expect((await pod.refusal(pod.acquire('b', { sessionId, request: 'r' }))).code).toBe('NOT_HELD');
  });

  test('keys of two lives never meet', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    await pod.acquire('a', { sessionId });
    await pod.restart();
    await pod.acquire('b', { sessionId });
    const keys = pod.jobs.line.requests('acquire').map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('rule A3: after a restart a stream session waits for its application', () => {
  test.each(['stream', 'both'] as const)(
    '%s: nothing is renewed until the stream is back',
    async (keepalive) => {
      const pod = await Pod.start();
      const sessionId = await pod.open({ keepalive });
      pod.stream(sessionId);
      const { token } = await pod.acquire('a', { sessionId });
      await pod.restart();
      const [attaches, keepalives] = [
        pod.jobs.line.requests('attachWithSecret').length,
        pod.jobs.line.keepalives.length,
      ];
      await pod.runtime.pass(TTL_MS / 2);
      expect(pod.jobs.line.requests('attachWithSecret')).toHaveLength(attaches);
      expect(pod.jobs.line.keepalives).toHaveLength(keepalives);
      expect(pod.held('a', token).held).toBe(false);
      const { lines } = pod.stream(sessionId);
      await pod.runtime.pass(10);
      expect(pod.held('a', token).held).toBe(true);
      expect(lines.filter(({ event }) => event === 'lost')).toEqual([]);
      await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 100);
      await pod.runtime.pass(TTL_MS - 100);
      expect(await pod.jobs.tokenOf('a')).toBe(token);
    },
  );

  test('it does not come back: the locks are free after one TTL, uncleanly', async () => {
    const pod = await Pod.start({ config: { lockDelayMs: 5_000 } });
    const sessionId = await pod.open({ keepalive: 'stream' });
    pod.stream(sessionId);
    await pod.acquire('a', { sessionId });
    await pod.restart();
    const restartedMs = pod.runtime.nowMs;
    await pod.runtime.pass(TTL_MS + 500);
    expect((await pod.jobs.lock('a')).holders).toEqual([]);
    let delayedAt = Number.POSITIVE_INFINITY;
    for await (const { at, events } of pod.jobs.replica.history(1)) {
      if (events.some(({ type }) => type === 'delayed')) delayedAt = Math.min(delayedAt, at);
    }
    expect(delayedAt).toBeLessThanOrEqual(restartedMs + TTL_MS + 100);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test('its DELETE works while it sleeps', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    pod.stream(sessionId);
    await pod.acquire('a', { sessionId });
    await pod.restart();
    await pod.runtime.until(pod.sidecar.closeSession(sessionId), 1_000);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    expect(pod.store.size).toBe(0);
  });
});

describe('the end of a life', () => {
  test('stop ends nothing, tells nobody, and nothing of the old life happens after it', async () => {
    const pod = await Pod.start();
    const { sessionId, token, keeping } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    const revoked = await pod.acquire('b', { sessionId });
    await pod.jobs.break('b', revoked.token);
    await pod.runtime.pass(10);
    const other = await pod.open({ keepalive: 'stream' });
    pod.stream(other);
    await pod.acquire('c', { sessionId: other });
    keeping.stop();
    lines.length = 0;
    pod.sidecar.stop();
    const kept = pod.store.load();
    expect(kept.filter(({ type }) => type === 'grant')).toHaveLength(3);
    await pod.runtime.pass(1);
    const { steps } = pod.runtime;
    const idle = pod.runtime.nowMs;
    await pod.runtime.pass(TTL_MS - 1_000);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    await pod.runtime.pass(10 * TTL_MS);
    expect(lines).toEqual([]);
    expect(pod.store.load()).toEqual(kept);
    // The group's beats alone: four a second while it had sessions, one in two seconds after that.
    expect(pod.runtime.steps - steps).toBeLessThan(
      ((TTL_MS + 1_000) / 1_000) * 5 + (pod.runtime.nowMs - idle) / 2_000 + 40,
    );
  });

  test('calls under way when it stops come to an end', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    const calls = [
      pod.acquiring('a', { sessionId, waitMs: HOUR_MS }).granted,
      pod.acquiring('a', { waitMs: HOUR_MS, ttlMs: TTL_MS }).granted,
      pod.sidecar.getLock('jobs/a'),
    ];
    await pod.runtime.pass(10);
    pod.jobs.log.hold();
    calls.push(
      pod.sidecar.release('jobs/a', holder) as never,
      pod.sidecar.closeSession(sessionId) as never,
      pod.sidecar.reportStale('jobs/a', { token: 1, resource: 'r' }) as never,
    );
    const outcomes = Promise.allSettled(calls);
    pod.sidecar.stop();
    await pod.runtime.until(outcomes, 6_000);
    expect((await outcomes).map(({ status }) => status)).toHaveLength(6);
  });
});

test('rule A5: an acquire without a session that the end of the process cut off is taken back by the next one', async () => {
  const pod = await Pod.start();
  const holder = await pod.holding('a');
  const kept = pod.store.size;
  const waiting = pod.acquiring('a', { ttlMs: TTL_MS, waitMs: HOUR_MS });
  await pod.runtime.pass(10);
  await pod.restart(100);
  expect(waiting.outcome.value).toBe('UNAVAILABLE');
  await pod.runtime.pass(100);
  expect((await pod.jobs.lock('a')).waiterCount).toBe(0);
  pod.keepAlive(holder.sessionId);
  await pod.runtime.pass(2 * TTL_MS);
  expect(pod.jobs.replica.status()).toMatchObject({ sessions: 1, held: 1 });
  expect(pod.store.size).toBe(kept);
});
