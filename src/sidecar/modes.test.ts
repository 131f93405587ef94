/** Shared and semaphore locks through the sidecar: several grants of one name, also of one session (rule C2). */
import { describe, expect, test } from 'vitest';
import { Pod, type PodOptions, TTL_MS } from '../../test/support/virtual/pod.ts';

const HOUR_MS = 3_600_000;
const SHARED = { mode: 'shared' } as const;
const SEMAPHORE = { mode: 'semaphore' } as const;
const MODES: PodOptions = {
  config: {
    modes: ['exclusive', 'shared', 'semaphore'],
    semaphores: [{ pattern: 'pool-*', permits: 3 }],
    lockDelayMs: 0,
  },
};

async function served() {
  const pod = await Pod.start(MODES);
  const open = async () => {
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    return sessionId;
  };
  return { pod, open, one: await open(), other: await open() };
}

describe('shared', () => {
  test('readers hold together; a writer waits for all of them, and a later reader for the writer', async () => {
    const { pod, one, other } = await served();
    const [first, second] = [
      await pod.acquire('a', { ...SHARED, sessionId: one }),
      await pod.acquire('a', { ...SHARED, sessionId: other }),
    ];
    expect(second.token).toBeGreaterThan(first.token);
    const writer = pod.acquiring('a', { sessionId: one, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    const late = pod.acquiring('a', { ...SHARED, sessionId: other, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    const lock = await pod.jobs.lock('a');
    expect(lock).toMatchObject({ holderCount: 2, waiterCount: 2 });
    expect(lock.waiters.map(({ mode }) => mode)).toEqual(['exclusive', 'shared']);
    await pod.release('a', one, first.token);
    expect(writer.outcome.value).toBeNull();
    await pod.release('a', other, second.token);
    await pod.runtime.pass(10);
    expect([writer.outcome.value, late.outcome.value]).toEqual(['granted', null]);
    await pod.release('a', one, (await writer.granted).token);
    await pod.runtime.pass(10);
    expect(late.outcome.value).toBe('granted');
  });

  test('several grants of one session on one name are told apart by their tokens', async () => {
    const { pod, one } = await served();
    const grants: { readonly token: number }[] = [];
    for (let i = 0; i < 3; i++) grants.push(await pod.acquire('a', { ...SHARED, sessionId: one }));
    const [first, second, third] = grants.map(({ token }) => token) as [number, number, number];
    expect([first, second, third].map((token) => pod.held('a', token).held)).toEqual([true, true, true]);
    expect(await pod.release('a', one, second)).toEqual({ already: false });
    expect([first, second, third].map((token) => pod.held('a', token).held)).toEqual([true, false, true]);
    expect(await pod.release('a', one, second)).toEqual({ already: true });
    expect((await pod.jobs.lock('a')).holders.map(({ token }) => token)).toEqual([first, third]);
    // What group and sidecar count stays the same: nobody attaches anew.
    await pod.runtime.pass(2 * TTL_MS);
    expect(pod.jobs.line.requests('attachWithSecret')).toEqual([]);
    await pod.runtime.until(pod.sidecar.closeSession(one), 1_000);
    expect((await pod.jobs.lock('a')).holders).toEqual([]);
  });

  test('one of several is broken: it alone is lost, with its cause', async () => {
    const { pod, one } = await served();
    const [first, second] = [
      await pod.acquire('a', { ...SHARED, sessionId: one }),
      await pod.acquire('a', { ...SHARED, sessionId: one }),
    ];
    const { lines } = pod.stream(one);
    await pod.jobs.break('a', first.token);
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).holders.map(({ revoking }) => revoking)).toEqual(['break', null]);
    expect(pod.held('a', first.token)).toMatchObject({ held: true, revoking: 'break' });
    expect(pod.held('a', second.token)).not.toHaveProperty('revoking');
    expect(first).not.toHaveProperty('revoking');
    const renewed = pod.sidecar.renew('jobs/a', { sessionId: one, token: first.token });
    expect(await pod.runtime.until(renewed, 1_000)).toMatchObject({ token: first.token, revoking: 'break' });
    await pod.runtime.pass(2 * TTL_MS);
    expect(lines.filter(({ event }) => event === 'revoking' || event === 'lost')).toMatchObject([
      { event: 'revoking', token: first.token, cause: 'break' },
      { event: 'lost', token: first.token },
    ]);
    expect([first, second].map(({ token }) => pod.held('a', token).held)).toEqual([false, true]);
  });

  test('after a restart of the sidecar all of them are still held', async () => {
    const { pod, one } = await served();
    const tokens: number[] = [];
    for (const request of ['r1', 'r2', undefined]) {
      const named = request === undefined ? {} : { request };
      tokens.push((await pod.acquire('a', { ...SHARED, sessionId: one, ...named })).token);
    }
    await pod.restart();
    await pod.runtime.pass(10);
    expect(tokens.map((token) => pod.held('a', token).held)).toEqual([true, true, true]);
    expect((await pod.acquire('a', { ...SHARED, sessionId: one, request: 'r2' })).token).toBe(tokens[1]);
    expect((await pod.jobs.lock('a')).holderCount).toBe(3);
  });
});

describe('semaphore', () => {
  test('hands out as many permits as there are; who needs more than are free waits, and so do those behind', async () => {
    const { pod, one, other } = await served();
    const two = await pod.acquire('pool-x', { ...SEMAPHORE, permits: 2, sessionId: one });
    const waiting = pod.acquiring('pool-x', {
      ...SEMAPHORE,
      permits: 2,
      sessionId: other,
      waitMs: HOUR_MS,
    });
    await pod.runtime.pass(10);
    const behind = pod.acquiring('pool-x', { ...SEMAPHORE, sessionId: other, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    expect([waiting.outcome.value, behind.outcome.value]).toEqual([null, null]);
    expect(await pod.jobs.lock('pool-x')).toMatchObject({
      holders: [{ mode: 'semaphore', permits: 2 }],
      waiters: [{ permits: 2 }, { permits: 1 }],
    });
    await pod.release('pool-x', one, two.token);
    await pod.runtime.pass(10);
    expect([waiting.outcome.value, behind.outcome.value]).toEqual(['granted', 'granted']);
  });

  test('permits that are cut are taken from the newest, and the stream says why', async () => {
    const { pod, one, other } = await served();
    await pod.acquire('pool-x', { ...SEMAPHORE, permits: 2, sessionId: one });
    const newest = await pod.acquire('pool-x', { ...SEMAPHORE, sessionId: other });
    const { lines } = pod.stream(other);
    const { config } = pod.jobs;
    const cut = { ...config, semaphores: [{ pattern: 'pool-*', permits: 2 }] };
    await pod.runtime.until(pod.jobs.replica.configure(cut), 1_000);
    await pod.runtime.pass(10);
    expect(lines.filter(({ event }) => event === 'revoking')).toMatchObject([
      { token: newest.token, cause: 'permitsCut' },
    ]);
  });
});

describe('the true cause of a revoke, when its notice was lost', () => {
  test('comes with the next answer to a keepalive', async () => {
    const { pod } = await served();
    const sessionId = await pod.open({ maxHoldMs: 5_000 });
    pod.keepAlive(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(4_000);
    pod.jobs.line.toClient = 'lost';
    await pod.runtime.pass(1_500);
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(TTL_MS / 5 + 500);
    expect(lines.filter(({ event }) => event === 'revoking')).toMatchObject([{ token, cause: 'maxHold' }]);
  });

  test('comes with the list after an attach', async () => {
    const { pod } = await served();
    const sessionId = await pod.open({ maxHoldMs: 5_000 });
    pod.keepAlive(sessionId);
    const { token } = await pod.acquire('a', { sessionId });
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(4_500);
    pod.jobs.line.isDown = true;
    pod.jobs.line.break();
    await pod.runtime.pass(1_000);
    pod.jobs.line.isDown = false;
    await pod.runtime.pass(1_500);
    expect(lines.filter(({ event }) => event === 'revoking')).toMatchObject([{ token, cause: 'maxHold' }]);
  });
});

describe('what the namespace does not allow is INVALID, names the field, and leaves the session as it was', () => {
  test.each([
    ['a mode that is not allowed', { mode: 'shared' } as const, 'a', 'mode', 'add Shared to spec.modes'],
    ['a semaphore that nobody declared', { mode: 'semaphore' } as const, 'a', 'mode', 'to spec.semaphores'],
    ['another mode under a semaphore', {}, 'pool-x', 'mode', 'ask with mode semaphore (CLI: --permits 1)'],
    ['more permits', { mode: 'semaphore', permits: 4 } as const, 'pool-x', 'permits', 'has 3 permits'],
  ])('%s', async (_what, differs, name, field, wayOut) => {
    const config = {
      modes: ['exclusive', 'semaphore'] as const,
      semaphores: [{ pattern: 'pool-*', permits: 3 }],
    };
    const pod = await Pod.start({ config });
    const sessionId = await pod.open();
    const error = await pod.refusal(pod.acquire(name, { sessionId, ...differs }));
    expect(error).toMatchObject({ code: 'INVALID', details: { field } });
    expect(error.details).toHaveProperty('limit');
    expect(error.message).toContain(wayOut);
    expect((await pod.acquire('free', { sessionId })).token).toBeGreaterThan(0);
    expect(pod.jobs.replica.status()).toMatchObject({ held: 1, waiting: 0 });
  });
});
