/** Group B of the public lock bugs over HTTP: cancelled waits, wait limits, and races with the grant. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { RawCall } from '../support/dev/raw-call.ts';
import { shareDev } from '../support/dev/shared-dev.ts';
import { Random } from '../support/random.ts';

const SEEDS = 2 ** 32;
const seed = Number(process.env.LEASEHOLD_SEED ?? Math.floor(Math.random() * SEEDS));
const HOUR_MS = 3_600_000;
const WORKED_OFF_MS_MAX = 15_000;

const dev = shareDev(
  { name: 'waits' },
  { name: 'queue' },
  { name: 'left' },
  { name: 'calls', limits: { perClient: { locks: 3 } } },
);

describe.concurrent(`cancelled waits and races with the grant (LEASEHOLD_SEED=${seed})`, () => {
  test('case B01: a wait that ends around the release is granted or timed out, never both and never neither', async ({
    expect,
  }) => {
    const api = dev.api();
    const [holder, waiter] = [await api.open(), await api.open()];
    const keeping = [api.keepAlive(holder), api.keepAlive(waiter)];
    const random = new Random(seed);
    const outcomes = { granted: 0, timedOut: 0 };
    const race = async (i: number): Promise<void> => {
      const name = `edge-${i}`;
      const held = await api.lock(name, { session_id: holder });
      const waitMs = random.between(60, 120);
      const [released, waited] = await Promise.all([
        pause(waitMs + random.between(-8, 8)).then(() => api.release(held)),
        api.acquire(name, { session_id: waiter, wait_ms: waitMs }),
      ]);
      expect(released.body).toEqual({ released: true });
      const token = await api.tokenOf(name);
      if (waited.status === 200) {
        outcomes.granted++;
        expect(token).toBe(waited.body.token);
        await api.release({ name, session: waiter, token: Number(token) });
      } else {
        outcomes.timedOut++;
        expect(waited.body.code).toBe('WAIT_TIMEOUT');
        expect(token).toBeNull();
      }
      expect(await api.get(name)).toMatchObject({ holder: null, waiters: 0 });
    };
    for (let batch = 0; batch < 10; batch++) {
      await Promise.all(Array.from({ length: 12 }, (_, i) => race(batch * 12 + i)));
    }
    expect(outcomes.granted).toBeGreaterThan(0);
    expect(outcomes.timedOut).toBeGreaterThan(0);
    for (const { refused } of keeping) expect(refused).toEqual([]);
    for (const { stop } of keeping) stop();
  });

  test('case B02: callers that hang up while they wait leave the queue, and hold nothing later', async ({
    expect,
  }) => {
    const api = dev.api('queue');
    const random = new Random(seed + 1);
    const [busy, leaver] = [await api.open({ client: 'busy' }), await api.open({ client: 'leaver' })];
    const keeping = [api.keepAlive(busy), api.keepAlive(leaver)];
    const held = await api.lock('x', { session_id: busy });
    let sent = 1;
    const leave = async (how: 'destroy' | 'reset'): Promise<void> => {
      const body = { session_id: leaver, wait_ms: HOUR_MS };
      const call = await RawCall.open(dev.process.port, api.path('x', '/acquire'), body);
      // Some cut off inside the request, most while it waits.
      const bytes = random.chance(0.1) ? random.int(call.length) : call.length;
      await call.send(bytes);
      await pause(random.int(15));
      call[how]();
      await call.closed;
      // A reset may overtake the request, which then never was.
      if (bytes === call.length && how === 'destroy') sent++;
    };
    for (let batch = 0; batch < 20; batch++) {
      const how = batch % 2 === 0 ? 'reset' : 'destroy';
      await Promise.all(Array.from({ length: 15 }, () => leave(how)));
    }
    await eventually(async () => (await api.acquiresEnded()) >= sent, WORKED_OFF_MS_MAX);
    await api.waiting('x', 0);
    expect((await api.release(held)).body).toEqual({ released: true });
    // A reset one may only now come out of its socket; it is as gone as the others.
    await eventually(async () => (await api.tokenOf('x')) === null);
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });

  /** Between the answer and the hang-up there is no telling who was first: that is what `request` is for. */
  test('case B06: callers that hang up around their grant find out with their request, and nothing stays behind', async ({
    expect,
  }) => {
    const api = dev.api('left');
    const random = new Random(seed + 2);
    const [busy, leaver] = [await api.open({ client: 'busy' }), await api.open({ client: 'leaver' })];
    const keeping = [api.keepAlive(busy), api.keepAlive(leaver)];
    const names = Array.from({ length: 6 }, (_, i) => `left-${i}`);
    const giveBack = (name: string, session: string, token: unknown) =>
      api.release({ name, session, token: Number(token) });
    let acquires = 0;
    let unanswered: { readonly name: string; readonly request: string }[] = [];
    const leave = async (): Promise<void> => {
      const name = random.pick(names);
      const request = `leave-${++acquires}`;
      const body = { session_id: leaver, wait_ms: random.pick([0, HOUR_MS]), request };
      const call = await RawCall.open(dev.process.port, api.path(name, '/acquire'), body);
      await call.send();
      if (random.chance(0.8)) await pause(random.int(10));
      call.destroy();
      await call.closed;
      const token = /"acquired":true.*"token":([0-9]+)/.exec(call.received)?.[1];
      if (token === undefined) unanswered.push({ name, request });
      else expect((await giveBack(name, leaver, token)).status).toBe(200);
    };
    const askAgain = async (name: string, request: string): Promise<void> => {
      acquires++;
      const { status, body } = await api.acquire(name, { session_id: leaver, wait_ms: 0, request });
      if (status === 200) await giveBack(name, leaver, body.token);
      // The cancel of the first call is still on its way.
      else if (body.code === 'UNAVAILABLE') await askAgain(name, request);
    };
    const interfere = async (): Promise<void> => {
      acquires++;
      const name = random.pick(names);
      const { status, body } = await api.acquire(name, { session_id: busy, wait_ms: 300 });
      if (status === 200) await giveBack(name, busy, body.token);
    };
    let askedAgain = 0;
    for (let batch = 0; batch < 20; batch++) {
      unanswered = [];
      await Promise.all([...Array.from({ length: 12 }, leave), interfere(), interfere()]);
      // Asked before the first call has come in, the repeat would be the first.
      await eventually(async () => (await api.acquiresEnded()) >= acquires, WORKED_OFF_MS_MAX);
      for (const { name, request } of unanswered) await askAgain(name, request);
      askedAgain += unanswered.length;
      for (const name of names) expect(await api.get(name)).toMatchObject({ holder: null, waiters: 0 });
    }
    expect(askedAgain).toBeGreaterThan(0);
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });

  test('case B03: a wait that times out lets those behind it through', async ({ expect }) => {
    const api = dev.api();
    const sessions = await Promise.all([1, 2, 3].map(() => api.open()));
    const [holder, short, long] = sessions as [string, string, string];
    const held = await api.lock('front', { session_id: holder });
    const first = api.acquire('front', { session_id: short, wait_ms: 1_500 });
    await api.waiting('front', 1);
    const second = api.acquire('front', { session_id: long, wait_ms: HOUR_MS });
    await api.waiting('front', 2);
    expect((await first).body).toMatchObject({ code: 'WAIT_TIMEOUT', holder: { token: held.token } });
    expect(await api.get('front')).toMatchObject({ waiters: 1, token: held.token });
    await api.release(held);
    expect((await second).status).toBe(200);
  });

  test('case B08: a session closed while its acquires are under way keeps none of them alive', async ({
    expect,
  }) => {
    const api = dev.api();
    const random = new Random(seed + 3);
    const end = async (i: number): Promise<void> => {
      const session = await api.open();
      const acquiring = api.acquire(`closing-${i}`, { session_id: session });
      await pause(random.int(4));
      expect((await api.close(session)).body).toEqual({ closed: true });
      const { status, body } = await acquiring;
      if (status !== 200) expect(body.code).toBe('SESSION_EXPIRED');
      await eventually(async () => (await api.tokenOf(`closing-${i}`)) === null);
      expect((await api.keepalive(session)).body.code).toBe('SESSION_EXPIRED');
    };
    for (let batch = 0; batch < 10; batch++) {
      await Promise.all(Array.from({ length: 8 }, (_, i) => end(batch * 8 + i)));
    }
  });

  test('case B14: a release goes through although its caller hangs up at once', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    for (let i = 0; i < 20; i++) {
      const { token } = await api.lock(`hasty-${i}`, { session_id: session });
      const path = api.path(`hasty-${i}`, '/release');
      const call = await RawCall.open(dev.process.port, path, { session_id: session, token });
      await call.send();
      if (i % 2 === 0) call.destroy();
      else call.reset();
      await call.closed;
      // The lock is free long before its TTL. A reset may have overtaken the request itself.
      const isFree = eventually(async () => (await api.tokenOf(`hasty-${i}`)) === null, 1_000);
      if (i % 2 === 0) expect(await isFree).toBeLessThan(1_000);
      else await isFree.catch(() => api.release({ name: `hasty-${i}`, session, token }));
    }
    await api.close(session);
  });

  test('case B16: calls that fail leave sessions, locks and queues as they were', async ({ expect }) => {
    const api = dev.api('calls');
    const [holder, other] = [await api.open(), await api.open()];
    const keeping = [api.keepAlive(holder), api.keepAlive(other)];
    const held = await api.lock('held', { session_id: holder });
    await api.lock('mine', { session_id: other });
    const counters = () =>
      Promise.all(
        ['sessions', 'held_locks', 'waiters', 'sidecar_sessions', 'sidecar_grants', 'sidecar_waits'].map(
          (name) => api.namespaceMetric(name),
        ),
      );
    const before = await counters();
    expect(before).toEqual([2, 2, 0, 2, 2, 0]);
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all([
        api.acquire('held', { session_id: other }),
        api.acquire('held', { session_id: other, wait_ms: 20 }),
        api.acquire('held', { client: 'one-lock', ttl_s: 5 }),
        api.acquire('held', { client: 'one-lock', wait_ms: 20 }),
        api.acquire('held', { session_id: 'no-such-session' }),
        api.acquire('', { session_id: other }),
        api.acquire('x', { session_id: other, wait_ms: -1 }),
        api.acquire('x', { session_id: other, mode: 'shared' }),
        api.acquire('x', { client: 'one-lock', ttl_s: 61 }),
        api.release({ ...held, session: other }),
        api.release({ ...held, token: held.token + 1 }),
        api.renew({ ...held, session: other }),
        api.client.post('/v1/sessions', { client: 'x', keepalive: 'never' }),
      ]);
      for (const { status } of answers) expect([400, 409, 410]).toContain(status);
    }
    // A one-lock session that got nothing is closed after its answer.
    await eventually(async () => String(await counters()) === String(before));
    expect(await api.tokenOf('held')).toBe(held.token);
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });
});
