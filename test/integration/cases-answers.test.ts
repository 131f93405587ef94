/** Groups C and D of the public lock bugs over HTTP: lost answers, repeats, and releases by the wrong party. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { bucketOf } from '../../src/api/names.ts';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { RawCall } from '../support/dev/raw-call.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

const TTL_MS = 5_000;
/** Of applications that are to die. */
const SHORT = { ttl_s: TTL_MS / 1_000 };
/** Promise 4, and what a busy machine may add. */
const FREED_BY_MS = TTL_MS + 1_000 + 2_000;
const HOUR_MS = 3_600_000;

const dev = shareDev({ name: 'answers' }, { name: 'small', queue: { maxWaiters: 1 } });

describe.concurrent('lost answers and repeats', () => {
  test('case C01: a release sent again does not touch the newer grant of the same session', async ({
    expect,
  }) => {
    const api = dev.api();
    const session = await api.open();
    const first = await api.lock('c01', { session_id: session });
    await api.release(first);
    const second = await api.lock('c01', { session_id: session });
    expect(second.token).toBeGreaterThan(first.token);
    expect(await api.release(first)).toEqual({ status: 200, body: { released: true, already: true } });
    const stranger = await api.open();
    expect(await api.release({ ...first, session: stranger })).toMatchObject({
      status: 409,
      body: { code: 'STALE_TOKEN', token: first.token, holder: { token: second.token } },
    });
    expect(await api.tokenOf('c01')).toBe(second.token);
    expect(await api.isHeld(second)).toBe(true);
    await api.close(session);
  });

  test('case C06: one session asks twice: there is no second entry for being the same', async ({
    expect,
  }) => {
    const api = dev.api();
    const session = await api.open();
    const first = await api.lock('c06', { session_id: session });
    expect((await api.acquire('c06', { session_id: session })).body.code).toBe('HELD');
    const waiting = api.acquire('c06', { session_id: session, wait_ms: HOUR_MS });
    await api.waiting('c06', 1);
    await api.release(first);
    const { body } = await waiting;
    expect(body.token).toBeGreaterThan(first.token);
    await api.release({ ...first, token: Number(body.token) });
    expect(await api.tokenOf('c06')).toBeNull();
    await api.close(session);
  });

  test('case C07: an acquire sent ten times is one, and one release frees it', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    const call = { session_id: session, request: 'once', wait_ms: 1_000 };
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.acquire('c07', call)));
    const tokens = new Set(answers.map(({ body }) => body.token));
    expect(tokens.size).toBe(1);
    const [token] = tokens;
    expect((await api.acquire('c07', call)).body).toMatchObject({ acquired: true, token });
    expect((await api.acquire('c07-other', call)).body).toMatchObject({ code: 'INVALID', field: 'request' });
    await api.release({ name: 'c07', session, token: Number(token) });
    expect(await api.tokenOf('c07')).toBeNull();
    // What ended it, and no second grant.
    expect((await api.acquire('c07', call)).body).toMatchObject({ acquired: false, code: 'NOT_HELD', token });
    expect(await api.tokenOf('c07')).toBeNull();
    await api.close(session);
  });

  test('case C07: a repeat of a waiting request is bound by its own wait limit, and costs the first nothing', async ({
    expect,
  }) => {
    const api = dev.api();
    const [holder, session] = [await api.open(), await api.open()];
    const keeping = [api.keepAlive(holder), api.keepAlive(session)];
    const held = await api.lock('c07-wait', { session_id: holder });
    const call = { session_id: session, request: 'patient' };
    const patient = api.acquire('c07-wait', { ...call, wait_ms: HOUR_MS });
    await api.waiting('c07-wait', 1);
    const start = performance.now();
    const impatient = await api.acquire('c07-wait', { ...call, wait_ms: 0 });
    expect(performance.now() - start).toBeLessThan(3_000);
    expect(impatient.status).toBe(409);
    expect((await api.get('c07-wait')).waiters).toBe(1);
    await api.release(held);
    expect((await patient).status).toBe(200);
    for (const { stop, refused } of keeping) {
      stop();
      expect(refused).toEqual([]);
    }
  });

  test('case C08: renewals whose answers are lost do no harm, however many', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    const held = await api.lock('c08', { session_id: session });
    const body = { session_id: session, token: held.token };
    for (let i = 0; i < 30; i++) {
      const call = await RawCall.open(dev.process.port, api.path('c08', '/renew'), body);
      await call.send(i % 3 === 0 ? call.length - 1 : call.length);
      if (i % 2 === 0) call.destroy();
      else call.reset();
      await call.closed;
    }
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.renew(held)));
    for (const { status, body: told } of answers) {
      expect(status).toBe(200);
      expect(told.token).toBe(held.token);
      expect(told.deadline_in_ms).toBeGreaterThan(0);
    }
    expect(await api.tokenOf('c08')).toBe(held.token);
    await api.close(session);
  });

  test('case C11: a connection that breaks inside a release leaves the lock held, and the repeat frees it', async ({
    expect,
  }) => {
    const api = dev.api();
    const session = await api.open();
    for (const share of [0.1, 0.5, 0.99]) {
      const held = await api.lock('c11', { session_id: session });
      const body = { session_id: session, token: held.token };
      const call = await RawCall.open(dev.process.port, api.path('c11', '/release'), body);
      await call.send(Math.floor(call.length * share));
      call.reset();
      await call.closed;
      expect(await api.tokenOf('c11')).toBe(held.token);
      expect(await api.release(held)).toEqual({ status: 200, body: { released: true } });
      expect(await api.tokenOf('c11')).toBeNull();
    }
    await api.close(session);
  });

  test('case C12: every refusal names the lock, and where somebody holds it, who and under which token', async ({
    expect,
  }) => {
    const api = dev.api('small');
    const holder = await api.open({ client: 'the-holder' });
    const other = await api.open({ client: 'the-other' });
    const held = await api.lock('c12', { session_id: holder, owner: 'nightly', purpose: 'pay batch 7' });
    const waiting = api.acquire('c12', { session_id: other, wait_ms: 1_500 });
    await api.waiting('c12', 1);
    const told = [
      await api.acquire('c12', { session_id: other }),
      await api.acquire('c12', { session_id: other, wait_ms: 1_000 }),
      await api.release({ ...held, session: other, token: held.token - 1 }),
      await api.renew({ ...held, session: other, token: held.token - 1 }),
      await waiting,
    ];
    expect(told.map(({ body }) => body.code)).toEqual([
      'HELD',
      'QUEUE_FULL',
      'STALE_TOKEN',
      'STALE_TOKEN',
      'WAIT_TIMEOUT',
    ]);
    for (const { body } of told) {
      expect(body).toMatchObject({
        name: 'small/c12',
        holder: { client: 'the-holder', owner: 'nightly', purpose: 'pay batch 7', token: held.token },
      });
      expect((body.holder as { session: number }).session).toBeGreaterThan(0);
    }
    await api.close(holder);
    const gone = [await api.renew(held), await api.acquire('c12', { session_id: holder })];
    for (const { status, body } of gone) {
      expect(status).toBe(410);
      expect(body).toMatchObject({ code: 'SESSION_EXPIRED', session_id: holder });
    }
  });

  test('case C15: a worker that comes back with a new session waits for its old grant, at most one TTL', async ({
    expect,
  }) => {
    const api = dev.api();
    const before = await api.lock('c15', { session_id: await api.open({ ...SHORT, client: 'worker-1' }) });
    const silentFrom = performance.now();
    const session = await api.open({ client: 'worker-1' });
    expect((await api.acquire('c15', { session_id: session })).body).toMatchObject({ code: 'HELD' });
    const after = await api.lock('c15', { session_id: session, wait_ms: 60_000 });
    expect(after.token).toBeGreaterThan(before.token);
    expect(performance.now() - silentFrom).toBeLessThan(FREED_BY_MS);
    // Its old self finds out.
    expect((await api.renew(before)).status).toBe(410);
    await api.close(session);
  });
});

describe.concurrent('releases by the wrong party, double releases', () => {
  test('case D01: a release without an acquire is refused, and no other lock changes', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    const held = await api.lock('d01/a', { session_id: session });
    for (const name of ['d01', 'd01/', 'd01/b', 'd01/a/c']) {
      const refused = await api.release({ ...held, name });
      expect(refused).toMatchObject({ status: 410, body: { code: 'NOT_HELD', name: `answers/${name}` } });
    }
    expect(await api.tokenOf('d01/a')).toBe(held.token);
    await api.close(session);
  });

  test('cases D03, D05: an owner whose lease has ended can end nobody’s lock, and is told so each time', async ({
    expect,
  }) => {
    const api = dev.api();
    const dead = await api.lock('d03', { session_id: await api.open(SHORT) });
    const session = await api.open();
    const keeping = api.keepAlive(session);
    const next = await api.lock('d03', { session_id: session, wait_ms: 60_000 });
    expect(next.token).toBeGreaterThan(dead.token);
    for (let i = 0; i < 3; i++) {
      expect((await api.release(dead)).body.code).toBe('SESSION_EXPIRED');
      expect((await api.release({ ...dead, session })).body.code).toBe('STALE_TOKEN');
    }
    expect(await api.isHeld(dead)).toBe(false);
    expect(await api.tokenOf('d03')).toBe(next.token);
    await api.release(next);
    // Nobody holds it any more: the old token is not stale, it is just over.
    for (let i = 0; i < 2; i++) expect((await api.release({ ...dead, session })).body.code).toBe('NOT_HELD');
    keeping.stop();
    expect(keeping.refused).toEqual([]);
  });

  test('case D06: the hold limit of a grant that was given back does not end the next one', async ({
    expect,
  }) => {
    const api = dev.api();
    const session = await api.open({ max_hold_ms: 2_000 });
    const keeping = api.keepAlive(session);
    const stream = await api.stream(session);
    const first = await api.lock('d06', { session_id: session });
    const firstAt = performance.now();
    await api.release(first);
    await pause(1_500);
    const second = await api.lock('d06', { session_id: session });
    const secondAt = performance.now();
    await pause(firstAt + 2_600 - performance.now());
    // The first one's limit has passed, the second one's has not.
    if (performance.now() < secondAt + 1_900) {
      expect(await api.get('d06')).toMatchObject({ token: second.token, holder: { revoking: null } });
      expect(stream.count('revoking')).toBe(0);
    }
    const revoking = await stream.has('revoking');
    expect(performance.now() - secondAt).toBeGreaterThanOrEqual(1_950);
    expect(revoking).toMatchObject({ token: second.token, cause: 'maxHold' });
    expect((await api.release(second)).status).toBe(200);
    keeping.stop();
    stream.close();
  });

  test('case D08: whoever in the pod has session and token may release, on whatever connection', async ({
    expect,
  }) => {
    const [taker, giver] = [dev.api(), new LockApi(dev.process.port, 'answers')];
    const session = await taker.open();
    const held = await taker.lock('d08', { session_id: session });
    expect((await giver.renew(held)).status).toBe(200);
    expect((await giver.release(held)).body).toEqual({ released: true });
    expect(await taker.tokenOf('d08')).toBeNull();
    giver.end();
    await taker.close(session);
  });

  test('case D10: names of one bucket do not share state', async ({ expect }) => {
    const api = dev.api();
    const wanted = bucketOf('d10');
    const names = ['d10'];
    for (let i = 0; names.length < 4; i++) if (bucketOf(`d10-${i}`) === wanted) names.push(`d10-${i}`);
    const [session, other] = [await api.open(), await api.open()];
    const held = await Promise.all(names.map((name) => api.lock(name, { session_id: session })));
    expect(new Set(held.map(({ token }) => token)).size).toBe(names.length);
    for (const [i, grant] of held.entries()) {
      expect((await api.acquire(grant.name, { session_id: other })).body.code).toBe('HELD');
      await api.release(grant);
      for (const [j, { name, token }] of held.entries())
        expect(await api.tokenOf(name)).toBe(j > i ? token : null);
    }
    await api.close(session);
    await api.close(other);
  });

  test('case D11: one name, taken and given back 500 times over HTTP, gets no slower', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    const durations: number[] = [];
    for (let i = 0; i < 500; i++) {
      const start = performance.now();
      await api.release(await api.lock('d11', { session_id: session }));
      durations.push(performance.now() - start);
    }
    const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
    expect(median(durations.slice(400))).toBeLessThan(4 * median(durations.slice(0, 100)));
    await eventually(async () => (await api.tokenOf('d11')) === null);
    await api.close(session);
  });
});
