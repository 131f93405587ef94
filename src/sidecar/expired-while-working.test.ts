/**
 * `leasehold_lease_expired_while_working_total`: a grant was lost and its application worked on. There are three ways to
 * see that (it still held its stream, it sent a call with the token, it reported a rejection for it); however many of them
 * are seen, and over a restart of the sidecar, a grant counts once. Each way alone: envelope.test.ts.
 */
import { describe, expect, test } from 'vitest';
import { Pod } from '../../test/support/virtual/pod.ts';

const OWN_TTL_MS = 15_000;

/** A session that goes on, after one of its two grants was taken away; `request`: whether the lost one had a retry key. */
async function lostInLivingSession(pod: Pod, request: string | undefined) {
  const { sessionId, token } = await pod.holding('a', { ...(request !== undefined && { request }) });
  const other = await pod.acquire('b', { sessionId });
  await pod.jobs.break('a', token, { now: true });
  await pod.runtime.pass(10);
  expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 0 });
  return { sessionId, token, other };
}

function report(pod: Pod, token: number): Promise<void> {
  return pod.runtime.until(pod.sidecar.reportStale('jobs/a', { token, resource: 'db' }), 1_000);
}

describe('a lost grant counts once', () => {
  test('whose stream was open, whose token came in calls, and whose rejection was reported', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    pod.stream(sessionId);
    pod.jobs.line.both = 'lost';
    await pod.runtime.pass(OWN_TTL_MS);
    pod.jobs.line.both = 'flows';
    await pod.runtime.pass(OWN_TTL_MS);
    expect(pod.held('a', token).held).toBe(false);
    await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }));
    await pod.refusal(pod.sidecar.release('jobs/a', { sessionId, token }));
    await report(pod, token);
    expect(pod.counts).toMatchObject({ lost: 1, expiredWhileWorking: 1 });
  });

  test('each of several', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    const other = await pod.acquire('b', { sessionId });
    pod.stream(sessionId);
    pod.jobs.line.both = 'lost';
    await pod.runtime.pass(OWN_TTL_MS);
    expect(pod.counts).toMatchObject({ lost: 2, expiredWhileWorking: 2 });
    expect([pod.held('a', token).held, pod.held('b', other.token).held]).toEqual([false, false]);
    expect(pod.counts.expiredWhileWorking).toBe(2);
  });
});

describe.each([
  ['without a request', undefined],
  ['with a request', 'r'],
])('%s', (_what, request) => {
  test('a loss of the earlier life counts after a restart of the sidecar', async () => {
    const pod = await Pod.start();
    const { sessionId, token, other } = await lostInLivingSession(pod, request);
    await pod.restart();
    await pod.runtime.pass(10);
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe('NOT_HELD');
    expect(pod.counts.expiredWhileWorking).toBe(1);
    await report(pod, token);
    expect(pod.counts.expiredWhileWorking).toBe(1);
    expect(pod.held('b', other.token).held).toBe(true);
  });

  test('one that was counted before the restart does not count again', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await lostInLivingSession(pod, request);
    await report(pod, token);
    expect(pod.counts.expiredWhileWorking).toBe(1);
    await pod.restart();
    await pod.runtime.pass(10);
    await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }));
    await report(pod, token);
    expect(pod.counts.expiredWhileWorking).toBe(1);
  });

  test('nothing is kept of it when its session is over', async () => {
    const pod = await Pod.start();
    const { sessionId } = await lostInLivingSession(pod, request);
    await pod.runtime.until(pod.sidecar.closeSession(sessionId), 1_000);
    expect(pod.store.size).toBe(0);
  });
});
