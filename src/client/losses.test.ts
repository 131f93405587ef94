/** What a holder learns, and when, on virtual time: deadlines, doubt, streams that break; and what giving back leaves. */
import { describe, expect, test } from 'vitest';
import {
  bench,
  failure,
  isAcquire,
  KEEPALIVE_MS,
  LEASE_MS,
  losing,
  refusal,
} from './fake-transport.fixture.ts';

const NAME = 'jobs/a';
const MINUTE_MS = 60_000;
const IDLE_MS = 10_000;

describe('the deadline', () => {
  test('counts from the moment the last answered keepalive was sent, and is final', async () => {
    const { runtime, service, client } = bench();
    service.roundTripMs = 800;
    const lock = await runtime.until(client.acquire(NAME), 10_000);
    await runtime.pass(10 * KEEPALIVE_MS + 1_234);
    const keepalives = service.answered.filter(({ path }) => path.endsWith('/keepalive'));
    expect(keepalives.length).toBeGreaterThanOrEqual(9);
    const lastSentMs = keepalives.at(-1)!.atMs;
    service.mode = 'silent';
    let firedMs = 0;
    lock.signal.addEventListener('abort', () => {
      firedMs = runtime.nowMs;
    });
    await runtime.pass(lastSentMs + LEASE_MS - 1 - runtime.nowMs);
    expect(lock.held()).toBe(true);
    await runtime.pass(2);
    expect(firedMs).toBeCloseTo(lastSentMs + LEASE_MS, 0);
    expect(lock.signal.reason).toMatchObject({ how: 'deadline' });
    service.mode = 'answers';
    await runtime.pass(MINUTE_MS);
    expect(lock.held()).toBe(false);
    expect(await failure(lock.release())).toBe(lock.signal.reason);
  });

  test('a process that stood still does not believe in it, though no timer has fired', async () => {
    const { runtime, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    runtime.stall(LEASE_MS + 1);
    expect(lock.signal.aborted).toBe(false);
    expect(lock.held()).toBe(false);
    expect(lock.remainingMs()).toBe(0);
    expect(await runtime.until(failure(lock.release()), 10)).toMatchObject({ how: 'deadline' });
    expect(lock.signal.aborted).toBe(true);
  });

  test('given back just after it passed, it is given up for certain: the service may count it still', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    runtime.stall(LEASE_MS + 1);
    await runtime.until(failure(lock.release()), 10);
    await runtime.pass(10);
    expect(service.holders.size).toBe(0);
    const again = await runtime.until(client.acquire(NAME), 1_000);
    expect(again.held()).toBe(true);
  });

  test('one that passed while the process stood still is final, though a keepalive is answered first', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    const answered = Promise.withResolvers<void>();
    const call = service.call.bind(service);
    service.call = async (given) => {
      const answer = await call(given);
      if (given.path.endsWith('/keepalive')) await answered.promise;
      return answer;
    };
    await runtime.pass(KEEPALIVE_MS + 10);
    runtime.stall(LEASE_MS - KEEPALIVE_MS);
    expect(lock.held()).toBe(false);
    // It covers the time from its sending on, and the timer has not fired yet.
    answered.resolve();
    await new Promise(setImmediate);
    expect(lock.held()).toBe(false);
    expect(lock.signal.reason).toMatchObject({ how: 'deadline' });
  });

  test('a grant whose answer lay unread is believed in only after the service was asked again', async () => {
    const { runtime, service, client } = bench();
    service.slowPathEnd = '/acquire';
    service.roundTripMs = LEASE_MS;
    let isAsked = false;
    service.answer = (call) => {
      if (call.path.endsWith('/keepalive')) return refusal(503, 'UNAVAILABLE');
      isAsked ||= call.path.endsWith('/renew');
      return call.path.endsWith('/renew') ? refusal(410, 'NOT_HELD') : null;
    };
    const failed = await runtime.until(failure(client.acquire(NAME, { waitMs: MINUTE_MS })), 3 * MINUTE_MS);
    expect(isAsked).toBe(true);
    expect(failed).toMatchObject({ code: 'NOT_HELD' });
  });

  test('a machine that slept does not believe in its locks until they are confirmed (rule A2)', async () => {
    const { runtime, service, client } = bench();
    const [kept, gone] = await runtime.until(
      Promise.all([client.acquire(NAME), client.acquire('jobs/b')]),
      100,
    );
    runtime.stepWall(MINUTE_MS);
    service.holders.delete('jobs/b');
    expect([kept.held(), gone.held()]).toEqual([false, false]);
    expect(kept.signal.aborted).toBe(false);
    await runtime.pass(KEEPALIVE_MS + 10);
    expect([kept.held(), gone.held()]).toEqual([true, false]);
    expect(gone.signal.reason).toMatchObject({ how: 'lost' });
    runtime.stepWall(-MINUTE_MS);
    expect(kept.held()).toBe(true);
  });

  test('waiting costs nothing while nothing happens (case E02: a day of it fires no timer early)', async () => {
    const { runtime, service, client } = bench();
    await runtime.until(
      client.withLock(NAME, {}, () => undefined),
      100,
    );
    service.answer = (call) => (isAcquire(call) ? refusal(409, 'HELD') : null);
    const before = service.calls.length;
    const asked = failure(client.tryLock(NAME, { retry: { tries: 3, baseMs: 2 ** 40, capMs: 2 ** 41 } }));
    await runtime.pass(IDLE_MS);
    expect(service.calls.length - before).toBeLessThan(10);
    await runtime.until(client.close(), 10_000);
    expect(await runtime.until(asked, 10)).toMatchObject({ code: 'CANCELLED' });
  });
});

describe('the event stream', () => {
  test('a broken one is in doubt: nothing is believed in, and after a second it is lost', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    service.mode = 'silent';
    service.breakStreams();
    await runtime.pass(0);
    expect([lock.held(), lock.signal.aborted]).toEqual([false, false]);
    await runtime.pass(990);
    expect(lock.signal.aborted).toBe(false);
    await runtime.pass(20);
    expect(lock.signal.reason).toMatchObject({ how: 'disconnected' });
  });

  test('a sidecar that is down is no doubt: held until the deadline, and on when it is back', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    service.mode = 'refused';
    service.breakStreams();
    await runtime.pass(LEASE_MS - 2_000);
    expect(lock.held()).toBe(true);
    service.mode = 'answers';
    await runtime.pass(1_000);
    expect(service.streams).toBe(1);
    expect(service.sent('POST', '/renew')).toHaveLength(1);
    await runtime.pass(MINUTE_MS);
    expect(lock.held()).toBe(true);
  });

  test('what is not held any more when it is back is lost', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    service.holders.clear();
    service.breakStreams();
    await runtime.pass(500);
    expect(lock.signal.reason).toMatchObject({ how: 'lost' });
  });

  test('a session that is unknown by then is over', async () => {
    const { runtime, service, client } = bench();
    const locks = await runtime.until(Promise.all([client.acquire(NAME), client.acquire('jobs/b')]), 100);
    service.knowsSessions = false;
    service.breakStreams();
    await runtime.pass(500);
    expect(locks.map(({ signal }) => signal.reason?.how)).toEqual(['session', 'session']);
    service.knowsSessions = true;
    service.holders.clear();
    expect((await runtime.until(client.acquire(NAME), 100)).held()).toBe(true);
  });

  test('with keepalive `app` it is opened again, and nothing is in doubt', async () => {
    const { runtime, service, client } = bench({ keepalive: 'app' });
    const lock = await runtime.until(client.acquire(NAME), 100);
    service.breakStreams();
    await runtime.pass(0);
    expect(lock.held()).toBe(true);
    await runtime.pass(500);
    expect(service.streams).toBe(1);
  });

  test('the end of a grant that is told before the grant itself is not forgotten', async () => {
    const { runtime, service, client } = bench();
    await runtime.until(
      client.withLock(NAME, {}, () => undefined),
      100,
    );
    service.roundTripMs = 100;
    const asked = failure(client.acquire(NAME));
    await runtime.pass(60);
    service.tell({ event: 'lost', name: NAME, token: service.holders.get(NAME), reason: 'broken' });
    expect(await runtime.until(asked, 100)).toMatchObject({ code: 'NOT_HELD', how: 'lost' });
  });

  test('lines that make no sense, or are of a later version, change nothing', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    for (const line of [
      {},
      { event: 'lost' },
      { event: 'lost', token: 1 },
      { event: 'new', token: lock.token },
      { event: 'granted', token: '7' },
    ])
      service.tell(line);
    expect(lock.held()).toBe(true);
  });
});

describe('giving back', () => {
  test('a release goes on until it is certain; its caller waits five seconds (case C11)', async () => {
    const { runtime, service, client } = bench();
    const lock = await runtime.until(client.acquire(NAME), 100);
    let isBroken = true;
    service.answer = (call) =>
      call.path.endsWith('/release') && isBroken ? refusal(503, 'UNAVAILABLE') : null;
    const released = failure(lock.release());
    expect(lock.held()).toBe(false);
    expect(await runtime.until(released, 5_001)).toMatchObject({ code: 'UNAVAILABLE' });
    await runtime.pass(IDLE_MS / 2);
    isBroken = false;
    await runtime.pass(1_000);
    expect(service.holders.has(NAME)).toBe(false);
  });

  test('a release that was lost on its way back is no loss of the lock', async () => {
    const { runtime, service, client } = bench();
    losing(service, '/release', 1);
    expect(
      await runtime.until(
        client.withLock(NAME, {}, () => 'done'),
        5_000,
      ),
    ).toBe('done');
    expect(service.sent('POST', '/release')).toHaveLength(2);
  });

  test('work that ends normally although its lock was lost fails, whoever notices it', async () => {
    const { runtime, service, client } = bench();
    const told = client.withLock(NAME, {}, ({ token }) =>
      service.tell({ event: 'lost', token, reason: 'gone' }),
    );
    expect(await runtime.until(failure(told), 100)).toMatchObject({ name: 'LockLostError', how: 'lost' });
    service.holders.clear();
    const found = client.withLock(NAME, {}, () => service.holders.clear());
    expect(await runtime.until(failure(found), 100)).toMatchObject({ name: 'LockLostError', how: 'lost' });
    const own = new Error('mine');
    const both = client.withLock(NAME, {}, ({ token }) => {
      service.tell({ event: 'lost', token, reason: 'gone' });
      throw own;
    });
    expect(await runtime.until(failure(both), 100)).toBe(own);
  });

  test('case J04: a lock that is being taken away is given up only when its work has ended', async () => {
    const { runtime, service, client } = bench();
    let isAborted = false;
    const working = client.withLock(NAME, {}, async ({ token, signal }) => {
      service.tell({ event: 'revoking', name: NAME, token, cause: 'break', deadline_in_ms: 1_000 });
      isAborted = signal.aborted;
      await new Promise<void>((resolve) => runtime.timers.after(IDLE_MS + 5_000, resolve));
    });
    const failed = failure(working);
    await runtime.pass(IDLE_MS + 4_000);
    expect(isAborted).toBe(true);
    expect(service.sent('POST', '/release')).toHaveLength(0);
    expect(service.sent('DELETE', '')).toHaveLength(0);
    expect(await runtime.until(failed, 2_000)).toMatchObject({ how: 'revoking' });
    await runtime.pass(10);
    expect(service.sent('POST', '/release')).toHaveLength(1);
  });

  test('case I03: nothing remains of ten thousand names, and an unused session is closed', async () => {
    const { runtime, service, client } = bench();
    for (let index = 0; index < 10_000; index++) {
      const lock = client.acquire(`jobs/${index}`);
      await (await lock).release();
    }
    expect(service.sent('POST', '/sessions')).toHaveLength(1);
    expect(service.streams).toBe(1);
    await runtime.pass(IDLE_MS + 100);
    expect(service.sent('DELETE', '/s-1')).toHaveLength(1);
    expect(service.streams).toBe(0);
    const calls = service.calls.length;
    await runtime.pass(MINUTE_MS);
    expect(service.calls.length).toBe(calls);
    expect(service.holders.size).toBe(0);
  });
});
