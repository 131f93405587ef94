/** The client library against a real `leasehold dev`: taking, waiting, giving up, giving back. What is lost: client-losses. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import {
  type ClientOptions,
  createClient,
  HeldError,
  LeaseholdError,
  type LockDescription,
} from '../../src/client/index.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

const MANY = 100;
const ROUNDS = 1_000;
const ROUNDS_MS_MAX = 60_000;

const dev = shareDev({ name: 'jobs' }, { name: 'other' });

function client(options: ClientOptions = {}) {
  const made = createClient({ url: dev.process.url, ...options });
  onTestFinished(() => made.close());
  return made;
}

async function failureOf(promise: Promise<unknown>): Promise<LeaseholdError> {
  const failure = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (!(failure instanceof LeaseholdError)) throw new Error(`no LeaseholdError but ${String(failure)}`);
  return failure;
}

test('work runs while the lock is held, gets its token, and the lock is free afterwards', async () => {
  const locks = client({ client: 'worker-1' });
  const tokens: number[] = [];
  const result = await locks.withLock('jobs/a', { purpose: 'batch 7', owner: 'nightly' }, async (holding) => {
    tokens.push(holding.token);
    const { holder } = await locks.describe('jobs/a');
    expect(holder).toMatchObject({
      client: 'worker-1',
      owner: 'nightly',
      purpose: 'batch 7',
      token: holding.token,
    });
    expect(holding).toMatchObject({ name: 'jobs/a' });
    expect(holding.held()).toBe(true);
    expect(holding.remainingMs()).toBeGreaterThan(1_000);
    expect(holding.signal.aborted).toBe(false);
    return 'done';
  });
  expect(result).toBe('done');
  expect((await locks.describe('jobs/a')).holder).toBeNull();
  await locks.withLock('jobs/a', {}, ({ token }) => void tokens.push(token));
  expect(tokens[1]).toBeGreaterThan(tokens[0]!);
});

test('what the work throws is what the caller gets, and the lock is free', async () => {
  const locks = client();
  const failed = new Error('the disk is full');
  const thrown = await locks
    .withLock('jobs/a', {}, () => {
      throw failed;
    })
    .catch((error: unknown) => error);
  expect(thrown).toBe(failed);
  expect((await locks.describe('jobs/a')).holder).toBeNull();
});

test('who does not wait is told at once who holds it; who waits in vain, afterwards', async () => {
  const [holder, other] = [client({ client: 'holder' }), client()];
  await using lock = await holder.acquire('jobs/a');
  const held = await failureOf(other.withLock('jobs/a', {}, () => undefined));
  expect(held).toBeInstanceOf(HeldError);
  expect(held).toMatchObject({
    code: 'HELD',
    message: 'jobs/a: the lock is held (by holder)',
    retryable: true,
    details: { holder: { client: 'holder', token: lock.token } },
  });
  const start = performance.now();
  const late = await failureOf(other.acquire('jobs/a', { waitMs: 300 }));
  expect(late).toBeInstanceOf(HeldError);
  expect(late.code).toBe('WAIT_TIMEOUT');
  expect(performance.now() - start).toBeGreaterThanOrEqual(299);
  expect(await other.tryLock('jobs/a')).toBeNull();
});

test('await using gives back at the end of the block; a second release is harmless', async () => {
  const locks = client();
  {
    await using lock = await locks.acquire('jobs/a');
    expect(lock.held()).toBe(true);
    await lock.release();
    expect(lock.held()).toBe(false);
    await lock.release();
    expect(lock.signal.aborted).toBe(false);
  }
  expect((await locks.describe('jobs/a')).holder).toBeNull();
});

test(`${MANY} at once on one name never overlap, and each has a higher token than the one before`, async () => {
  const clients = [client(), client(), client(), client()];
  let inside = 0;
  let most = 0;
  const tokens: number[] = [];
  const runs = Array.from({ length: MANY }, (_, index) =>
    clients[index % clients.length]!.withLock('jobs/one', { waitMs: 30_000 }, async ({ token, held }) => {
      inside++;
      most = Math.max(most, inside);
      await pause(index % 3);
      expect(held()).toBe(true);
      tokens.push(token);
      inside--;
    }),
  );
  await Promise.all(runs);
  expect(most).toBe(1);
  expect(tokens).toHaveLength(MANY);
  expect(tokens).toEqual([...new Set(tokens)].sort((left, right) => left - right));
});

test(
  `case D11: ${ROUNDS} times lock and unlock of one name by one client, at a steady pace`,
  async () => {
    const locks = client();
    const tookMs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      await locks.withLock('jobs/again', {}, () => undefined);
      tookMs.push(performance.now() - start);
    }
    // The fastest rounds of the first and the last quarter: what other programs on this machine do does not count.
    const fastest = (from: number): number => Math.min(...tookMs.slice(from, from + ROUNDS / 4));
    expect(tookMs).toHaveLength(ROUNDS);
    expect(fastest((ROUNDS * 3) / 4)).toBeLessThan(3 * fastest(0));
  },
  ROUNDS_MS_MAX,
);

test('several locks in opposite orders never wait for each other', async () => {
  const [left, right] = [client(), client()];
  const names = ['jobs/x', 'jobs/y', 'other/z'];
  let inside = 0;
  const work = async ({
    tokens,
    held,
  }: {
    tokens: ReadonlyMap<string, number>;
    held(): boolean;
  }): Promise<void> => {
    inside++;
    expect(inside).toBe(1);
    expect([...tokens.keys()]).toEqual(names);
    await pause(1);
    expect(held()).toBe(true);
    inside--;
  };
  const runs = Array.from({ length: 40 }, (_, index) =>
    index % 2 === 0
      ? left.withLocks(names, { waitMs: 20_000 }, work)
      : right.withLocks(names.toReversed(), { waitMs: 20_000 }, work),
  );
  await Promise.all(runs);
  expect((await left.describe('jobs/x')).holder).toBeNull();
});

test('case F11: all or none: when the last of several is held, the others are free again', async () => {
  const [holder, other] = [client(), client()];
  await using _held = await holder.acquire('other/z');
  const failure = await failureOf(other.withLocks(['other/z', 'jobs/x'], { waitMs: 200 }, () => undefined));
  expect(failure.code).toBe('WAIT_TIMEOUT');
  expect((await holder.describe('jobs/x')).holder).toBeNull();
  for (const names of [[], ['jobs/x', 'jobs/x'], ['nothing']]) {
    expect((await failureOf(other.withLocks(names, {}, () => undefined))).code).toBe('INVALID');
  }
});

test('case B06: who gives up while waiting gets CANCELLED, leaves the queue at once, and holds nothing', async () => {
  const [holder, other] = [client(), client()];
  const lock = await holder.acquire('jobs/a');
  const giveUp = new AbortController();
  const waiting = other.acquire('jobs/a', { waitMs: 60_000, signal: giveUp.signal });
  const failure = failureOf(waiting);
  await dev.api().waiting('a', 1);
  giveUp.abort(new Error('the pod stops'));
  expect(await failure).toMatchObject({ code: 'CANCELLED', cause: { message: 'the pod stops' } });
  await dev.api().waiting('a', 0);
  await lock.release();
  await using again = await holder.acquire('jobs/a');
  expect(again.token).toBeGreaterThan(lock.token);
  const before = await failureOf(other.acquire('jobs/a', { signal: AbortSignal.abort() }));
  expect(before.code).toBe('CANCELLED');
});

test('giving up in the very moment of the grant leaves nothing behind, whichever comes first', async () => {
  const [holder, other] = [client(), client()];
  const outcomes = { granted: 0, cancelled: 0 };
  for (let round = 0; round < 60; round++) {
    const lock = await holder.acquire('jobs/race');
    const giveUp = new AbortController();
    const waiting = other.acquire('jobs/race', { waitMs: 60_000, signal: giveUp.signal });
    const outcome = waiting.then(
      async (got) => {
        outcomes.granted++;
        await got.release();
      },
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'CANCELLED' });
        outcomes.cancelled++;
      },
    );
    await dev.api().waiting('race', 1);
    const released = lock.release();
    await pause((round % 12) / 2);
    giveUp.abort();
    await Promise.all([released, outcome]);
    await eventually(async () => (await holder.describe('jobs/race')).holder === null);
  }
  expect(outcomes.granted + outcomes.cancelled).toBe(60);
  expect(outcomes.cancelled).toBeGreaterThan(0);
});

test('a try-lock that tries again gets the lock when it becomes free', async () => {
  const [holder, other] = [client(), client()];
  const lock = await holder.acquire('jobs/a');
  setTimeout(() => void lock.release(), 300);
  const got = await other.tryLock('jobs/a', { retry: { tries: 50, baseMs: 20, capMs: 100 } });
  expect(got?.token).toBeGreaterThan(lock.token);
  expect(await holder.tryLock('jobs/a', { retry: { tries: 3, baseMs: 5 } })).toBeNull();
  await got?.release();
});

test('names mean exactly what they say', async () => {
  const locks = client();
  const names = ['a b/c%2F', '../é', '💶?x=1#y', 'A', 'a:acquire', 'a\n'];
  for (const name of names) {
    await locks.withLock(`jobs/${name}`, {}, async ({ token }) => {
      expect((await locks.describe(`jobs/${name}`)).holder?.token).toBe(token);
    });
  }
  for (const name of ['', 'jobs', 'jobs/', '/a', 'jobs/\ud800']) {
    expect((await failureOf(locks.acquire(name))).code).toBe('INVALID');
  }
  expect((await failureOf(locks.acquire('nowhere/a'))).code).toBe('NAMESPACE_NOT_FOUND');
});

test('what cannot be meant is refused before it is asked', async () => {
  const locks = client();
  for (const waitMs of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
    expect(await failureOf(locks.acquire('jobs/a', { waitMs }))).toMatchObject({
      code: 'INVALID',
      details: { field: 'waitMs' },
    });
  }
  // Case E02: 30 days are too long for the service, and that is what it says, at once.
  expect(await failureOf(locks.acquire('jobs/a', { waitMs: 30 * 24 * 3_600_000 }))).toMatchObject({
    code: 'INVALID',
    details: { field: 'wait_ms' },
  });
  for (const url of ['localhost:7070', 'ftp://127.0.0.1', 'no url']) {
    expect(() => createClient({ url })).toThrow(LeaseholdError);
  }
});

test('lists page by page what is in use, and reports a stale token', async () => {
  const locks = client();
  const held = await Promise.all(
    Array.from({ length: 5 }, (_, index) => locks.acquire(`other/list-${index}`)),
  );
  const listed: LockDescription[] = [];
  for await (const lock of locks.list('other/list-')) listed.push(lock);
  expect(listed.map(({ name }) => name)).toEqual(held.map(({ name }) => name));
  await locks.reportStale('other/list-0', held[0]!.token, 'test.table');
  expect((await failureOf(locks.reportStale('other/list-0', -1, 'test.table'))).code).toBe('INVALID');
  await Promise.all(held.map((lock) => lock.release()));
});

test('an own limit of holding ends the lock, and others of the client are not touched', async () => {
  const locks = client();
  await using free = await locks.acquire('jobs/a');
  await using limited = await locks.acquire('jobs/b', { maxHoldMs: 1_000 });
  await eventually(() => limited.signal.aborted, 10_000);
  expect(limited.signal.reason).toMatchObject({ code: 'NOT_HELD', how: 'revoking', lock: 'jobs/b' });
  expect(limited.held()).toBe(false);
  expect(free.held()).toBe(true);
});

test('closing a client tells those who work under its locks, gives everything back, and nothing can be taken after it', async () => {
  const locks = client();
  await locks.withLock('jobs/a', {}, () => undefined);
  const streams = (): Promise<number> => dev.api().metric('leasehold_http_event_streams');
  const open = await streams();
  expect(open).toBeGreaterThan(0);
  const lock = await locks.acquire('jobs/a');
  const closing = locks.close();
  expect(lock.signal.reason).toMatchObject({ how: 'closed' });
  await closing;
  await eventually(async () => (await streams()) < open);
  expect((await client().describe('jobs/a')).holder).toBeNull();
  expect((await failureOf(locks.acquire('jobs/a'))).code).toBe('CANCELLED');
});
