/** What an application hears on its event stream, and in which order. */
import { describe, expect, test } from 'vitest';
import { LEASE_MS, Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const ALIASES = ['jobs', 'payouts'];

describe('lines of the stream', () => {
  test('queued with its place, granted with its deadline, and the request of each', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open({ keepalive: 'stream' });
    const { lines } = pod.stream(sessionId);
    const acquiring = pod.acquiring('a', { sessionId, waitMs: 60_000, request: 'r' });
    await pod.runtime.pass(10);
    await pod.release('a', holder.sessionId, holder.token);
    const { token } = await pod.runtime.until(acquiring.granted, 100);
    expect(lines).toMatchObject([
      { event: 'queued', name: 'jobs/a', position: 1, request: 'r' },
      { event: 'granted', name: 'jobs/a', token, request: 'r' },
    ]);
    const granted = lines[1];
    expect(granted?.event === 'granted' && granted.deadlineInMs).toBeGreaterThan(LEASE_MS - 1_000);
  });

  test('jeopardy at TTL/2 and restored with the next acknowledgement', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(TTL_MS / 5 + 300);
    const acknowledged = pod.jobs.line.keepalives.at(-1)?.atMs ?? 0;
    pod.jobs.line.both = 'held';
    await pod.runtime.pass(TTL_MS / 2);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ event: 'jeopardy' });
    expect(lines[0]?.atMs).toBeCloseTo(acknowledged + TTL_MS / 2, -1);
    pod.jobs.line.both = 'flows';
    await pod.runtime.pass(TTL_MS / 5 + 300);
    expect(lines.map(({ event }) => event)).toEqual(['jeopardy', 'restored']);
    expect(pod.held('a', token).held).toBe(true);
    await pod.runtime.pass(TTL_MS);
    expect(lines).toHaveLength(2);
    expect(pod.counts).toMatchObject({ jeopardy: 1, lost: 0 });
  });

  test('restored never follows a passed deadline', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open({ keepalive: 'stream' });
    const { lines } = pod.stream(sessionId);
    await pod.acquire('jobs/a', { sessionId });
    await pod.acquire('payouts/a', { sessionId });
    // The group hears us all the while, so the session is still there when its answers come through again.
    pod.group('payouts').line.toClient = 'lost';
    await pod.runtime.pass(TTL_MS);
    expect(await pod.group('payouts').tokenOf('a')).not.toBeNull();
    pod.group('payouts').line.toClient = 'flows';
    await pod.runtime.pass(TTL_MS);
    expect(lines.map(({ event }) => event)).toEqual(['granted', 'granted', 'jeopardy', 'lost']);
    expect(await pod.group('payouts').tokenOf('a')).toBeNull();
  });

  test('restored follows a suspend, once the group has acknowledged', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    const stream = pod.stream(sessionId);
    pod.runtime.stepWall(60_000);
    await pod.runtime.pass(TTL_MS / 5 + 300);
    expect(stream.events()).toEqual(['restored']);
    await pod.runtime.pass(TTL_MS);
    expect(stream.events()).toEqual(['restored']);
  });

  test('after the last word there is nothing more', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    await pod.holding('b');
    const waiting = pod.acquiring('b', { sessionId, waitMs: 60_000 });
    await pod.runtime.pass(10);
    const stream = pod.stream(sessionId);
    const closing = pod.sidecar.closeSession(sessionId);
    await pod.runtime.until(closing, 100);
    expect((await pod.refusal(waiting.granted)).code).toBe('SESSION_EXPIRED');
    await pod.runtime.pass(2 * TTL_MS);
    expect(stream.events()).toEqual(['sessionLost']);
    stream.close();
  });

  test('a namespace that is not served any more: its grants are lost once, and then it is quiet', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const sessionId = await pod.open({ keepalive: 'stream' });
    const stream = pod.stream(sessionId);
    await pod.acquire('jobs/a', { sessionId });
    const kept = await pod.acquire('payouts/a', { sessionId });
    const holder = await pod.holding('jobs/b');
    const waiting = pod.acquiring('jobs/b', { sessionId, waitMs: 60_000 });
    await pod.runtime.pass(10);
    pod.sidecar.removeNamespace('jobs');
    expect((await pod.refusal(waiting.granted)).code).toBe('SESSION_EXPIRED');
    expect((await pod.refusal(pod.acquire('jobs/c', { sessionId }))).code).toBe('NAMESPACE_NOT_FOUND');
    await pod.runtime.pass(2 * TTL_MS);
    expect(stream.events()).toEqual(['granted', 'granted', 'queued', 'lost']);
    expect(pod.sidecar.held('payouts/a', kept.token).held).toBe(true);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(holder.sessionId))).code).toBe('SESSION_EXPIRED');
    expect(pod.group('jobs').line.streams).toBe(0);
    pod.addNamespace('jobs');
    expect((await pod.acquire('jobs/d', { sessionId })).token).toBeGreaterThan(0);
  });
});
