/** Groups E and K of the public lock bugs over HTTP: leases, delays, dead and frozen applications, jobs. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

const TTL_MS = 5_000;
/** Of applications that are to die. */
const SHORT = { ttl_s: TTL_MS / 1_000 };
/** Promise 4's "+ 1 s", and what a busy machine may add. */
const LATE_MS = 1_000 + 1_500;
const DAY_MS = 24 * 3_600_000;

const dev = shareDev(
  { name: 'leases' },
  { name: 'delayed', lease: { lockDelay: '1s' } },
  { name: 'idle', queue: { maxWait: '24h' } },
);

describe.concurrent('TTL, renewal, pauses', () => {
  test('case E02: limits of thirty days are refused or kept, and none of them fires at once', async ({
    expect,
  }) => {
    const api = dev.api('idle');
    const days30Ms = 30 * DAY_MS;
    const tooLong = [
      await api.client.post('/v1/sessions', { client: 'x', keepalive: 'app', ttl_s: days30Ms / 1000 }),
      await api.client.post('/v1/sessions', { client: 'x', keepalive: 'app', max_hold_ms: days30Ms + 1 }),
      await api.acquire('a', { client: 'x', wait_ms: days30Ms }),
    ];
    expect(tooLong.map(({ body }) => [body.code, body.field])).toEqual([
      ['INVALID', 'ttl_s'],
      ['INVALID', 'max_hold_ms'],
      ['INVALID', 'wait_ms'],
    ]);
    const [holder, waiter] = [await api.open({ max_hold_ms: days30Ms }), await api.open()];
    const keeping = [api.keepAlive(holder), api.keepAlive(waiter)];
    const held = await api.lock('a', { session_id: holder });
    const hangUp = new AbortController();
    const waiting = api
      .acquire('a', { session_id: waiter, wait_ms: DAY_MS }, hangUp.signal)
      .catch(() => null);
    await api.waiting('a', 1);
    await pause(1_500);
    expect(await api.get('a')).toMatchObject({ token: held.token, waiters: 1, holder: { revoking: null } });
    hangUp.abort();
    await waiting;
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });

  test.for([
    ['leases', 0],
    ['delayed', 1_000],
  ] as const)(
    'case E09: a dead holder’s lock of %s is free after TTL + a lock-delay of %i ms',
    async ([alias, delayMs], { expect }) => {
      const api = dev.api(alias);
      const session = await api.open();
      const keeping = api.keepAlive(session);
      const dead = await api.lock('e09', { session_id: await api.open(SHORT) });
      const diedAt = performance.now();
      const next = await api.lock('e09', { session_id: session, wait_ms: 60_000 });
      const tookMs = performance.now() - diedAt;
      keeping.stop();
      expect(next.token).toBeGreaterThan(dead.token);
      // The clock here starts a little after the call that counts.
      expect(tookMs).toBeGreaterThan(TTL_MS + delayMs - 200);
      expect(tookMs).toBeLessThan(TTL_MS + delayMs + LATE_MS);
    },
  );

  test('case E09: a lock given back has no lock-delay', async ({ expect }) => {
    const api = dev.api('delayed');
    const session = await api.open();
    const first = await api.lock('e09-clean', { session_id: session });
    await api.release(first);
    expect((await api.lock('e09-clean', { session_id: session })).token).toBeGreaterThan(first.token);
    await api.close(session);
    expect(await api.get('e09-clean')).toMatchObject({ holder: null, lock_delay_ms: 0 });
  });

  test('case E24: an application that was frozen past its lease is refused everywhere, and that is counted', async ({
    expect,
  }) => {
    const api = dev.api();
    const counted = 'lease_expired_while_working_total';
    const [workedOn, rejected] = [
      await api.namespaceMetric(counted),
      await api.namespaceMetric('fencing_rejections_total'),
    ];
    const frozen = await api.lock('e24', { session_id: await api.open({ ...SHORT, client: 'frozen' }) });
    const session = await api.open();
    const keeping = api.keepAlive(session);
    const next = await api.lock('e24', { session_id: session, wait_ms: 60_000 });
    // It wakes up and goes on as if nothing had been.
    expect(await api.isHeld(frozen)).toBe(false);
    expect((await api.renew(frozen)).body.code).toBe('SESSION_EXPIRED');
    expect((await api.release(frozen)).body.code).toBe('SESSION_EXPIRED');
    const report = { token: frozen.token, resource: 'public.payout_batches' };
    const reported = await api.client.post(api.path('e24', '/stale-reports'), report);
    expect(reported).toEqual({ status: 200, body: { recorded: true } });
    expect(next.token).toBeGreaterThan(frozen.token);
    expect(await api.tokenOf('e24')).toBe(next.token);
    expect(await api.namespaceMetric('fencing_rejections_total')).toBe(rejected + 1);
    expect(await api.namespaceMetric(counted)).toBeGreaterThan(workedOn);
    keeping.stop();
    expect(keeping.refused).toEqual([]);
  });

  test('case E25: a session nobody uses ends after one TTL, although its connection stays open', async ({
    expect,
  }) => {
    const api = dev.api();
    const silent = await api.open(SHORT);
    const held = await api.lock('e25', { session_id: silent });
    const start = performance.now();
    // The connection is busy with others' calls all the while.
    const freedAfterMs = await eventually(async () => (await api.tokenOf('e25')) === null, TTL_MS + LATE_MS);
    expect(performance.now() - start).toBeGreaterThan(TTL_MS - 500);
    expect(freedAfterMs).toBeLessThan(TTL_MS + LATE_MS);
    expect((await api.keepalive(silent)).body.code).toBe('SESSION_EXPIRED');
    expect(await api.isHeld(held)).toBe(false);
  });

  test('case E25: a closed stream is the end of a session that lives by it, at once', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open({ ...SHORT, keepalive: 'stream', max_hold_ms: DAY_MS });
    const stream = await api.stream(session);
    const held = await api.lock('e25-stream', { session_id: session });
    await pause(TTL_MS + 500);
    expect(await api.isHeld(held)).toBe(true);
    stream.close();
    expect(await eventually(async () => (await api.tokenOf('e25-stream')) === null)).toBeLessThan(2_000);
    expect((await api.keepalive(session)).body.code).toBe('SESSION_EXPIRED');
  });
});

describe.concurrent('jobs', () => {
  test('case K05: ten pods that start at once do their work one after the other, in order, in N times its length', async ({
    expect,
  }) => {
    const api = dev.api();
    const workMs = 100;
    const pods = await Promise.all(Array.from({ length: 10 }, (_, i) => api.open({ client: `pod-${i}` })));
    const keeping = pods.map((session) => api.keepAlive(session));
    const gate = await api.open();
    const closed = await api.lock('k05', { session_id: gate });
    const order: number[] = [];
    let working = 0;
    const jobs: Promise<void>[] = [];
    for (const [i, session] of pods.entries()) {
      const job = async (): Promise<void> => {
        const grant = await api.lock('k05', { session_id: session, wait_ms: 600_000 });
        expect(++working).toBe(1);
        order.push(i);
        await pause(workMs);
        working--;
        expect((await api.release(grant)).status).toBe(200);
      };
      jobs.push(job());
      await api.waiting('k05', i + 1);
    }
    const start = performance.now();
    await api.release(closed);
    await Promise.all(jobs);
    const tookMs = performance.now() - start;
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(tookMs).toBeGreaterThanOrEqual(10 * workMs - 20);
    expect(tookMs).toBeLessThan(10 * (workMs + 150));
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });

  test('case K06: a pod that stops in order frees at once; one that is killed, by its TTL and not by the length of its job', async ({
    expect,
  }) => {
    const api = dev.api();
    const next = await api.open();
    const keeping = api.keepAlive(next);
    const jobMs = 3_600_000;

    const orderly = await api.open({ max_hold_ms: jobMs });
    await api.lock('k06', { session_id: orderly });
    const first = api.lock('k06', { session_id: next, wait_ms: jobMs });
    await api.waiting('k06', 1);
    const stoppedAt = performance.now();
    expect((await api.close(orderly)).body).toEqual({ closed: true });
    const taken = await first;
    expect(performance.now() - stoppedAt).toBeLessThan(1_500);
    await api.release(taken);

    const killed = await api.open({ ...SHORT, max_hold_ms: jobMs });
    await api.lock('k06', { session_id: killed });
    const killedAt = performance.now();
    const after = await api.lock('k06', { session_id: next, wait_ms: jobMs });
    const tookMs = performance.now() - killedAt;
    expect(tookMs).toBeGreaterThan(TTL_MS - 200);
    expect(tookMs).toBeLessThan(TTL_MS + LATE_MS);
    expect(after.token).toBeGreaterThan(taken.token);
    keeping.stop();
    expect(keeping.refused).toEqual([]);
  });
});
