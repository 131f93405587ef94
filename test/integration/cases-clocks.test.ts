/**
 * Group E of the public lock bugs on virtual time: leases over hours, clocks that are set, applications and sidecars that
 * stand still or are cut off. The same sidecar and lock server as in `leasehold dev`.
 */
import { describe, expect, test } from 'vitest';
import { MARGIN_MS, TTL_MS, VirtualServer } from '../support/dev/virtual-dev.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** Promise 4: a dead holder's locks are free within TTL + lock-delay + this. */
const FREED_WITHIN_MS = 1_000;
/** Rule S1: a keepalive may wait for the next beat, and is one fifth of the TTL apart from the next. */
const KEEPALIVE_AGE_MS = TTL_MS / 5 + 300;

describe('TTL, renewal, clocks, pauses', () => {
  test('case E02: a wait of a day neither fires at once nor keeps anybody busy', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.holding('a');
    const session = await other.open();
    const waiting = other.acquiring('a', { sessionId: session, waitMs: 24 * HOUR_MS });
    await server.runtime.pass(MINUTE_MS);
    const before = server.runtime.steps;
    await server.runtime.pass(HOUR_MS);
    // Four beats a second, two keepalives, two calls of applications, and their commits: far from a busy loop.
    expect((server.runtime.steps - before) / 3_600).toBeLessThan(60);
    expect((await server.lock('a')).waiterCount).toBe(1);
    waiting.hangUp();
    expect(holder.keeping.refused).toEqual([]);
  });

  test('case E04: after a standstill longer than the lease every release is answered, never an error of arithmetic', async () => {
    const server = await VirtualServer.start();
    const codes = new Set<string>();
    for (const stallMs of [TTL_MS - MARGIN_MS - 1, TTL_MS - MARGIN_MS, TTL_MS, TTL_MS + 1, 10 * TTL_MS]) {
      const sidecar = server.sidecar();
      const { session, token, keeping } = await sidecar.holding(`a-${stallMs}`);
      server.runtime.stall(stallMs);
      const released = sidecar.service.release(`jobs/a-${stallMs}`, { sessionId: session, token });
      codes.add(await sidecar.refusal(released));
      keeping.stop();
      await server.runtime.pass(3 * TTL_MS);
      expect(await server.tokenOf(`a-${stallMs}`)).toBeNull();
    }
    for (const code of codes) expect(['granted', 'NOT_HELD', 'SESSION_EXPIRED']).toContain(code);
    expect(server.stopped).toEqual([]);
  });

  test.each([HOUR_MS, -HOUR_MS])(
    'case E10: the wall clock is set by %i ms: no grant ends early or late',
    async (byMs) => {
      const server = await VirtualServer.start();
      const [pod, other] = [server.sidecar(), server.sidecar()];
      const holder = await pod.holding('a');
      const mortal = await other.open();
      const { token } = await other.acquire('b', { sessionId: mortal });
      const next = await pod.open();
      pod.keepAlive(next);
      const waiting = pod.acquiring('b', { sessionId: next, waitMs: MINUTE_MS });
      const silentFrom = server.runtime.nowMs;
      await server.runtime.pass(SECOND_MS);
      server.runtime.stepWall(byMs);
      const granted = await server.runtime.until(waiting.granted, 3 * TTL_MS);
      const freedAfterMs = server.runtime.nowMs - silentFrom;
      expect(freedAfterMs).toBeGreaterThanOrEqual(TTL_MS);
      expect(freedAfterMs).toBeLessThanOrEqual(TTL_MS + FREED_WITHIN_MS);
      expect(granted.token).toBeGreaterThan(token);
      await server.runtime.pass(10 * TTL_MS);
      expect(await server.tokenOf('a')).toBe(holder.token);
      expect(pod.isHeld('a', holder.token)).toBe(true);
      expect(holder.keeping.refused).toEqual([]);
    },
  );

  test('case E11: the wall clock goes back over a restart: nothing becomes immortal, tokens still grow', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.holding('a');
    const mortal = await other.open();
    const dead = await other.acquire('b', { sessionId: mortal });
    server.runtime.stepWall(-HOUR_MS);
    await server.restart(SECOND_MS);
    await server.runtime.pass(2 * TTL_MS + FREED_WITHIN_MS);
    expect(await server.tokenOf('a')).toBe(holder.token);
    expect(await server.tokenOf('b')).toBeNull();
    const next = await pod.acquire('b', { sessionId: holder.session });
    expect(next.token).toBeGreaterThan(dead.token);
    expect(holder.keeping.refused).toEqual([]);
  });

  test('case E12: the wall clock jumps ahead under a sidecar: it stops to say "held" until it has asked, and loses nothing', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const { session, token, keeping } = await sidecar.holding('a');
    const { lines } = sidecar.stream(session);
    await server.runtime.pass(100);
    server.runtime.stepWall(HOUR_MS);
    expect(sidecar.isHeld('a', token)).toBe(false);
    await server.runtime.pass(2 * SECOND_MS);
    expect(sidecar.isHeld('a', token)).toBe(true);
    server.runtime.stepWall(-2 * HOUR_MS);
    expect(sidecar.isHeld('a', token)).toBe(true);
    await server.runtime.pass(3 * TTL_MS);
    expect(sidecar.isHeld('a', token)).toBe(true);
    expect(lines.filter(({ event }) => event === 'lost' || event === 'sessionLost')).toEqual([]);
    expect(keeping.refused).toEqual([]);
  });

  test('case E13: renewal stalls while the application lives: it is told lost before the next is granted', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const { session, token } = await pod.holding('a');
    const { lines } = pod.stream(session);
    const next = await other.open();
    other.keepAlive(next);
    const waiting = other.acquiring('a', { sessionId: next, waitMs: MINUTE_MS });
    for (let i = 0; i < 20; i++) {
      await server.runtime.pass(TTL_MS / 10);
      const renewed = pod.service.renew('jobs/a', { sessionId: session, token });
      const { deadlineInMs } = await server.runtime.until(renewed, SECOND_MS);
      // Never more than what the margin leaves (rule A1), and never less than the age of a keepalive explains.
      expect(deadlineInMs).toBeLessThanOrEqual(TTL_MS - MARGIN_MS);
      expect(deadlineInMs).toBeGreaterThan(TTL_MS - MARGIN_MS - KEEPALIVE_AGE_MS);
    }
    pod.setCut(true);
    const cutAt = server.runtime.nowMs;
    const granted = await server.runtime.until(waiting.granted, 3 * TTL_MS);
    const grantedAt = server.runtime.nowMs;
    const lost = lines.find((line) => line.event === 'lost');
    expect(lost).toMatchObject({ token });
    const told = lines.map(({ event }) => event);
    expect(told.indexOf('jeopardy')).toBeGreaterThanOrEqual(0);
    expect(told.indexOf('jeopardy')).toBeLessThan(told.indexOf('lost'));
    expect(lost?.atMs).toBeLessThan(grantedAt);
    expect(lost?.atMs).toBeLessThanOrEqual(cutAt + TTL_MS - MARGIN_MS);
    expect(grantedAt - cutAt).toBeLessThanOrEqual(TTL_MS + FREED_WITHIN_MS);
    expect(granted.token).toBeGreaterThan(token);
    expect(lines.filter((line) => line.event === 'lost')).toHaveLength(1);
  });

  test('case E14: after an outage a new grant of the name is renewed for ten leases', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const first = await sidecar.holding('a');
    sidecar.setCut(true);
    await server.runtime.pass(3 * TTL_MS);
    expect(sidecar.isHeld('a', first.token)).toBe(false);
    sidecar.setCut(false);
    await server.runtime.pass(TTL_MS);
    const second = await sidecar.holding('a');
    expect(second.token).toBeGreaterThan(first.token);
    for (let i = 0; i < 10; i++) {
      await server.runtime.pass(TTL_MS);
      expect(sidecar.isHeld('a', second.token)).toBe(true);
    }
    expect(await server.tokenOf('a')).toBe(second.token);
    expect(second.keeping.refused).toEqual([]);
  });

  test('case E15: a hundred grants of one session outlast three leases together', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const { session, keeping } = await sidecar.holding('a');
    const tokens: number[] = [];
    for (let i = 0; i < 100; i++)
      tokens.push((await sidecar.acquire(`b-${i}`, { sessionId: session })).token);
    await server.runtime.pass(3 * TTL_MS);
    for (const [i, token] of tokens.entries()) {
      expect(sidecar.isHeld(`b-${i}`, token)).toBe(true);
      await sidecar.release(`b-${i}`, session, token);
    }
    expect(server.replica.status().held).toBe(1);
    expect(keeping.refused).toEqual([]);
  });

  test('case E15: a hundred readers of one name in one session outlast three leases together', async () => {
    const server = await VirtualServer.start({ modes: ['exclusive', 'shared'] });
    const sidecar = server.sidecar();
    const session = await sidecar.open();
    const keeping = sidecar.keepAlive(session);
    const tokens: number[] = [];
    for (let i = 0; i < 100; i++)
      tokens.push((await sidecar.acquire('a', { sessionId: session, mode: 'shared' })).token);
    await server.runtime.pass(3 * TTL_MS);
    expect(await server.lock('a')).toMatchObject({ holderCount: 100 });
    for (const token of tokens) {
      expect(sidecar.isHeld('a', token)).toBe(true);
      await sidecar.release('a', session, token);
    }
    expect(server.replica.status().held).toBe(0);
    expect(keeping.refused).toEqual([]);
  });

  test('case E21: the lease counts from the grant, not from the request: a long wait costs the waiter nothing', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.holding('a');
    const session = await other.open();
    other.keepAlive(session);
    const waiting = other.acquiring('a', { sessionId: session, waitMs: 10 * TTL_MS });
    await server.runtime.pass(5 * TTL_MS);
    await pod.release('a', holder.session, holder.token);
    const { deadlineInMs, token } = await server.runtime.until(waiting.granted, SECOND_MS);
    expect(deadlineInMs).toBeGreaterThan(TTL_MS - MARGIN_MS - KEEPALIVE_AGE_MS);
    await server.runtime.pass(2 * TTL_MS);
    expect(await server.lock('a')).toMatchObject({ holders: [{ token }], waiterCount: 0 });
  });

  test('case E22: who comes long after the holder died is granted at once', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const dead = await pod.open();
    const { token } = await pod.acquire('a', { sessionId: dead });
    await server.runtime.pass(HOUR_MS);
    const session = await other.open();
    const start = server.runtime.nowMs;
    const granted = await other.acquire('a', { sessionId: session });
    expect(server.runtime.nowMs - start).toBeLessThan(50);
    expect(granted.token).toBeGreaterThan(token);
  });

  test('case E23: a candidate with a short TTL waits for the holder’s long one', async () => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.open({ ttlMs: 60_000 });
    await pod.acquire('a', { sessionId: holder });
    const silentFrom = server.runtime.nowMs;
    const session = await other.open({ ttlMs: TTL_MS });
    other.keepAlive(session);
    const waiting = other.acquiring('a', { sessionId: session, waitMs: HOUR_MS });
    await server.runtime.until(waiting.granted, 2 * MINUTE_MS);
    expect(server.runtime.nowMs - silentFrom).toBeGreaterThanOrEqual(60_000);
    expect(server.runtime.nowMs - silentFrom).toBeLessThanOrEqual(60_000 + FREED_WITHIN_MS);
  });

  test('case E25: a session that nobody uses any more ends, although sidecar and connection stay up', async () => {
    const server = await VirtualServer.start();
    const sidecar = server.sidecar();
    const forgotten = await sidecar.open();
    await sidecar.acquire('a', { sessionId: forgotten });
    const used = await sidecar.holding('b');
    await server.runtime.pass(TTL_MS + FREED_WITHIN_MS);
    expect(await server.tokenOf('a')).toBeNull();
    expect(await server.tokenOf('b')).toBe(used.token);
    expect(server.replica.status().sessions).toBe(1);
  });
});
