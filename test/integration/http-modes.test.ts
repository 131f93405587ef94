/** Shared, semaphore and re-entrant locks through the HTTP API, over the real sidecar, leader loop and embedded log. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeDevService } from '../support/http/dev-service.ts';
import { eventually, RoutesHarness } from '../support/http/routes-harness.ts';

let on: RoutesHarness;
beforeAll(async () => {
  on = await RoutesHarness.start(makeDevService);
});
afterAll(() => on.stop());

const release = (rest: string, body: object) => on.client.post(on.lockPath(rest, '/release'), body);
const heldBy = async (rest: string, token: unknown): Promise<boolean> =>
  (await on.client.get(on.lockPath(rest, `/held?token=${token}`))).body.held as boolean;

test('several hold a shared lock, and all of them are shown', async () => {
  const [first, second] = [await on.openSession('reader-1'), await on.openSession('reader-2')];
  const one = await on.acquire('report', { session_id: first, mode: 'shared', purpose: 'read' });
  const two = await on.acquire('report', { session_id: second, mode: 'shared' });
  expect([one.status, two.status]).toEqual([200, 200]);
  const { body } = await on.client.get(on.lockPath('report'));
  expect(body).toMatchObject({
    mode: 'shared',
    holder_count: 2,
    holder: { token: one.body.token },
    token: one.body.token,
    holders: [
      {
        client: 'reader-1',
        owner: 'reader-1',
        purpose: 'read',
        token: one.body.token,
        mode: 'shared',
        permits: 1,
        revoking: null,
      },
      { client: 'reader-2', token: two.body.token },
    ],
  });
  const writer = await on.acquire('report', { session_id: first });
  expect(writer).toMatchObject({ status: 409, body: { code: 'HELD', holder: { token: one.body.token } } });
  for (const { body: grant } of [one, two]) {
    expect(await heldBy('report', grant.token)).toBe(true);
    const { session_id, token } = grant;
    expect((await release('report', { session_id, token })).body).toEqual({ released: true });
    expect(await heldBy('report', grant.token)).toBe(false);
  }
  const free = await on.client.get(on.lockPath('report'));
  expect(free.body).toMatchObject({ holder: null, holders: [], holder_count: 0, mode: null, token: null });
});

test('permits of a semaphore are taken together, waited for, and shown', async () => {
  const session_id = await on.openSession();
  const semaphore = { session_id, mode: 'semaphore' };
  const two = await on.acquire('pool/x', { ...semaphore, permits: 2 });
  const waiting = on.acquire('pool/x', { ...semaphore, permits: 2, wait_ms: 60_000 });
  await on.waitersOf('pool/x', 1);
  const { body } = await on.client.get(on.lockPath('pool/x'));
  expect(body).toMatchObject({ mode: 'semaphore', holders: [{ permits: 2 }] });
  expect(body.queue).toMatchObject([{ mode: 'semaphore', permits: 2 }]);
  await release('pool/x', { session_id, token: two.body.token });
  expect(await waiting).toMatchObject({ status: 200, body: { acquired: true } });
});

test('a grant that is being taken away says why, wherever it is looked at', async () => {
  const fields = { client: 'short', keepalive: 'app', max_hold_ms: 1_000 };
  const { session_id } = (await on.client.post('/v1/sessions', fields)).body;
  const { token } = (await on.acquire('brief', { session_id })).body;
  const holder = async () => (await on.client.get(on.lockPath('brief'))).body.holder as { revoking: unknown };
  await eventually(async () => (await holder()).revoking !== null);
  expect(await holder()).toMatchObject({ token, revoking: 'maxHold' });
  const held = await on.client.get(on.lockPath('brief', `/held?token=${token}`));
  expect(held.body).toMatchObject({ held: true, revoking: 'maxHold' });
  const renewed = await on.client.post(on.lockPath('brief', '/renew'), { session_id, token });
  expect(renewed.body).toMatchObject({ renewed: true, token, revoking: 'maxHold' });
  expect((await release('brief', { session_id, token })).body).toEqual({ released: true });
});

describe('what the namespace does not allow is told with field, limit and way out, and changes nothing', () => {
  test.each([
    ['pool/x', { mode: 'exclusive' }, 'mode', /declared as a semaphore/],
    ['pool/x', { mode: 'semaphore', permits: 4 }, 'permits', /has 3 permits/],
    ['no-pool', { mode: 'semaphore' }, 'mode', /no semaphore is declared/],
    ['no-pool', { mode: 'shared', permits: 2 }, 'permits', /mode semaphore/],
    ['no-pool', { reentrant: true }, 'request', /required with reentrant/],
  ])('%s, %j', async (rest, fields, field, reason) => {
    const session_id = await on.openSession();
    const { status, body } = await on.acquire(rest, { session_id, ...fields });
    expect(status).toBe(400);
    expect(body).toMatchObject({ acquired: false, code: 'INVALID', field });
    expect(body.limit).toBeDefined();
    expect(body.reason).toMatch(reason);
    expect((await on.acquire(`free-for-${field}`, { session_id, request: 'r' })).status).toBe(200);
    await on.client.json({ method: 'DELETE', path: `/v1/sessions/${session_id}` });
  });
});

test('a re-entrant lock is one token, given back once for each acquire, by its request', async () => {
  const session_id = await on.openSession();
  const again = (request: string) => on.acquire('nested', { session_id, reentrant: true, request });
  const { token } = (await again('outer')).body;
  expect((await again('inner')).body).toMatchObject({ acquired: true, token });
  expect((await again('inner')).body).toMatchObject({ acquired: true, token });

  const unnamed = await release('nested', { session_id, token });
  expect(unnamed).toMatchObject({ status: 400, body: { code: 'INVALID', field: 'request' } });
  expect(unnamed.body.limit).toBeDefined();
  const unknown = await release('nested', { session_id, token, request: 'other' });
  expect(unknown).toMatchObject({ status: 410, body: { code: 'NOT_HELD' } });

  expect((await release('nested', { session_id, token, request: 'inner' })).body).toEqual({ released: true });
  const repeated = await release('nested', { session_id, token, request: 'inner' });
  expect(repeated.body).toEqual({ released: true, already: true });
  expect(await heldBy('nested', token)).toBe(true);
  expect((await release('nested', { session_id, token, request: 'outer' })).body).toEqual({ released: true });
  expect(await heldBy('nested', token)).toBe(false);
  expect((await on.client.get(on.lockPath('nested'))).body.holder).toBeNull();
});
