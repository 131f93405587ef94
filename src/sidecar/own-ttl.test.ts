/** Without a `ttl_s` of its own an application has, in each namespace, the TTL of that namespace (rules A3, A6). */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const LONG_TTL_MS = 30_000;
/** TTL less margin, rule A1. */
const LONG_LEASE_MS = LONG_TTL_MS - LONG_TTL_MS / 5;
const CALL_MS = 100;

function start(): Promise<Pod> {
  return Pod.start({ aliases: ['jobs', 'deploys'], ttlMsOf: { deploys: LONG_TTL_MS } });
}

function single(pod: Pod, ttlMs?: number) {
  return pod.acquire('deploys/a', { client: 'me', ...(ttlMs !== undefined && { ttlMs }) });
}

describe('a one-lock session', () => {
  test('has the TTL that its answer says, to the end', async () => {
    const pod = await start();
    const { token, leaseTtlMs, deadlineInMs } = await single(pod);
    expect(leaseTtlMs).toBe(LONG_TTL_MS);
    expect(deadlineInMs).toBeGreaterThan(LONG_LEASE_MS - CALL_MS);
    await pod.runtime.pass(LONG_TTL_MS - 2 * CALL_MS);
    expect(await pod.group('deploys').tokenOf('a')).toBe(token);
    expect(pod.sidecar.held('deploys/a', token).held).toBe(true);
    await pod.runtime.pass(3 * CALL_MS);
    expect(pod.sidecar.held('deploys/a', token).held).toBe(false);
    expect(await pod.group('deploys').tokenOf('a')).toBeNull();
  });

  test('a TTL that was asked for is the one it has', async () => {
    const pod = await start();
    const { token, leaseTtlMs } = await single(pod, TTL_MS);
    expect(leaseTtlMs).toBe(TTL_MS);
    await pod.runtime.pass(TTL_MS + CALL_MS);
    expect(await pod.group('deploys').tokenOf('a')).toBeNull();
    expect(pod.sidecar.held('deploys/a', token).held).toBe(false);
  });
});

describe('a session over namespaces of different TTLs', () => {
  async function opened(pod: Pod) {
    return pod.runtime.until(pod.sidecar.openSession({ client: 'me', keepalive: 'app' }), CALL_MS);
  }

  test('is opened with the shortest; a deadline is that of what it has', async () => {
    const pod = await start();
    const { sessionId, ttlMs, keepaliveEveryMs } = await opened(pod);
    expect({ ttlMs, keepaliveEveryMs }).toEqual({ ttlMs: TTL_MS, keepaliveEveryMs: TTL_MS / 5 });
    const keepalive = () => pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), CALL_MS);
    expect((await keepalive()).deadlineInMs).toBeLessThan(TTL_MS);
    await pod.acquire('deploys/a', { sessionId });
    expect((await keepalive()).deadlineInMs).toBeGreaterThan(LONG_LEASE_MS - CALL_MS);
    await pod.acquire('jobs/a', { sessionId });
    expect((await keepalive()).deadlineInMs).toBeLessThan(TTL_MS);
  });

  test('silence ends each part after its own TTL: no deadline that was told is cut short', async () => {
    const pod = await start();
    const { sessionId } = await opened(pod);
    const long = await pod.acquire('deploys/a', { sessionId });
    const toldUntilMs = pod.runtime.clock.monotonicMs() + long.deadlineInMs;
    const short = await pod.acquire('jobs/a', { sessionId });
    const stream = pod.stream(sessionId);
    await pod.runtime.pass(TTL_MS + CALL_MS);
    expect(pod.sidecar.held('jobs/a', short.token).held).toBe(false);
    expect(await pod.group('jobs').tokenOf('a')).toBeNull();
    expect(stream.events()).toEqual(['lost']);
    await pod.runtime.pass(toldUntilMs - pod.runtime.clock.monotonicMs() - 1);
    expect(pod.sidecar.held('deploys/a', long.token).held).toBe(true);
    expect(await pod.group('deploys').tokenOf('a')).toBe(long.token);
    await pod.runtime.pass(LONG_TTL_MS - LONG_LEASE_MS + 2 * CALL_MS);
    expect(await pod.group('deploys').tokenOf('a')).toBeNull();
    expect(stream.events()).toEqual(['lost', 'lost', 'sessionLost']);
  });

  test('what is left goes on when its application speaks again', async () => {
    const pod = await start();
    const { sessionId } = await opened(pod);
    const long = await pod.acquire('deploys/a', { sessionId });
    const short = await pod.acquire('jobs/a', { sessionId });
    await pod.runtime.pass(TTL_MS + CALL_MS);
    await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), CALL_MS);
    await pod.runtime.pass(LONG_TTL_MS - CALL_MS);
    expect(pod.sidecar.held('deploys/a', long.token).held).toBe(true);
    const again = await pod.acquire('jobs/a', { sessionId });
    expect(again.token).toBeGreaterThan(short.token);
  });

  test('keeping to what was told is enough when a more demanding namespace is served later', async () => {
    const pod = await Pod.start({
      aliases: ['deploys', 'jobs'],
      ttlMsOf: { deploys: LONG_TTL_MS, jobs: 5_000 },
    });
    pod.sidecar.removeNamespace('jobs');
    const { sessionId, keepaliveEveryMs } = await opened(pod);
    expect(keepaliveEveryMs).toBe(LONG_TTL_MS / 5);
    pod.addNamespace('jobs');
    await pod.runtime.pass(CALL_MS);
    const { token } = await pod.acquire('jobs/a', { sessionId });
    for (let i = 0; i < 3; i++) {
      await pod.runtime.pass(keepaliveEveryMs);
      expect(pod.sidecar.held('jobs/a', token).held).toBe(true);
      await pod.runtime.until(pod.sidecar.keepaliveSession(sessionId), CALL_MS);
    }
  });

  test('after a restart each part has its own TTL again', async () => {
    const pod = await start();
    const { sessionId } = await opened(pod);
    const long = await pod.acquire('deploys/a', { sessionId });
    const short = await pod.acquire('jobs/a', { sessionId });
    await pod.restart(CALL_MS);
    await pod.runtime.pass(TTL_MS - CALL_MS);
    expect(pod.sidecar.held('jobs/a', short.token).held).toBe(true);
    await pod.runtime.pass(2 * CALL_MS);
    expect(pod.sidecar.held('jobs/a', short.token).held).toBe(false);
    await pod.runtime.pass(LONG_TTL_MS - TTL_MS - 2 * CALL_MS);
    expect(pod.sidecar.held('deploys/a', long.token).held).toBe(true);
    await pod.runtime.pass(3 * CALL_MS);
    expect(pod.sidecar.held('deploys/a', long.token).held).toBe(false);
  });
});
