/** Re-entrant grants through the sidecar: one token, held by several acquires, each given back under its `request` (rule C6). */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const HOUR_MS = 3_600_000;

/** A session that holds lock `a` re-entrantly, by the acquires `r1` and `r2`. */
async function twice() {
  const pod = await Pod.start({ config: { lockDelayMs: 0 } });
  const sessionId = await pod.open();
  pod.keepAlive(sessionId);
  const again = (request: string, differs = {}) =>
    pod.acquire('a', { sessionId, reentrant: true, request, ...differs });
  const { token } = await again('r1');
  expect((await again('r2')).token).toBe(token);
  return { pod, sessionId, token, again };
}

describe('rule C6: one grant, several acquires', () => {
  test('is held until the last of them is given back, in any order', async () => {
    const { pod, sessionId, token } = await twice();
    expect(await pod.jobs.lock('a')).toMatchObject({ holderCount: 1, holders: [{ token }] });
    expect(await pod.release('a', sessionId, token, 'r1')).toEqual({ already: false });
    expect(pod.held('a', token).held).toBe(true);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    expect(await pod.release('a', sessionId, token, 'r2')).toEqual({ already: false });
    expect(pod.held('a', token).held).toBe(false);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a repeat of each request gives the same token, while its acquire is not given back', async () => {
    const { pod, sessionId, token, again } = await twice();
    const sent = pod.jobs.line.requests('acquire').length;
    expect([(await again('r1')).token, (await again('r2')).token]).toEqual([token, token]);
    expect(pod.jobs.line.requests('acquire')).toHaveLength(sent);
    await pod.release('a', sessionId, token, 'r1');
    expect(await pod.refusal(again('r1'))).toMatchObject({ code: 'NOT_HELD', details: { token } });
    expect((await again('r2')).token).toBe(token);
  });

  test('a repeated release says so, for each acquire by itself', async () => {
    const { pod, sessionId, token } = await twice();
    await pod.release('a', sessionId, token, 'r1');
    expect(await pod.release('a', sessionId, token, 'r1')).toEqual({ already: true });
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    await pod.release('a', sessionId, token, 'r2');
    for (const request of ['r1', 'r2'])
      expect(await pod.release('a', sessionId, token, request)).toEqual({ already: true });
    expect((await pod.refusal(pod.release('a', sessionId, token, 'r3'))).code).toBe('NOT_HELD');
  });

  test('a release without its request, or with that of nobody, changes nothing', async () => {
    const { pod, sessionId, token } = await twice();
    const unnamed = await pod.refusal(pod.release('a', sessionId, token));
    expect(unnamed).toMatchObject({ code: 'INVALID', details: { field: 'request', token } });
    expect(unnamed.details).toHaveProperty('limit');
    expect((await pod.refusal(pod.release('a', sessionId, token, 'nobody'))).code).toBe('NOT_HELD');
    expect(pod.held('a', token).held).toBe(true);
    expect(pod.jobs.line.requests('release')).toEqual([]);
    expect(pod.counts.expiredWhileWorking).toBe(0);
  });

  test('an acquire that is not re-entrant, or of another owner, waits like anybody’s', async () => {
    const { pod, sessionId } = await twice();
    expect((await pod.refusal(pod.acquire('a', { sessionId }))).code).toBe('HELD');
    const other = { sessionId, reentrant: true, request: 'r3', owner: 'other' };
    expect((await pod.refusal(pod.acquire('a', other))).code).toBe('HELD');
  });

  test('one that is given back while the next is on its way keeps the lock for it', async () => {
    const { pod, sessionId, token } = await twice();
    await pod.release('a', sessionId, token, 'r1');
    pod.jobs.line.toClient = 'held';
    const third = pod.acquiring('a', { sessionId, reentrant: true, request: 'r3' });
    await pod.runtime.pass(1);
    const released = pod.sidecar.release('jobs/a', { sessionId, token, request: 'r2' });
    await pod.runtime.pass(1);
    expect(pod.held('a', token).held).toBe(false);
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(10);
    expect(await released).toEqual({ already: false });
    expect((await third.granted).token).toBe(token);
    expect(pod.held('a', token).held).toBe(true);
    expect(await pod.release('a', sessionId, token, 'r2')).toEqual({ already: true });
    expect(await pod.release('a', sessionId, token, 'r3')).toEqual({ already: false });
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a request that is used anew after it was forgotten is what is given back', async () => {
    const { pod, sessionId, token, again } = await twice();
    await pod.release('a', sessionId, token, 'r1');
    for (let i = 0; i < 256; i++) {
      await again(`x${i}`);
      await pod.release('a', sessionId, token, `x${i}`);
    }
    expect((await again('r1')).token).toBe(token);
    await pod.release('a', sessionId, token, 'r2');
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    expect(await pod.release('a', sessionId, token, 'r1')).toEqual({ already: false });
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a session for one lock goes with the last acquire, not with the first', async () => {
    const pod = await Pod.start();
    const call = { ttlMs: TTL_MS, client: 'script', reentrant: true };
    const { sessionId, token } = await pod.acquire('a', { ...call, request: 'r1' });
    await pod.acquire('a', { sessionId, reentrant: true, request: 'r2' });
    await pod.release('a', sessionId, token, 'r1');
    await pod.runtime.until(pod.sidecar.renew('jobs/a', { sessionId, token }), 100);
    await pod.release('a', sessionId, token, 'r2');
    await pod.runtime.pass(10);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
    expect(await pod.release('a', sessionId, token, 'r1')).toEqual({ already: true });
  });
});

describe('rule A5: hang-ups', () => {
  test('of one acquire, before its answer was written, take back that one alone', async () => {
    const { pod, sessionId, token } = await twice();
    const third = pod.acquiring('a', { sessionId, reentrant: true, request: 'r3' });
    expect((await pod.runtime.until(third.granted, 100)).token).toBe(token);
    third.hangUp();
    await pod.runtime.pass(10);
    expect(pod.held('a', token).held).toBe(true);
    expect(pod.jobs.line.requests('cancel')).toHaveLength(1);
    for (const request of ['r1', 'r2']) await pod.release('a', sessionId, token, request);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('before the answer arrived: the group takes back that one alone', async () => {
    const { pod, sessionId, token } = await twice();
    pod.jobs.line.toClient = 'held';
    const third = pod.acquiring('a', { sessionId, reentrant: true, request: 'r3' });
    await pod.runtime.pass(10);
    third.hangUp();
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(10);
    expect(third.outcome.value).toBe('CANCELLED');
    expect(pod.held('a', token).held).toBe(true);
    for (const request of ['r1', 'r2']) await pod.release('a', sessionId, token, request);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    expect(pod.jobs.replica.status()).toMatchObject({ held: 0, waiting: 0 });
  });

  test('an acquire whose answer got lost with the stream is found in the list, and belongs to its caller', async () => {
    const { pod, sessionId, token } = await twice();
    pod.jobs.line.toClient = 'lost';
    const third = pod.acquiring('a', { sessionId, reentrant: true, request: 'r3' });
    await pod.runtime.pass(10);
    pod.jobs.line.break();
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(1_000);
    expect((await third.granted).token).toBe(token);
    for (const request of ['r1', 'r2']) await pod.release('a', sessionId, token, request);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    await pod.release('a', sessionId, token, 'r3');
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });
});

describe('rule A4: after a restart of the sidecar', () => {
  test('each acquire of a grant is known again', async () => {
    const { pod, sessionId, token, again } = await twice();
    await again('r3');
    await pod.release('a', sessionId, token, 'r1');
    for (let life = 0; life < 2; life++) {
      await pod.restart();
      expect((await again('r2')).token).toBe(token);
      expect((await again('r3')).token).toBe(token);
      expect((await pod.refusal(again('r1'))).code).toBe('NOT_HELD');
      expect(pod.held('a', token).held).toBe(true);
      expect(await pod.release('a', sessionId, token, 'r1')).toEqual({ already: true });
    }
    await pod.release('a', sessionId, token, 'r2');
    await pod.restart();
    expect(await pod.release('a', sessionId, token, 'r2')).toEqual({ already: true });
    expect(await pod.jobs.tokenOf('a')).toBe(token);
    expect(await pod.release('a', sessionId, token, 'r3')).toEqual({ already: false });
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a release that was not confirmed is made good, and takes nothing else with it', async () => {
    const { pod, sessionId, token } = await twice();
    pod.jobs.line.toServer = 'lost';
    pod.sidecar.release('jobs/a', { sessionId, token, request: 'r1' }).catch(() => undefined);
    await pod.runtime.pass(10);
    pod.jobs.line.break();
    pod.jobs.line.toServer = 'flows';
    await pod.restart();
    await pod.runtime.pass(100);
    expect(pod.held('a', token).held).toBe(true);
    await pod.release('a', sessionId, token, 'r2');
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('an acquire that was never told to anybody is given back, and the grant stays', async () => {
    const { pod, sessionId, token } = await twice();
    pod.jobs.line.toClient = 'lost';
    pod.acquiring('a', { sessionId, reentrant: true, request: 'r3' }).granted.catch(() => undefined);
    await pod.runtime.pass(10);
    pod.jobs.line.break();
    pod.jobs.line.toClient = 'flows';
    await pod.restart();
    await pod.runtime.pass(100);
    expect(pod.held('a', token).held).toBe(true);
    for (const request of ['r1', 'r2']) await pod.release('a', sessionId, token, request);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });
});

describe('losses', () => {
  test('are told once for the grant, and every acquire of it is over', async () => {
    const { pod, sessionId, token, again } = await twice();
    const { lines } = pod.stream(sessionId);
    await pod.jobs.break('a', token, { now: true });
    await pod.runtime.pass(10);
    expect(lines.filter(({ event }) => event === 'lost')).toMatchObject([{ name: 'jobs/a', token }]);
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 1 });
    for (const request of ['r1', 'r2']) expect((await pod.refusal(again(request))).code).toBe('NOT_HELD');
    expect((await pod.refusal(pod.release('a', sessionId, token, 'r1'))).code).toBe('NOT_HELD');
    expect(pod.store.load().filter(({ type }) => type === 'grant')).toEqual([]);
  });

  test('a grant under a revoke is joined by nobody: the next acquire waits for its turn', async () => {
    const { pod, sessionId, token } = await twice();
    await pod.jobs.break('a', token);
    const third = pod.acquiring('a', { sessionId, reentrant: true, request: 'r3', waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    expect(third.outcome.value).toBeNull();
    for (const request of ['r1', 'r2']) await pod.release('a', sessionId, token, request);
    await pod.runtime.pass(10);
    expect((await third.granted).token).toBeGreaterThan(token);
  });
});
