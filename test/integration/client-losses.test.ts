/**
 * The client library when things go wrong: the service dies and comes back, stands still, takes the lock away, or the connection
 * breaks; or this very process stands still. Against real `leasehold dev` processes.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { type ClientOptions, createClient, LockLostError } from '../../src/client/index.ts';
import { ADMIN_SOCKET } from '../../src/server/grpc/socket.ts';
import type { DevProcess } from '../support/dev/dev-process.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';
import { shareDev } from '../support/dev/shared-dev.ts';
import type { Workspace } from '../support/dev/workspace.ts';
import { FaultyProxy } from '../support/faulty-proxy.ts';

const TTL_MS = 5_000;
const MARGIN_MS = 1_000;
const LEASE_MS = TTL_MS - MARGIN_MS;
/** Long enough for a restart on a busy machine. */
const LONG_TTL_MS = 30_000;
const TEST_MS_MAX = 90_000;

interface Bench {
  readonly own: OwnDev;
  readonly workspace: Workspace;
  readonly dev: DevProcess;
}

async function start(context: TestContext): Promise<Bench> {
  const own = new OwnDev(context);
  const workspace = own.workspace({ name: 'jobs', lease: { ttl: '5s' } });
  return { own, workspace, dev: await own.start(workspace) };
}

function client(url: string, options: ClientOptions = {}) {
  const made = createClient({ url, ...options });
  onTestFinished(() => made.close());
  return made;
}

function aborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const told = (): void => resolve(performance.now());
    if (signal.aborted) told();
    else signal.addEventListener('abort', told);
  });
}

/** A way to the service that the test can cut. */
async function wayTo({ url }: DevProcess): Promise<FaultyProxy> {
  const way = await FaultyProxy.start(url);
  onTestFinished(() => way.stop());
  return way;
}

describe('with a service of its own', () => {
  test(
    'it is killed and restarted in the middle of the work: nothing is lost',
    async (context) => {
      const { own, workspace, dev } = await start(context);
      const { port } = dev;
      const locks = client(dev.url, { ttlMs: LONG_TTL_MS });
      const result = await locks.withLock('jobs/a', {}, async ({ signal, held, remainingMs, token }) => {
        const deadline = (): number => performance.now() + remainingMs();
        const before = deadline();
        await dev.kill();
        // For the moment in which it is not known that the service is down, nothing is believed in.
        await eventually(held);
        await own.spawn(workspace, port).serving();
        await eventually(() => deadline() > before + 5_000, LONG_TTL_MS);
        expect(signal.aborted).toBe(false);
        expect((await locks.describe('jobs/a')).holder?.token).toBe(token);
        return 'whole';
      });
      expect(result).toBe('whole');
      expect((await locks.describe('jobs/a')).holder).toBeNull();
    },
    TEST_MS_MAX,
  );

  test(
    'who waits through a kill and a restart is granted when its turn comes',
    async (context) => {
      const { own, workspace, dev } = await start(context);
      const { port } = dev;
      const [holder, waiter] = [
        client(dev.url, { ttlMs: LONG_TTL_MS }),
        client(dev.url, { ttlMs: LONG_TTL_MS }),
      ];
      const lock = await holder.acquire('jobs/a');
      const waiting = waiter.acquire('jobs/a', { waitMs: TEST_MS_MAX });
      await own.api(dev, 'jobs').waiting('a', 1);
      await dev.kill();
      const again = own.spawn(workspace, port);
      await again.serving();
      await own.api(again, 'jobs').waiting('a', 1);
      expect(lock.held()).toBe(true);
      await lock.release();
      const granted = await waiting;
      expect(granted.token).toBeGreaterThan(lock.token);
      await granted.release();
    },
    TEST_MS_MAX,
  );

  test(
    'it stands still: the signal fires by the local clock, before the lock can be free',
    async (context) => {
      const { dev } = await start(context);
      const [locks, other] = [client(dev.url), client(dev.url)];
      let firedAfterMs = 0;
      let heldThen: boolean | null = null;
      const failure = await locks
        .withLock('jobs/a', {}, async ({ signal, held }) => {
          dev.freeze();
          const from = performance.now();
          firedAfterMs = (await aborted(signal)) - from;
          heldThen = held();
          return 'too late';
        })
        .catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(LockLostError);
      expect(failure).toMatchObject({ how: 'deadline', code: 'NOT_HELD', lock: 'jobs/a' });
      expect(heldThen).toBe(false);
      expect(firedAfterMs).toBeGreaterThan(LEASE_MS - TTL_MS / 5);
      expect(firedAfterMs).toBeLessThan(TTL_MS);
      dev.thaw();
      // Passed is final: the service does not give it back to us, but on to the next.
      await using next = await other.acquire('jobs/a', { waitMs: 6 * TTL_MS });
      expect(next.token).toBeGreaterThan((failure as LockLostError).token);
    },
    TEST_MS_MAX,
  );

  test(
    'it is gone for good: lost at the deadline, and everything ends in bounded time',
    async (context) => {
      const { dev } = await start(context);
      const locks = client(dev.url);
      const lock = await locks.acquire('jobs/a');
      const killedAt = performance.now();
      await dev.kill();
      await eventually(() => lock.held());
      expect((await aborted(lock.signal)) - killedAt).toBeLessThan(TTL_MS);
      expect(lock.signal.reason).toMatchObject({ how: 'deadline' });
      await expect(lock.release()).rejects.toBe(lock.signal.reason);
      const failure = await locks.acquire('jobs/a').catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'UNAVAILABLE', retryable: true });
      const waitedFrom = performance.now();
      const late = await locks.acquire('jobs/a', { waitMs: 1_000 }).catch((error: unknown) => error);
      expect(late).toMatchObject({ code: 'UNAVAILABLE' });
      expect(performance.now() - waitedFrom).toBeLessThan(3_000);
      await locks.close();
    },
    TEST_MS_MAX,
  );
});

describe('with a service that goes on', () => {
  const dev = shareDev({ name: 'jobs', lease: { ttl: '5s' } });

  function administration(): AdminClient {
    const admin = new AdminClient(join(dev.workspace.data, ADMIN_SOCKET));
    onTestFinished(() => admin.close());
    return admin;
  }

  function breakLock(name: string, token: number, now = false): Promise<void> {
    return administration().breakLock({
      namespace: 'jobs',
      name,
      token,
      now,
      reason: 'it hangs',
      by: 'alice',
    });
  }

  test('the connection breaks: the session is over, and its holder knows at once', async () => {
    const way = await wayTo(dev.process);
    const locks = client(way.endpoint);
    const lock = await locks.acquire('jobs/a');
    way.cut();
    const cutAt = performance.now();
    expect((await aborted(lock.signal)) - cutAt).toBeLessThan(2_000);
    expect(lock.signal.reason).toMatchObject({ how: expect.stringMatching(/^(session|disconnected)$/) });
    await eventually(async () => (await locks.describe('jobs/a')).holder === null);
    // The same client goes on in a new session.
    await locks.withLock('jobs/a', { waitMs: 5_000 }, ({ token }) =>
      expect(token).toBeGreaterThan(lock.token),
    );
  });

  test('with keepalive `app` a broken connection loses nothing', async () => {
    const way = await wayTo(dev.process);
    // Keepalives every three seconds; without them it would be lost after twelve.
    const locks = client(way.endpoint, { keepalive: 'app', ttlMs: 3 * TTL_MS });
    const lock = await locks.acquire('jobs/a');
    for (let cuts = 0; cuts < 8; cuts++) {
      await pause(2_000);
      way.cut();
      expect(lock.held()).toBe(true);
    }
    await lock.release();
    expect((await locks.describe('jobs/a')).holder).toBeNull();
  });

  test(
    'cases C07, C09, C10, C11: a connection that breaks in the middle of an acquire or a release leaves no lock behind',
    async () => {
      const way = await wayTo(dev.process);
      const locks = client(way.endpoint, { keepalive: 'app' });
      const direct = client(dev.process.url);
      const outcomes: string[] = [];
      for (let round = 0; round < 30; round++) {
        const cutting = pause((round % 10) * 1.5).then(() => way.cut());
        const done = await locks
          .withLock('jobs/a', { waitMs: 10_000 }, () => 'done')
          .catch((error: unknown) => String((error as LockLostError).code));
        outcomes.push(done);
        await cutting;
      }
      expect(outcomes.filter((outcome) => outcome === 'done').length).toBeGreaterThan(25);
      await eventually(async () => (await direct.describe('jobs/a')).holder === null);
    },
    TEST_MS_MAX,
  );

  test('a break tells the holder at once, and its giving up frees the lock for the next', async () => {
    const [locks, other] = [client(dev.process.url), client(dev.process.url)];
    let toldMs = 0;
    const held = locks.withLock('jobs/a', {}, async ({ signal, token }) => {
      const from = performance.now();
      await breakLock('a', token);
      toldMs = (await aborted(signal)) - from;
    });
    const failure = await held.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockLostError);
    expect(failure).toMatchObject({ how: 'revoking', code: 'NOT_HELD' });
    expect(toldMs).toBeLessThan(2_000);
    const from = performance.now();
    await using _next = await other.acquire('jobs/a', { waitMs: 2 * TTL_MS });
    expect(performance.now() - from).toBeLessThan(TTL_MS - 1_000);
  });

  test('a break --now is told too, and another lock of the client is not touched', async () => {
    const locks = client(dev.process.url);
    const [broken, kept] = [await locks.acquire('jobs/a'), await locks.acquire('jobs/b')];
    await breakLock('a', broken.token, true);
    await aborted(broken.signal);
    expect(broken.held()).toBe(false);
    await pause(TTL_MS);
    expect(kept.held()).toBe(true);
    await kept.release();
  });

  test('while several are collected, the loss of the first ends the wait for the second', async () => {
    const [holder, locks] = [client(dev.process.url), client(dev.process.url)];
    await using _held = await holder.acquire('jobs/b');
    let ran = false;
    const outcome = locks
      .withLocks(['jobs/b', 'jobs/a'], { waitMs: 30_000 }, () => {
        ran = true;
      })
      .catch((error: unknown) => error);
    await dev.api().waiting('b', 1);
    await breakLock('a', (await holder.describe('jobs/a')).holder?.token ?? 0);
    expect(await outcome).toMatchObject({ how: 'revoking', lock: 'jobs/a' });
    expect(ran).toBe(false);
    await dev.api().waiting('b', 0);
    await eventually(async () => (await holder.describe('jobs/a')).holder === null);
  });

  test('case E24: this process stands still past its lease; when it goes on it does not believe in it', async () => {
    const [locks, other] = [client(dev.process.url), client(dev.process.url)];
    const failure = await locks
      .withLock('jobs/a', {}, ({ held }) => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TTL_MS + 1_500);
        // No timer and no message could have come through: the clock alone says it.
        expect(held()).toBe(false);
      })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ how: 'deadline' });
    await using next = await other.acquire('jobs/a', { waitMs: 2 * TTL_MS });
    expect(next.token).toBeGreaterThan((failure as LockLostError).token);
    // The session of before is over; the client notices and goes on in another.
    expect(await locks.withLock('jobs/b', {}, () => 'again')).toBe('again');
  });
});
