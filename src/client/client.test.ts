/** Asking for locks on virtual time: keys and lost answers, sessions, giving up, trying again. What is lost: losses.test.ts. */
import { describe, expect, test, vi } from 'vitest';
import { bench, failure, isAcquire, LEASE_MS, losing, refusal } from './fake-transport.fixture.ts';

const NAME = 'jobs/a';
const MINUTE_MS = 60_000;

describe('asking', () => {
  test('an acquire whose answer is lost is asked again under the same key (case C07)', async () => {
    const { runtime, service, client } = bench();
    losing(service, '/acquire', 3);
    const tokens = new Map<unknown, number>();
    service.answer = (call) => {
      if (!isAcquire(call)) return null;
      const token = tokens.get(call.body?.request) ?? 200 + tokens.size;
      tokens.set(call.body?.request, token);
      service.holders.set(NAME, token);
      return { status: 200, body: { token, deadline_in_ms: LEASE_MS } };
    };
    const lock = await runtime.until(client.acquire(NAME), MINUTE_MS);
    expect(lock.token).toBe(200);
    expect(service.sent('POST', '/acquire')).toHaveLength(4);
    expect(tokens.size).toBe(1);
    expect(String([...tokens.keys()][0])).toMatch(/^[0-9a-f]{32}$/);
    await runtime.until(lock.release(), 100);
    expect(service.sent('POST', '/release')[0]?.body).toMatchObject({
      token: 200,
      request: [...tokens.keys()][0],
    });
  });

  test('without anybody there it fails at once; with a wait it goes on until the wait is over', async () => {
    const { runtime, service, client } = bench();
    service.mode = 'refused';
    expect(await runtime.until(failure(client.acquire(NAME)), 1)).toMatchObject({
      code: 'UNAVAILABLE',
      retryable: true,
    });
    const waiting = failure(client.acquire(NAME, { waitMs: MINUTE_MS }));
    expect(await runtime.until(waiting, MINUTE_MS)).toMatchObject({ code: 'UNAVAILABLE' });
    const late = client.acquire(NAME, { waitMs: MINUTE_MS });
    await runtime.pass(20_000);
    service.mode = 'answers';
    expect((await runtime.until(late, 3_000)).held()).toBe(true);
  });

  test('a refusal that passes is waited out as long as the service asks, within the wait', async () => {
    const { runtime, service, client } = bench();
    let refusals = 0;
    service.answer = (call) =>
      isAcquire(call) && refusals++ < 2 ? refusal(503, 'UNAVAILABLE', { retry_after_ms: 4_000 }) : null;
    const lock = await runtime.until(client.acquire(NAME, { waitMs: MINUTE_MS }), MINUTE_MS);
    const times = service.calls.filter(isAcquire).map(({ atMs }) => atMs);
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(4_000);
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(4_000);
    const keys = service.sent('POST', '/acquire').map(({ body }) => body?.request);
    expect(new Set(keys).size).toBe(3);
    expect(lock.held()).toBe(true);
    refusals = 0;
    const short = failure(client.acquire('jobs/b', { waitMs: 3_000 }));
    expect(await runtime.until(short, 10)).toMatchObject({ code: 'UNAVAILABLE', retryAfterMs: 4_000 });
  });

  test('what cannot get better is not repeated', async () => {
    for (const code of ['INVALID', 'QUEUE_FULL', 'QUOTA_EXCEEDED', 'QUARANTINED', 'FORBIDDEN']) {
      const { runtime, service, client } = bench();
      service.answer = (call) => (isAcquire(call) ? refusal(409, code) : null);
      expect(await runtime.until(failure(client.acquire(NAME, { waitMs: MINUTE_MS })), 10)).toMatchObject({
        code,
      });
      expect(service.sent('POST', '/acquire')).toHaveLength(1);
    }
  });

  test('a session that ended while it was unused is replaced without a word', async () => {
    const { runtime, service, client } = bench();
    await runtime.until(
      client.withLock(NAME, {}, () => undefined),
      100,
    );
    let isOld = true;
    service.answer = (call) => (isAcquire(call) && isOld ? refusal(410, 'SESSION_EXPIRED') : null);
    const asked = client.acquire(NAME);
    await runtime.pass(0);
    isOld = false;
    service.tell({ event: 'session_lost', reason: 'it was silent' });
    expect((await runtime.until(asked, 1_000)).held()).toBe(true);
    expect(service.sent('POST', '/sessions')).toHaveLength(2);
  });

  test('calls of one namespace share a session, opened once; another namespace or limit has its own', async () => {
    const { runtime, service, client } = bench();
    service.roundTripMs = 10;
    const asked = ['jobs/a', 'jobs/b', 'jobs/c'].map((name) => client.acquire(name));
    await runtime.until(Promise.all(asked), 100);
    expect(service.sent('POST', '/sessions')).toHaveLength(1);
    await runtime.until(client.acquire('other/a'), 100);
    await runtime.until(client.acquire('jobs/d', { maxHoldMs: 5_000 }), 100);
    const opened = service.sent('POST', '/sessions').map(({ body }) => body);
    expect(opened).toEqual([
      { client: 'test', keepalive: 'both' },
      { client: 'test', keepalive: 'both' },
      { client: 'test', keepalive: 'both', max_hold_ms: 5_000 },
    ]);
  });
});

describe('giving up', () => {
  test('a grant that was on its way is given back: told before, or after', async () => {
    for (const toldMs of [-1, 1]) {
      const { runtime, service, client } = bench();
      await runtime.until(
        client.withLock(NAME, {}, () => undefined),
        100,
      );
      service.mode = 'silent';
      const giveUp = new AbortController();
      const asked = failure(client.acquire(NAME, { waitMs: MINUTE_MS, signal: giveUp.signal }));
      await runtime.pass(10);
      const request = service.sent('POST', '/acquire').at(-1)?.body?.request;
      const grant = (): void => {
        service.holders.set(NAME, 300);
        service.tell({ event: 'granted', name: NAME, token: 300, request, deadline_in_ms: LEASE_MS });
      };
      if (toldMs < 0) grant();
      giveUp.abort('enough');
      service.mode = 'answers';
      expect(await runtime.until(asked, 10)).toMatchObject({ code: 'CANCELLED', cause: 'enough' });
      if (toldMs > 0) grant();
      await runtime.pass(100);
      expect(service.sent('POST', '/release').at(-1)?.body).toMatchObject({ token: 300, request });
      expect(service.holders.has(NAME)).toBe(false);
    }
  });

  test('after a lost answer the service is asked what became of it', async () => {
    const { runtime, service, client } = bench();
    losing(service, '/acquire', 1);
    const giveUp = new AbortController();
    const asked = failure(client.acquire(NAME, { waitMs: MINUTE_MS, signal: giveUp.signal }));
    await runtime.pass(0);
    const { token, request } = {
      token: service.holders.get(NAME),
      request: service.sent('POST', '/acquire')[0]?.body?.request,
    };
    expect(token).toBeDefined();
    giveUp.abort();
    service.answer = (call) =>
      isAcquire(call) && call.body?.request === request
        ? { status: 200, body: { token, deadline_in_ms: LEASE_MS } }
        : null;
    expect(await runtime.until(asked, 10)).toMatchObject({ code: 'CANCELLED' });
    await runtime.pass(1_000);
    expect(service.sent('POST', '/acquire').at(-1)?.body).toMatchObject({ request, wait_ms: 0 });
    expect(service.holders.has(NAME)).toBe(false);
  });

  test('without an event stream the service is asked too; not for what was never sent', async () => {
    const { runtime, service, client } = bench({ keepalive: 'app' });
    await runtime.until(
      client.withLock(NAME, {}, () => undefined),
      100,
    );
    service.breakStreams();
    service.answer = (call) => {
      if (call.path.endsWith('/events')) return refusal(503, 'UNAVAILABLE');
      if (!isAcquire(call)) return null;
      service.holders.set(NAME, 300);
      return { status: 200, body: { token: 300, deadline_in_ms: LEASE_MS } };
    };
    service.roundTripMs = 100;
    service.slowPathEnd = '/acquire';
    const giveUp = new AbortController();
    const asked = failure(client.acquire(NAME, { signal: giveUp.signal }));
    await runtime.pass(75);
    const request = service.sent('POST', '/acquire').at(-1)?.body?.request;
    giveUp.abort();
    expect(await runtime.until(asked, 10)).toMatchObject({ code: 'CANCELLED' });
    await runtime.pass(1_000);
    expect(service.sent('POST', '/release').at(-1)?.body).toMatchObject({ token: 300, request });
    expect(service.holders.has(NAME)).toBe(false);

    service.mode = 'refused';
    const sent = service.sent('POST', '/acquire').length;
    const never = new AbortController();
    const waiting = failure(client.acquire(NAME, { waitMs: MINUTE_MS, signal: never.signal }));
    await runtime.pass(500);
    const tried = service.sent('POST', '/acquire').length;
    expect(tried).toBeGreaterThan(sent);
    never.abort();
    expect(await runtime.until(waiting, 10)).toMatchObject({ code: 'CANCELLED' });
    service.mode = 'answers';
    await runtime.pass(1_000);
    expect(service.sent('POST', '/acquire').length).toBeLessThanOrEqual(tried + 1);
    expect(service.holders.has(NAME)).toBe(false);
  });

  test('several locks under a signal that lives on leave nothing in it, and are given up by it', async () => {
    const { runtime, service, client } = bench();
    const stop = new AbortController();
    const added = vi.spyOn(stop.signal, 'addEventListener');
    const removed = vi.spyOn(stop.signal, 'removeEventListener');
    // What it makes is remembered by its sources for as long as they live.
    const combined = vi.spyOn(AbortSignal, 'any');
    const names = [NAME, 'jobs/second'];
    for (let i = 0; i < 3; i++) {
      await runtime.until(
        client.withLocks(names, { signal: stop.signal }, () => undefined),
        100,
      );
    }
    expect(added.mock.calls.length).toBeGreaterThan(0);
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length);
    expect(combined).not.toHaveBeenCalled();

    service.mode = 'silent';
    const waiting = failure(
      client.withLocks(names, { signal: stop.signal, waitMs: MINUTE_MS }, () => undefined),
    );
    await runtime.pass(10);
    stop.abort('enough');
    expect(await runtime.until(waiting, 10)).toMatchObject({ code: 'CANCELLED', cause: 'enough' });
    const late = failure(client.withLocks(names, { signal: stop.signal }, () => undefined));
    const calls = service.calls.length;
    expect(await runtime.until(late, 10)).toMatchObject({ code: 'CANCELLED', cause: 'enough' });
    expect(service.calls).toHaveLength(calls);
  });

  test('giving up while the session is still being opened is heard at once', async () => {
    const { runtime, service, client } = bench();
    service.mode = 'silent';
    const giveUp = new AbortController();
    const asked = failure(client.acquire(NAME, { waitMs: MINUTE_MS, signal: giveUp.signal }));
    await runtime.pass(10);
    giveUp.abort();
    expect(await runtime.until(asked, 1)).toMatchObject({ code: 'CANCELLED' });
  });
});

describe('trying', () => {
  test('tries as often as asked, with waits below a growing limit, and says null or gets the lock', async () => {
    const { runtime, service, client } = bench();
    service.holders.set(NAME, 1);
    expect(await runtime.until(client.tryLock(NAME), 10)).toBeNull();
    const from = service.calls.length;
    const tried = client.tryLock(NAME, { retry: { tries: 6, baseMs: 100, capMs: 400 } });
    expect(await runtime.until(tried, 2_000)).toBeNull();
    const times = service.calls
      .slice(from)
      .filter(isAcquire)
      .map(({ atMs }) => atMs);
    expect(times).toHaveLength(6);
    const waits = times.slice(1).map((time, index) => time - times[index]!);
    for (const [index, waitMs] of waits.entries())
      expect(waitMs).toBeLessThanOrEqual(Math.min(400, 100 * 2 ** index) + 1);
    const late = client.tryLock(NAME, { retry: { tries: 100, capMs: 200 } });
    await runtime.pass(500);
    service.holders.clear();
    expect((await runtime.until(late, 500))?.held()).toBe(true);
  });

  test('a refusal of another kind is thrown after the last try, and at once if it cannot get better', async () => {
    const { runtime, service, client } = bench();
    service.answer = (call) =>
      isAcquire(call) ? refusal(429, 'RATE_LIMITED', { retry_after_ms: 1_000 }) : null;
    const from = runtime.nowMs;
    const tried = failure(client.tryLock(NAME, { retry: { tries: 3 } }));
    expect(await runtime.until(tried, 10_000)).toMatchObject({ code: 'RATE_LIMITED' });
    expect(runtime.nowMs - from).toBeGreaterThanOrEqual(2_000);
    service.answer = (call) => (isAcquire(call) ? refusal(409, 'QUARANTINED') : null);
    expect(await runtime.until(failure(client.tryLock(NAME, { retry: { tries: 3 } })), 10)).toMatchObject({
      code: 'QUARANTINED',
    });
  });
});

describe('options and ends', () => {
  test('options of withLock and withLocks may be left out', async () => {
    const { runtime, client } = bench();
    const one = client.withLock(NAME, ({ token }) => token);
    expect(await runtime.until(one, 100)).toBeGreaterThan(100);
    const loose = undefined as unknown as object;
    const undefinedOptions = client.withLock(NAME, loose, ({ name }) => name);
    expect(await runtime.until(undefinedOptions, 100)).toBe(NAME);
    const both = client.withLocks([NAME, 'jobs/b'], ({ tokens }) => [...tokens.keys()]);
    expect(await runtime.until(both, 100)).toEqual([NAME, 'jobs/b']);
  });

  test('one that is closed just after it was asked for a lock opens no session any more', async () => {
    const { client, runtime, service } = bench();
    await runtime.until(
      client.withLock('jobs/a', () => undefined),
      1_000,
    );
    const asked = failure(client.acquire('jobs/b'));
    await runtime.until(client.close(), 20_000);
    expect(await asked).toMatchObject({ code: 'CANCELLED', retryable: false });
    await runtime.pass(60_000);
    expect(service.sent('POST', '/v1/sessions')).toHaveLength(1);
    expect(service.streams).toBe(0);
  });

  test('a closed client says so, whatever it is asked for, and sends nothing', async () => {
    const { runtime, service, client } = bench();
    service.mode = 'silent';
    const waiting = failure(client.acquire(NAME, { waitMs: MINUTE_MS }));
    await runtime.pass(10);
    const closing = client.close();
    expect(await runtime.until(waiting, 10)).toMatchObject({
      code: 'CANCELLED',
      message: 'the client is closed; nothing is held',
      retryable: false,
    });
    await runtime.until(closing, MINUTE_MS);
    const sent = service.calls.length;
    const asked = [
      client.acquire(NAME),
      client.tryLock(NAME),
      client.withLock(NAME, () => undefined),
      client.withLocks([NAME], () => undefined),
      client.describe(NAME),
      client.list('jobs/').next(),
      client.reportStale(NAME, 1, 'a table'),
    ];
    for (const failed of asked.map(failure)) {
      expect(await runtime.until(failed, 10)).toMatchObject({
        code: 'CANCELLED',
        message: expect.stringMatching(/^the client is closed/),
        retryable: false,
      });
    }
    expect(service.calls).toHaveLength(sent);
  });
});
