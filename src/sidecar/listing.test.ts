/** What a session has is listed again after every break, and what is not listed is over: rule S3. */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const HOUR_MS = 3_600_000;

/** A pod whose lock `a` is held by one session, and another session that is kept alive. */
async function contended() {
  const pod = await Pod.start();
  const holder = await pod.holding('a');
  const sessionId = await pod.open();
  pod.keepAlive(sessionId);
  await pod.runtime.pass(10);
  return { pod, holder, sessionId };
}

describe('rule S3: what happened while nobody could be told', () => {
  test('a wait that was granted is granted', async () => {
    const { pod, holder, sessionId } = await contended();
    const acquiring = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.isDown = true;
    pod.jobs.line.break();
    await pod.jobs.break('a', holder.token, { now: true });
    await pod.runtime.pass(1_000);
    pod.jobs.line.isDown = false;
    const granted = await pod.runtime.until(acquiring.granted, 2_000);
    expect(await pod.jobs.tokenOf('a')).toBe(granted.token);
  });

  test('a wait that was refused meanwhile ends, long before its own limit', async () => {
    const { pod, sessionId } = await contended();
    const acquiring = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.isDown = true;
    pod.jobs.line.break();
    const quarantine = { type: 'quarantine', name: 'a', reason: 'test' } as const;
    await pod.runtime.until(pod.jobs.replica.submit(quarantine), 100);
    await pod.runtime.pass(1_000);
    pod.jobs.line.isDown = false;
    expect((await pod.refusal(acquiring.granted, 3_000)).code).toBe('QUARANTINED');
    expect((await pod.acquire('c', { sessionId })).token).toBeGreaterThan(0);
  });

  test('a wait that was granted and taken back meanwhile ends too', async () => {
    const { pod, holder, sessionId } = await contended();
    const acquiring = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.isDown = true;
    pod.jobs.line.break();
    await pod.jobs.break('a', holder.token, { now: true });
    const token = await pod.jobs.tokenOf('a');
    await pod.jobs.break('a', token ?? 0, { now: true });
    await pod.runtime.pass(1_000);
    pod.jobs.line.isDown = false;
    expect((await pod.refusal(acquiring.granted, 3_000)).code).toBe('CANCELLED');
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a wait that goes on keeps its place', async () => {
    const { pod, holder, sessionId } = await contended();
    const first = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    const other = await pod.open();
    pod.keepAlive(other);
    const second = pod.acquiring('a', { sessionId: other, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    for (let i = 0; i < 3; i++) {
      pod.jobs.line.break();
      await pod.runtime.pass(1_000);
    }
    expect((await pod.jobs.lock('a')).waiterCount).toBe(2);
    await pod.release('a', holder.sessionId, holder.token);
    await pod.runtime.pass(10);
    expect([first.outcome.value, second.outcome.value]).toEqual(['granted', null]);
  });

  test('a grant that the group does not know any more is lost, and told once', async () => {
    const { pod, holder } = await contended();
    const { lines } = pod.stream(holder.sessionId);
    pod.jobs.line.isDown = true;
    pod.jobs.line.break();
    await pod.jobs.break('a', holder.token, { now: true });
    expect(pod.held('a', holder.token).held).toBe(true);
    pod.jobs.line.isDown = false;
    await pod.runtime.pass(1_500);
    expect(pod.held('a', holder.token).held).toBe(false);
    expect(lines.filter(({ event }) => event === 'lost')).toHaveLength(1);
    expect(lines.some(({ event }) => event === 'sessionLost')).toBe(false);
  });

  test('a difference in count or digest lists again: twice seen, then one attach', async () => {
    const { pod, holder } = await contended();
    // The notice of the loss gets lost although its stream stays: only count and digest tell.
    pod.jobs.line.toClient = 'lost';
    await pod.jobs.break('a', holder.token, { now: true });
    await pod.runtime.pass(1);
    pod.jobs.line.toClient = 'flows';
    const attaches = pod.jobs.line.requests('attachWithSecret').length;
    await pod.runtime.pass((3 * TTL_MS) / 5);
    expect(pod.held('a', holder.token).held).toBe(false);
    expect(pod.jobs.line.requests('attachWithSecret')).toHaveLength(attaches + 1);
    expect(pod.runtime.logged).toContain('grants differ: attaching again');
  });

  test('a wait whose grant was told to nobody is found by the same difference', async () => {
    const { pod, holder, sessionId } = await contended();
    const waiting = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.toClient = 'lost';
    await pod.jobs.break('a', holder.token, { now: true });
    await pod.runtime.pass(1);
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass((3 * TTL_MS) / 5);
    expect(waiting.outcome.value).toBe('granted');
    expect(await pod.jobs.tokenOf('a')).toBe((await waiting.granted).token);
  });
});
