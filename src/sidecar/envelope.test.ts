/** One session over several namespaces (rule A6), and what the metrics are told of it. */
import { describe, expect, test } from 'vitest';
import { LEASE_MS, Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const ALIASES = ['jobs', 'payouts'];

describe('rule A6: the envelope', () => {
  test('opens a group session where it is first needed, one per namespace', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open();
    await pod.runtime.pass(100);
    expect(pod.group('jobs').replica.status().sessions).toBe(0);
    await pod.acquire('jobs/a', { sessionId });
    await pod.acquire('jobs/b', { sessionId });
    expect(pod.group('jobs').replica.status().sessions).toBe(1);
    expect(pod.group('payouts').replica.status().sessions).toBe(0);
    await pod.acquire('payouts/a', { sessionId });
    expect(pod.group('payouts').replica.status().sessions).toBe(1);
    expect(pod.sidecar.figures('payouts')).toEqual({ sessions: 1, grants: 1, waits: 0 });
  });

  test('one that opened none is alive as long as its application is', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    const keeping = pod.keepAlive(sessionId);
    await pod.runtime.pass(10 * TTL_MS);
    const { deadlineInMs } = await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 10);
    expect(deadlineInMs).toBe(LEASE_MS);
    keeping.stop();
    await pod.runtime.pass(TTL_MS + 10);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test('its deadline is the earliest of its namespaces; each grant has its own', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const jobs = await pod.acquire('jobs/a', { sessionId });
    await pod.acquire('payouts/a', { sessionId });
    await pod.runtime.pass(4_000);
    pod.group('payouts').line.both = 'lost';
    await pod.runtime.pass(4_000);
    const whole = await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 10);
    const grant = pod.sidecar.held('jobs/a', jobs.token);
    expect(whole.deadlineInMs).toBeLessThan((grant.deadlineInMs ?? 0) - 2_000);
  });

  test('a namespace that is still being opened shortens it by nothing: nothing is held there', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const { token } = await pod.acquire('jobs/a', { sessionId });
    pod.group('payouts').line.both = 'lost';
    const opening = pod.acquiring('payouts/a', { sessionId });
    await pod.runtime.pass(1_000);
    const whole = await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), 10);
    expect(whole.deadlineInMs).toBe(pod.sidecar.held('jobs/a', token).deadlineInMs);
    expect(opening.outcome.value).toBeNull();
  });

  test('loss is per group: the other one goes on, and the lost one can be used anew', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const jobs = await pod.acquire('jobs/a', { sessionId });
    const payouts = await pod.acquire('payouts/a', { sessionId });
    const stream = pod.stream(sessionId);
    pod.group('payouts').line.both = 'lost';
    await pod.runtime.pass(TTL_MS);
    expect(pod.sidecar.held('payouts/a', payouts.token).held).toBe(false);
    expect(pod.sidecar.held('jobs/a', jobs.token).held).toBe(true);
    expect(stream.events()).toEqual(['jeopardy', 'lost']);
    pod.group('payouts').line.both = 'flows';
    await pod.runtime.pass(TTL_MS);
    const again = await pod.acquire('payouts/a', { sessionId });
    expect(again.token).toBeGreaterThan(payouts.token);
    expect(pod.group('payouts').replica.status().sessions).toBe(1);
    expect(stream.events()).toEqual(['jeopardy', 'lost', 'granted']);
    await pod.runtime.pass(3 * TTL_MS);
    expect(pod.sidecar.held('payouts/a', again.token).held).toBe(true);
  });

  test('when the last one is lost the session is over', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    const stream = pod.stream(sessionId);
    pod.jobs.line.both = 'lost';
    await pod.runtime.pass(TTL_MS);
    expect(stream.events()).toEqual(['jeopardy', 'lost', 'sessionLost']);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
  });

  test('a group that refuses to open a session costs the others nothing', async () => {
    const pod = await Pod.start({ aliases: ALIASES, config: { sessions: 1 } });
    const first = await pod.holding('jobs/a');
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    await pod.acquire('payouts/a', { sessionId });
    expect((await pod.refusal(pod.acquire('jobs/b', { sessionId }))).code).toBe('QUOTA_EXCEEDED');
    expect((await pod.refusal(pod.acquire('jobs/b', { sessionId, request: 'r' }))).code).toBe(
      'QUOTA_EXCEEDED',
    );
    const rest = [
      pod.acquiring('jobs/b', { sessionId }),
      pod.acquiring('jobs/c', { sessionId, waitMs: 60_000 }),
    ];
    await pod.runtime.pass(10);
    expect(rest.map(({ outcome }) => outcome.value)).toEqual(['QUOTA_EXCEEDED', 'QUOTA_EXCEEDED']);
    await pod.runtime.pass(2 * TTL_MS);
    expect(pod.sidecar.figures('payouts').grants).toBe(1);
    await pod.runtime.until(pod.sidecar.closeSession(first.sessionId), 100);
    expect((await pod.acquire('jobs/b', { sessionId })).token).toBeGreaterThan(0);
  });

  test('a session deleted while its group session is being opened leaves none behind', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    pod.jobs.log.hold();
    const acquiring = pod.acquiring('a', { sessionId });
    await pod.runtime.pass(10);
    const closing = pod.sidecar.closeSession(sessionId);
    await pod.runtime.pass(10);
    pod.jobs.log.letGo();
    await pod.runtime.until(closing, 1_000);
    expect((await pod.refusal(acquiring.granted)).code).toBe('SESSION_EXPIRED');
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 0, held: 0 });
    expect(pod.jobs.line.requests('closeSession')).toHaveLength(1);
  });

  test('deleted while its group refuses to open it, the call ends too', async () => {
    const pod = await Pod.start({ config: { sessions: 1 } });
    await pod.holding('a');
    const sessionId = await pod.open();
    pod.jobs.log.hold();
    const acquiring = pod.acquiring('b', { sessionId });
    await pod.runtime.pass(10);
    const closing = pod.sidecar.closeSession(sessionId);
    pod.jobs.log.letGo();
    await pod.runtime.until(closing, 1_000);
    expect((await pod.refusal(acquiring.granted)).code).toBe('SESSION_EXPIRED');
  });

  test('the stream breaks while a session is being opened: it is opened once', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    pod.jobs.replica.frontEnd.setLeader(null);
    const acquiring = pod.acquiring('a', { sessionId });
    await pod.runtime.pass(50);
    await pod.runtime.until(pod.jobs.replica.stop(), 100);
    await pod.jobs.start();
    pod.jobs.log.hold();
    await pod.runtime.pass(600);
    pod.jobs.log.letGo();
    const granted = await pod.runtime.until(acquiring.granted, 1_000);
    await pod.runtime.pass(1_000);
    expect(await pod.jobs.tokenOf('a')).toBe(granted.token);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 1, held: 1 });
  });

  test('without a TTL of its own it keeps the pace of the most demanding namespace', async () => {
    const pod = await Pod.start({ config: { ttlMs: 6_000 } });
    const opened = await pod.sidecar.openSession({ client: 'c', keepalive: 'app' });
    expect(opened).toMatchObject({ ttlMs: 6_000, keepaliveEveryMs: 1_200 });
  });
});

describe('leasehold_lease_expired_while_working_total', () => {
  /** A grant that is lost while its application has no stream. */
  async function lostQuietly() {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    pod.jobs.line.both = 'lost';
    await pod.runtime.pass(TTL_MS);
    pod.jobs.line.both = 'flows';
    await pod.runtime.pass(TTL_MS);
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 0 });
    return { pod, sessionId, token };
  }

  test('counts a grant whose application still held its stream', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    pod.stream(sessionId);
    pod.jobs.line.both = 'lost';
    await pod.runtime.pass(TTL_MS);
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 1 });
    expect(pod.held('a', token).held).toBe(false);
    expect(pod.counts.expiredWhileWorking).toBe(1);
  });

  test.each<[string, (pod: Pod, sessionId: string, token: number) => Promise<unknown>]>([
    ['renew', (pod, sessionId, token) => pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))],
    ['release', (pod, sessionId, token) => pod.refusal(pod.sidecar.release('jobs/a', { sessionId, token }))],
    ['held', (pod, _sessionId, token) => Promise.resolve(pod.held('a', token))],
    [
      'a report of a rejection',
      (pod, _sessionId, token) =>
        pod.runtime.until(pod.sidecar.reportStale('jobs/a', { token, resource: 'db' }), 100),
    ],
  ])('counts it once when its application sends %s', async (_what, call) => {
    const { pod, sessionId, token } = await lostQuietly();
    await call(pod, sessionId, token);
    expect(pod.counts.expiredWhileWorking).toBe(1);
    await call(pod, sessionId, token);
    expect(pod.counts.expiredWhileWorking).toBe(1);
  });

  test('counts neither a grant given back, nor a token that was never granted', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    await pod.release('a', sessionId, token);
    expect(await pod.release('a', sessionId, token)).toEqual({ already: true });
    await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }));
    await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token: 77 }));
    pod.held('a', token);
    await pod.runtime.until(pod.sidecar.reportStale('jobs/a', { token, resource: 'db' }), 100);
    expect(pod.counts.expiredWhileWorking).toBe(0);
  });

  test('also counts after a restart of the sidecar', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a', { request: 'r' });
    await pod.holding('b');
    await pod.acquire('c', { sessionId });
    await pod.jobs.break('a', token, { now: true });
    await pod.runtime.pass(10);
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 0 });
    await pod.restart();
    await pod.runtime.pass(10);
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe('NOT_HELD');
    expect(pod.counts.expiredWhileWorking).toBe(1);
  });
});

describe('a session for one lock', () => {
  test('is named by the answer, renewed by /renew, and ends with its lock', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.acquire('a', { client: 'c', ttlMs: TTL_MS });
    for (let i = 0; i < 5; i++) {
      await pod.runtime.pass(TTL_MS - 500);
      await pod.runtime.until(pod.sidecar.renew('jobs/a', { sessionId, token }), 100);
    }
    expect(await pod.release('a', sessionId, token)).toEqual({ already: false });
    await pod.runtime.pass(10);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 0, held: 0 });
    expect(await pod.release('a', sessionId, token)).toEqual({ already: true });
    expect(pod.store.size).toBe(0);
  });

  test('is renewed by the open call while it waits', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const acquiring = pod.acquiring('a', { ttlMs: TTL_MS, waitMs: 3_600_000 });
    await pod.runtime.pass(20 * TTL_MS);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    await pod.release('a', holder.sessionId, holder.token);
    expect((await pod.runtime.until(acquiring.granted, 100)).token).toBeGreaterThan(holder.token);
  });

  test.each([0, 2_000])('that was not granted (wait %i ms) leaves nothing behind', async (waitMs) => {
    const pod = await Pod.start();
    await pod.holding('a');
    const size = pod.store.size;
    await pod.refusal(pod.acquire('a', { ttlMs: TTL_MS, waitMs }));
    await pod.runtime.pass(10);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 1, waiting: 0 });
    expect(pod.store.size).toBe(size);
  });
});
