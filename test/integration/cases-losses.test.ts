/**
 * Group A of the public lock bugs on virtual time: holders and waiters that lose their session, and how they learn of it. The
 * same sidecar and lock server as in `leasehold dev`.
 */
import { expect, test } from 'vitest';
import { type Acquiring, MARGIN_MS, TTL_MS, VirtualServer } from '../support/dev/virtual-dev.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** Promise 4: a dead holder's locks are free within TTL + lock-delay + this. */
const FREED_WITHIN_MS = 1_000;

test('cases A01, A03: a waiter whose session ends is told so while the lock is still busy, and is not granted later', async () => {
  const server = await VirtualServer.start();
  const [pod, lost, other] = [server.sidecar(), server.sidecar(), server.sidecar()];
  const holder = await pod.holding('a');
  const waiting = lost.acquiring('a', { sessionId: await lost.open(), waitMs: HOUR_MS });
  await server.runtime.pass(SECOND_MS);
  const behind = other.acquiring('a', { sessionId: await other.open(), waitMs: HOUR_MS });
  await server.runtime.pass(SECOND_MS);
  lost.setCut(true);
  await server.runtime.pass(TTL_MS + FREED_WITHIN_MS);
  expect((await server.lock('a')).waiterCount).toBe(1);
  lost.setCut(false);
  expect(await lost.refusal(waiting.granted, TTL_MS)).toBe('SESSION_EXPIRED');
  expect(await server.tokenOf('a')).toBe(holder.token);
  await pod.release('a', holder.session, holder.token);
  const granted = await server.runtime.until(behind.granted, SECOND_MS);
  expect(await server.tokenOf('a')).toBe(granted.token);
});

test('case A05: a waiter in the middle that goes away changes the queue alone', async () => {
  const server = await VirtualServer.start();
  const sidecar = server.sidecar();
  const holder = await sidecar.holding('a');
  const waits: Acquiring[] = [];
  for (let i = 0; i < 3; i++) {
    waits.push(sidecar.acquiring('a', { sessionId: await sidecar.open(), waitMs: HOUR_MS }));
    await server.runtime.pass(100);
  }
  waits[1]?.hangUp();
  await server.runtime.pass(SECOND_MS);
  expect(await server.lock('a')).toMatchObject({ waiterCount: 2, holders: [{ token: holder.token }] });
  await sidecar.release('a', holder.session, holder.token);
  const first = await server.runtime.until(waits[0]!.granted, SECOND_MS);
  expect(await server.lock('a')).toMatchObject({ waiterCount: 1, holders: [{ token: first.token }] });
});

test.each([10 * SECOND_MS, 30 * SECOND_MS, 5 * MINUTE_MS])(
  'case A06: after %i ms in which nothing could be committed there is one holder, and each loss was told once',
  async (outageMs) => {
    const server = await VirtualServer.start();
    const [pod, other] = [server.sidecar(), server.sidecar()];
    const holder = await pod.holding('a');
    const { lines } = pod.stream(holder.session);
    const next = await other.open();
    const keeping = other.keepAlive(next);
    const waiting = other.acquiring('a', { sessionId: next, waitMs: HOUR_MS });
    await server.runtime.pass(SECOND_MS);
    server.setOutage(true);
    await server.runtime.pass(outageMs);
    // Nobody could tell it that the lease goes on, so it stopped by its own clock.
    expect(pod.isHeld('a', holder.token)).toBe(false);
    server.setOutage(false);
    const granted = await server.runtime.until(waiting.granted, 3 * TTL_MS + FREED_WITHIN_MS);
    await server.runtime.pass(3 * TTL_MS);
    expect(granted.token).toBeGreaterThan(holder.token);
    expect(await server.tokenOf('a')).toBe(granted.token);
    expect(pod.isHeld('a', holder.token)).toBe(false);
    expect(lines.filter(({ event }) => event === 'lost')).toHaveLength(1);
    expect(keeping.refused).toEqual([]);
    expect(server.stopped).toEqual([]);
  },
);

test('case A07: a server that restarts under a waiter never makes a grant of its wait', async () => {
  const server = await VirtualServer.start();
  const [pod, other] = [server.sidecar(), server.sidecar()];
  const holder = await pod.holding('a');
  const waiting = other.acquiring('a', { sessionId: await other.open(), waitMs: HOUR_MS });
  let isGranted = false;
  waiting.granted.then(
    () => {
      isGranted = true;
    },
    () => undefined,
  );
  await server.runtime.pass(SECOND_MS);
  for (let i = 0; i < 3; i++) {
    await server.restart(SECOND_MS);
    await server.runtime.pass(3 * SECOND_MS);
    expect(isGranted).toBe(false);
    expect(await server.lock('a')).toMatchObject({ waiterCount: 1, holders: [{ token: holder.token }] });
    expect(pod.isHeld('a', holder.token)).toBe(true);
  }
  await pod.release('a', holder.session, holder.token);
  const granted = await server.runtime.until(waiting.granted, SECOND_MS);
  expect(granted.token).toBeGreaterThan(holder.token);
});

test('cases A09, A13: a holder whose network is off learns of the loss by its own clock, and has nothing when it is back', async () => {
  const server = await VirtualServer.start();
  const sidecar = server.sidecar();
  const { session, token } = await sidecar.holding('a');
  const { lines } = sidecar.stream(session);
  await server.runtime.pass(TTL_MS);
  sidecar.setCut(true);
  const cutAt = server.runtime.nowMs;
  await server.runtime.pass(TTL_MS - MARGIN_MS);
  expect(sidecar.isHeld('a', token)).toBe(false);
  expect(lines.filter(({ event }) => event === 'lost')).toMatchObject([{ token }]);
  expect(lines.at(-1)?.atMs).toBeLessThanOrEqual(cutAt + TTL_MS - MARGIN_MS);
  await server.runtime.pass(2 * TTL_MS);
  sidecar.setCut(false);
  await server.runtime.pass(TTL_MS);
  expect(sidecar.isHeld('a', token)).toBe(false);
  expect(await server.tokenOf('a')).toBeNull();
  const again = sidecar.acquiring('a', { sessionId: session });
  expect(await sidecar.refusal(again.granted)).toBe('SESSION_EXPIRED');
});

test('cases A10, A11: every grant of a session that ends is lost once, whoever looks first', async () => {
  const server = await VirtualServer.start();
  const sidecar = server.sidecar();
  const { session, token } = await sidecar.holding('a');
  const tokens = [token];
  for (const name of ['b', 'c', 'd'])
    tokens.push((await sidecar.acquire(name, { sessionId: session })).token);
  const { lines } = sidecar.stream(session);
  sidecar.setCut(true);
  server.runtime.stall(TTL_MS);
  // Timers have not had their turn yet; the clock has.
  for (const [i, name] of ['a', 'b', 'c', 'd'].entries())
    expect(sidecar.isHeld(name, tokens[i] as number)).toBe(false);
  await server.runtime.pass(TTL_MS);
  sidecar.setCut(false);
  await server.runtime.pass(3 * TTL_MS);
  const lost = lines.flatMap((line) => (line.event === 'lost' ? [line.token] : []));
  expect(lost.toSorted()).toEqual(tokens.toSorted());
  expect(lines.filter(({ event }) => event === 'sessionLost')).toHaveLength(1);
});
