/**
 * Cases of groups F, G and J of the public lock bugs that one replica with exclusive locks can show: queues, restarts of the
 * lock server, mass expiry, identity. On virtual time, with the same sidecar and lock server as in `leasehold dev`.
 */
import { describe, expect, test } from 'vitest';
import { type Acquiring, TTL_MS, VirtualServer, type VirtualSidecar } from '../support/dev/virtual-dev.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
/** Promise 4: a dead holder's locks are free within TTL + lock-delay + this. */
const FREED_WITHIN_MS = 1_000;

describe('queues', () => {
  test('case F01: waits that have timed out delay nobody later', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const holder = await sidecar.holding('a');
    for (let round = 0; round < 20; round++) {
      const waits: Acquiring[] = [];
      for (let i = 0; i < 3; i++) {
        waits.push(sidecar.acquiring('a', { sessionId: await sidecar.open(), waitMs: 500 }));
      }
      for (const { granted } of waits) expect(await sidecar.refusal(granted)).toBe('WAIT_TIMEOUT');
    }
    expect((await server.lock('a')).waiterCount).toBe(0);
    await sidecar.release('a', holder.session, holder.token);
    const start = server.runtime.nowMs;
    const next = await sidecar.acquire('a', { sessionId: holder.session });
    expect(server.runtime.nowMs - start).toBeLessThan(50);
    expect(next.token).toBe(holder.token + 1);
  });

  test('case F02: a lease that runs out grants the next in line in the same entry', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const dead = await sidecar.open();
    await sidecar.acquire('a', { sessionId: dead });
    const waiting = sidecar.acquiring('a', { sessionId: await sidecar.open(), waitMs: HOUR_MS });
    const ends: number[] = [];
    const grants: number[] = [];
    server.replica.watch(({ index, events }) => {
      for (const { type } of events) {
        if (type === 'expired') ends.push(index);
        if (type === 'granted') grants.push(index);
      }
    });
    await server.runtime.until(waiting.granted, 2 * TTL_MS);
    expect(ends).toHaveLength(1);
    expect(grants).toEqual(ends);
  });

  test('case F08: a release is told to the one who is granted, and wakes nobody else', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const holder = await sidecar.holding('a');
    const streams: ReturnType<VirtualSidecar['stream']>[] = [];
    for (let i = 0; i < 100; i++) {
      const session = await sidecar.open({ keepalive: 'stream', maxHoldMs: HOUR_MS });
      streams.push(sidecar.stream(session));
      sidecar.acquiring('a', { sessionId: session, waitMs: HOUR_MS });
    }
    await server.runtime.pass(SECOND_MS);
    const told = streams.map(({ lines }) => lines.length);
    await sidecar.release('a', holder.session, holder.token);
    await server.runtime.pass(SECOND_MS);
    const more = streams.map(({ lines }, i) => lines.length - (told[i] ?? 0));
    expect(more).toEqual([1, ...Array.from({ length: 99 }, () => 0)]);
    expect(streams[0]?.lines.at(-1)).toMatchObject({ event: 'granted' });
  });
});

describe('restarts and mass expiry', () => {
  test('cases G04, G13: holders and waiters are found again after a restart, as what they were', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.holding('a');
    const waiting = other.acquiring('a', { sessionId: await other.open(), waitMs: HOUR_MS });
    await server.runtime.pass(SECOND_MS);
    await server.restart(2 * SECOND_MS);
    await server.runtime.pass(3 * TTL_MS);
    expect(await server.lock('a')).toMatchObject({ holders: [{ token: holder.token }], waiterCount: 1 });
    expect(server.replica.status()).toMatchObject({ sessions: 2, held: 1, waiting: 1 });
    await pod.release('a', holder.session, holder.token);
    expect((await server.runtime.until(waiting.granted, SECOND_MS)).token).toBeGreaterThan(holder.token);
    expect(holder.keeping.refused).toEqual([]);
  });

  test('case G07: a session that died with the server is ended one TTL after the restart', async () => {
    const server = await VirtualServer.start();
    const [dead, alive] = [server.sidecar(), server.sidecar()];
    const { token } = await dead.acquire('a', { sessionId: await dead.open() });
    dead.setCut(true);
    await server.restart(2 * SECOND_MS);
    const restartedAt = server.runtime.nowMs;
    const next = await alive.acquire('a', { sessionId: await alive.open(), waitMs: HOUR_MS });
    expect(next.token).toBeGreaterThan(token);
    expect(server.runtime.nowMs - restartedAt).toBeGreaterThanOrEqual(TTL_MS - 10);
    expect(server.runtime.nowMs - restartedAt).toBeLessThanOrEqual(TTL_MS + FREED_WITHIN_MS);
  });

  test('cases G08, G18: after an outage longer than the TTL a client is told what it lost, and goes on with a new session', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const { session, token } = await sidecar.holding('a');
    const { lines } = sidecar.stream(session);
    sidecar.setCut(true);
    await server.runtime.pass(4 * TTL_MS);
    sidecar.setCut(false);
    await server.runtime.pass(SECOND_MS);
    expect(lines.filter(({ event }) => event === 'lost')).toMatchObject([{ token }]);
    expect(await sidecar.refusal(sidecar.acquiring('a', { sessionId: session }).granted)).toBe(
      'SESSION_EXPIRED',
    );
    const again = await sidecar.holding('a');
    expect(again.token).toBeGreaterThan(token);
    await server.runtime.pass(5 * TTL_MS);
    expect(sidecar.isHeld('a', again.token)).toBe(true);
    expect(again.keeping.refused).toEqual([]);
  });

  test('case G19: thousands of sessions that end at one moment are worked off while others go on', async () => {
    const server = await VirtualServer.start({ operationsPerSecond: 1_000_000 });
    const [dying, alive] = [server.sidecar(), server.sidecar()];
    const count = 3_000;
    const sessions = await Promise.all(Array.from({ length: count }, () => dying.open()));
    const acquiring = sessions.map((sessionId, i) => dying.acquiring(`d-${i}`, { sessionId }).granted);
    await server.runtime.until(Promise.all(acquiring), SECOND_MS);
    const worker = await alive.holding('w');
    dying.setCut(true);
    const silentFrom = server.runtime.nowMs;
    let slowestMs = 0;
    while (server.replica.status().held > 1) {
      const start = server.runtime.nowMs;
      const { token } = await alive.acquire('x', { sessionId: worker.session });
      await alive.release('x', worker.session, token);
      slowestMs = Math.max(slowestMs, server.runtime.nowMs - start);
      await server.runtime.pass(50);
    }
    expect(server.runtime.nowMs - silentFrom).toBeLessThanOrEqual(TTL_MS + FREED_WITHIN_MS);
    expect(slowestMs).toBeLessThan(200);
    expect(server.replica.status()).toMatchObject({ held: 1, sessions: 1, names: 1 });
    expect(worker.keeping.refused).toEqual([]);
  });
});

test('case J01: two applications of one name, behind two sidecars, are two holders to the service', async () => {
  const server = await VirtualServer.start();
  const [pod, twin] = [server.sidecar(), server.sidecar()];
  const options = { client: 'worker-0' };
  const [first, second] = [await pod.open(options), await twin.open(options)];
  const { token } = await pod.acquire('a', { sessionId: first, owner: 'worker-0' });
  const refused = twin.acquiring('a', { sessionId: second, owner: 'worker-0' });
  expect(await twin.refusal(refused.granted)).toBe('HELD');
  expect(twin.isHeld('a', token)).toBe(false);
  const stolen = twin.service.release('jobs/a', { sessionId: second, token });
  expect(await twin.refusal(stolen)).toBe('NOT_HELD');
  expect(await server.tokenOf('a')).toBe(token);
});
