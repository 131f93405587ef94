/** Reads through the line to a group, and what an error says about who has the lock (case C12). */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';

const ALIASES = ['jobs', 'jobs-b', 'payouts'];

async function full() {
  const pod = await Pod.start({ aliases: ALIASES });
  const sessionId = await pod.open({ keepalive: 'stream' });
  pod.stream(sessionId);
  for (const name of ['jobs/a', 'jobs/b/1', 'jobs/b/2', 'jobs/ü', 'jobs-b/a', 'payouts/b', 'payouts/a']) {
    await pod.acquire(name, { sessionId });
  }
  return pod;
}

async function names(pod: Pod, options: { prefix: string; limit: number; after?: string }) {
  const { locks, next } = await pod.runtime.until(pod.sidecar.listLocks(options), 100);
  return { names: locks.map(({ name }) => name), next };
}

describe('lists of locks', () => {
  test('go over the namespaces in order of alias, then name, under full names', async () => {
    const pod = await full();
    expect(await names(pod, { prefix: '', limit: 100 })).toEqual({
      names: ['jobs/a', 'jobs/b/1', 'jobs/b/2', 'jobs/ü', 'jobs-b/a', 'payouts/a', 'payouts/b'],
      next: undefined,
    });
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('in pages of %i give every lock once', async (limit) => {
    const pod = await full();
    const all: string[] = [];
    let after: string | undefined;
    for (let page = 0; page < 20; page++) {
      const got = await names(pod, { prefix: '', limit, ...(after === undefined ? {} : { after }) });
      expect(got.names.length).toBeLessThanOrEqual(limit);
      all.push(...got.names);
      after = got.next;
      if (after === undefined) break;
    }
    expect(after).toBeUndefined();
    expect(all).toEqual((await names(pod, { prefix: '', limit: 100 })).names);
  });

  test.each([
    ['jobs/', ['jobs/a', 'jobs/b/1', 'jobs/b/2', 'jobs/ü']],
    ['jobs/b', ['jobs/b/1', 'jobs/b/2']],
    ['jobs', ['jobs/a', 'jobs/b/1', 'jobs/b/2', 'jobs/ü', 'jobs-b/a']],
    ['payouts/a', ['payouts/a']],
    ['payouts/x', []],
  ])('with prefix %s', async (prefix, expected) => {
    const pod = await full();
    expect((await names(pod, { prefix, limit: 100 })).names).toEqual(expected);
    expect((await names(pod, { prefix, limit: 100, after: 'jobs/b/1' })).names).toEqual(
      expected.filter((name) => !['jobs/a', 'jobs/b/1'].includes(name)),
    );
  });

  test.each([
    ['nope/', 'nope'],
    ['job/a', 'job'],
    ['nope', 'nope'],
  ])('of an alias that is not served, %s, are refused and name those that are', async (prefix, alias) => {
    const pod = await full();
    const error = await pod.refusal(pod.sidecar.listLocks({ prefix, limit: 100 }));
    expect(error).toMatchObject({ code: 'NAMESPACE_NOT_FOUND', details: { field: 'prefix' } });
    expect(error.message).toBe(`no namespace is served as "${alias}"; served here: ${ALIASES.join(', ')}`);
  });

  test('a namespace that does not answer is UNAVAILABLE; one that is not asked does not matter', async () => {
    const pod = await full();
    pod.group('payouts').line.toClient = 'lost';
    expect((await pod.refusal(pod.sidecar.listLocks({ prefix: '', limit: 100 }))).code).toBe('UNAVAILABLE');
    expect((await names(pod, { prefix: 'jobs/b', limit: 100 })).names).toHaveLength(2);
  });
});

describe('one lock', () => {
  test('a free one has no holder; a held one shows holder and waiters under its full name', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a', { owner: 'me', purpose: 'nightly' });
    pod.acquiring('a', { sessionId, waitMs: 60_000, owner: 'next' });
    await pod.runtime.pass(100);
    const held = await pod.runtime.until(pod.sidecar.getLock('jobs/a'), 100);
    expect(held).toMatchObject({
      name: 'jobs/a',
      holders: [{ token, owner: 'me', purpose: 'nightly', client: 'app', heldForMs: 100 }],
      waiters: [{ owner: 'next', waitedMs: 100 }],
      waiterCount: 1,
    });
    expect(await pod.runtime.until(pod.sidecar.getLock('jobs/free'), 100)).toMatchObject({
      name: 'jobs/free',
      holders: [],
      waiterCount: 0,
    });
  });

  test('the limit of operations refuses reads with the time to come back', async () => {
    const pod = await Pod.start({ config: { operationsPerSecondPerClient: 1 } });
    await pod.runtime.until(pod.sidecar.getLock('jobs/a'), 100);
    const error = await pod.refusal(pod.sidecar.getLock('jobs/a'));
    expect(error).toMatchObject({ code: 'RATE_LIMITED', details: { limit: 1 } });
    expect(error.details.retry_after_ms).toBeGreaterThan(0);
  });
});

describe('case C12: what is refused names lock, holder and token', () => {
  test('a token that was overtaken is STALE_TOKEN, one that holds nothing NOT_HELD', async () => {
    const pod = await Pod.start();
    const first = await pod.holding('a');
    await pod.jobs.break('a', first.token, { now: true });
    await pod.runtime.pass(10);
    const free = await pod.refusal(pod.sidecar.release('jobs/a', first));
    expect(free).toMatchObject({
      code: 'NOT_HELD',
      details: { name: 'jobs/a', token: first.token, holder: null },
    });
    const second = await pod.holding('a');
    for (const call of ['renew', 'release'] as const) {
      expect(await pod.refusal(pod.sidecar[call]('jobs/a', first))).toMatchObject({
        code: 'STALE_TOKEN',
        details: { name: 'jobs/a', token: first.token, holder: { token: second.token } },
      });
    }
    expect(await pod.jobs.tokenOf('a')).toBe(second.token);
  });

  test('HELD and WAIT_TIMEOUT say who has it, in which session one asked', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a', { owner: 'me' });
    const sessionId = await pod.open();
    for (const waitMs of [0, 500]) {
      expect(await pod.refusal(pod.acquire('a', { sessionId, waitMs }))).toMatchObject({
        code: waitMs === 0 ? 'HELD' : 'WAIT_TIMEOUT',
        details: { name: 'jobs/a', session_id: sessionId, holder: { token: holder.token, owner: 'me' } },
      });
    }
  });

  test('a session that is gone is SESSION_EXPIRED, and the error says who has the lock now', async () => {
    const pod = await Pod.start();
    const { sessionId, token, keeping } = await pod.holding('a');
    keeping.stop();
    await pod.runtime.pass(2 * TTL_MS);
    const next = await pod.holding('a');
    expect(await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).toMatchObject({
      code: 'SESSION_EXPIRED',
      details: { session_id: sessionId, holder: { token: next.token } },
    });
  });

  test('another session’s token is not one’s own: nothing changes', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    const own = await pod.acquire('b', { sessionId });
    const stolen = { sessionId, token: holder.token };
    expect((await pod.refusal(pod.sidecar.release('jobs/a', stolen))).code).toBe('NOT_HELD');
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', stolen))).code).toBe('NOT_HELD');
    expect((await pod.refusal(pod.sidecar.release('jobs/b', holder))).code).toBe('STALE_TOKEN');
    expect([await pod.jobs.tokenOf('a'), await pod.jobs.tokenOf('b')]).toEqual([holder.token, own.token]);
  });
});

describe('names', () => {
  test.each(['', 'a', '/a', 'jobs', 'jobs/'])('%j is no lock of ours: INVALID', async (name) => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('x');
    const error = await pod.refusal(pod.sidecar.getLock(name));
    expect(error).toMatchObject({ code: 'INVALID', details: { field: 'name' } });
    expect(sessionId).not.toBe('');
  });

  test('an alias that is not served is NAMESPACE_NOT_FOUND, and the error lists those that are', async () => {
    const pod = await Pod.start({ aliases: ALIASES });
    const error = await pod.refusal(pod.sidecar.getLock('other/a'));
    expect(error.code).toBe('NAMESPACE_NOT_FOUND');
    expect(error.message).toContain('jobs, jobs-b, payouts');
  });
});

test('whoever is no consumer any more sees no locks, and is still told that a grant is over', async () => {
  const pod = await Pod.start({ aliases: ['jobs'] });
  const sessionId = await pod.open({ keepalive: 'stream' });
  pod.stream(sessionId);
  const { token } = await pod.acquire('jobs/a', { sessionId });
  const { replica, config } = pod.group('jobs');
  await pod.runtime.until(replica.configure({ ...config, consumers: [] }), 1_000);
  const refusal = async (asking: Promise<unknown>) => (await pod.refusal(asking)).code;
  expect(await refusal(pod.sidecar.getLock('jobs/a'))).toBe('FORBIDDEN');
  expect(await refusal(pod.sidecar.listLocks({ prefix: '', limit: 1 }))).toBe('FORBIDDEN');
  expect(await refusal(pod.sidecar.reportStale('jobs/a', { token, resource: 'db' }))).toBe('FORBIDDEN');
  await pod.runtime.until(pod.sidecar.release('jobs/a', { sessionId, token }), 1_000);
  expect(await refusal(pod.sidecar.release('jobs/b', { sessionId, token }))).toBe('NOT_HELD');
});
