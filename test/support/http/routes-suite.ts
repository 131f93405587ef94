/**
 * What every `SidecarService` must do through the HTTP API. Call it with a factory of the service to test: it needs one
 * alias, and no test waits longer than a few seconds.
 */
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HttpClient } from './client.ts';
import { eventually, type MakeService, RoutesHarness } from './routes-harness.ts';

export function describeRoutes(title: string, makeService: MakeService): void {
  describe(`HTTP routes over ${title}`, () => {
    let on: RoutesHarness;
    beforeAll(async () => {
      on = await RoutesHarness.start(makeService);
    });
    afterAll(() => on.stop());

    test('a lock is taken, looked at, renewed, given back, and given back again', async () => {
      const session = await on.openSession();
      const name = `${on.alias}/merchant-1`;
      const taken = await on.acquire('merchant-1', { session_id: session, owner: 'job', purpose: 'pay' });
      expect(taken.body).toMatchObject({ acquired: true, session_id: session, lease_ttl_ms: 15_000 });
      expect(taken.body.deadline_monotonic_ns).toMatch(/^[0-9]+$/);
      const token = Number(taken.body.token);
      expect(token).toBeGreaterThan(0);

      const seen = await on.client.get(on.lockPath('merchant-1'));
      expect(seen.body).toMatchObject({ name, token, owner: 'job', purpose: 'pay', waiters: 0, queue: [] });
      expect(seen.body.holder).toMatchObject({ client: 'worker', owner: 'job', token, mode: 'exclusive' });
      const held = await on.client.get(on.lockPath('merchant-1', `/held?token=${token}`));
      expect(held.body).toMatchObject({ held: true });
      expect(held.body.deadline_in_ms).toBeGreaterThan(0);
      const other = await on.client.get(on.lockPath('merchant-1', `/held?token=${token - 1}`));
      expect(other.body).toEqual({ held: false });

      const grant = { session_id: session, token };
      expect((await on.client.post(on.lockPath('merchant-1', '/renew'), grant)).body).toMatchObject({
        renewed: true,
        ...grant,
      });
      expect(await on.client.post(on.lockPath('merchant-1', '/release'), grant)).toEqual({
        status: 200,
        body: { released: true },
      });
      expect(await on.client.post(on.lockPath('merchant-1', '/release'), grant)).toEqual({
        status: 200,
        body: { released: true, already: true },
      });
      expect((await on.client.post(on.lockPath('merchant-1', '/renew'), grant)).status).toBe(410);
      const free = await on.client.get(on.lockPath('merchant-1'));
      expect(free).toMatchObject({
        status: 200,
        body: { name, holder: null, token: null, owner: null, waiters: 0 },
      });
    });

    test('keepalive answers the deadline, DELETE frees everything, afterwards the session is gone', async () => {
      const session = await on.openSession();
      await on.acquire('a', { session_id: session });
      await on.acquire('b', { session_id: session });
      const kept = await on.client.post(`/v1/sessions/${session}/keepalive`);
      expect(kept.status).toBe(200);
      expect(kept.body.deadline_in_ms).toBeGreaterThan(0);
      expect(await on.client.json({ method: 'DELETE', path: `/v1/sessions/${session}` })).toEqual({
        status: 200,
        body: { closed: true },
      });
      for (const rest of ['a', 'b']) expect((await on.client.get(on.lockPath(rest))).body.holder).toBeNull();
      const after = await on.client.post(`/v1/sessions/${session}/keepalive`);
      expect(after).toMatchObject({ status: 410, body: { code: 'SESSION_EXPIRED' } });
      expect((await on.acquire('a', { session_id: session })).body).toMatchObject({
        acquired: false,
        code: 'SESSION_EXPIRED',
        name: `${on.alias}/a`,
      });
    });

    test('an acquire without session_id opens a session that the answer names', async () => {
      const taken = await on.acquire('one-lock', { client: 'script', ttl_s: 7.5 });
      expect(taken.body).toMatchObject({ acquired: true, lease_ttl_ms: 7_500 });
      const { session_id, token } = taken.body;
      expect((await on.client.post(on.lockPath('one-lock', '/renew'), { session_id, token })).status).toBe(
        200,
      );
      expect((await on.client.post(on.lockPath('one-lock', '/release'), { session_id, token })).status).toBe(
        200,
      );
    });

    test('who does not wait is told who holds; who waits is told when the wait is over (case C12)', async () => {
      const [first, second] = [await on.openSession('first'), await on.openSession('second')];
      const { body: holder } = await on.acquire('busy', { session_id: first, owner: 'the-owner' });
      for (const [fields, code] of [
        [{}, 'HELD'],
        [{ wait_ms: 30 }, 'WAIT_TIMEOUT'],
      ] as const) {
        const refused = await on.acquire('busy', { session_id: second, ...fields });
        expect(refused).toMatchObject({
          status: 409,
          body: { acquired: false, code, name: `${on.alias}/busy` },
        });
        expect(refused.body.holder).toMatchObject({
          owner: 'the-owner',
          client: 'first',
          token: holder.token,
        });
      }
    });

    test('a waiter is granted by the release, with a higher token', async () => {
      const [first, second] = [await on.openSession(), await on.openSession()];
      const held = await on.acquire('queue', { session_id: first });
      const waiting = on.acquire('queue', { session_id: second, wait_ms: 60_000 });
      await on.waitersOf('queue', 1);
      const seen = await on.client.get(on.lockPath('queue'));
      expect(seen.body.queue).toMatchObject([{ client: 'worker', mode: 'exclusive' }]);
      await on.client.post(on.lockPath('queue', '/release'), { session_id: first, token: held.body.token });
      const granted = await waiting;
      expect(granted.body).toMatchObject({ acquired: true, session_id: second });
      expect(Number(granted.body.token)).toBeGreaterThan(Number(held.body.token));
    });

    test('a waiter that hangs up leaves the queue, and the one behind it is granted (cases B02, B03)', async () => {
      const [holder, leaving, next] = [
        await on.openSession(),
        await on.openSession(),
        await on.openSession(),
      ];
      const held = await on.acquire('left', { session_id: holder });
      const controller = new AbortController();
      const left = on.client
        .send({
          method: 'POST',
          path: on.lockPath('left', '/acquire'),
          body: { session_id: leaving, wait_ms: 60_000 },
          signal: controller.signal,
        })
        .catch((error: unknown) => error);
      await on.waitersOf('left', 1);
      const waiting = on.acquire('left', { session_id: next, wait_ms: 60_000 });
      await on.waitersOf('left', 2);
      controller.abort();
      expect(await left).toBeInstanceOf(Error);
      await on.waitersOf('left', 1);
      await on.client.post(on.lockPath('left', '/release'), { session_id: holder, token: held.body.token });
      expect((await waiting).body).toMatchObject({ acquired: true, session_id: next });
    });

    test('the same request is the same acquire (case C10)', async () => {
      const session = await on.openSession();
      const fields = { session_id: session, request: 'retry-1' };
      const once = await on.acquire('retried', fields);
      const again = await on.acquire('retried', fields);
      expect(again.body).toMatchObject({ acquired: true, token: once.body.token });
      expect((await on.client.get(on.lockPath('retried'))).body.waiters).toBe(0);
    });

    test('colon forms and forms without /v1 are the same routes', async () => {
      const session = await on.openSession();
      const encoded = encodeURIComponent(`${on.alias}/aliased`);
      for (const action of [':', '/']) {
        const base = action === ':' ? `/v1/locks/${encoded}:` : `/locks/${encoded}/`;
        const { body } = await on.client.post(`${base}acquire`, { session_id: session });
        expect(body.acquired).toBe(true);
        const grant = { session_id: session, token: body.token };
        expect((await on.client.post(`${base}renew`, grant)).status).toBe(200);
        expect((await on.client.post(`${base}release`, grant)).body).toEqual({ released: true });
      }
      expect((await on.client.post(`/v1/sessions/${session}:keepalive`)).status).toBe(200);
      expect((await on.client.post(`/sessions/${session}/keepalive`)).status).toBe(200);
      expect((await on.client.get(`/locks/${encoded}`)).body.holder).toBeNull();
      expect((await on.client.get('/locks')).status).toBe(200);
      expect((await on.client.json({ method: 'DELETE', path: `/sessions/${session}` })).status).toBe(200);
    });

    test('an alias that is not served is told as such on every lock route', async () => {
      const session = await on.openSession();
      const grant = { session_id: session, token: 1 };
      const base = '/v1/locks/no-such-alias%2Fx';
      for (const answer of [
        await on.client.get(base),
        await on.client.get(`${base}/held?token=1`),
        await on.client.post(`${base}/acquire`, { session_id: session }),
        await on.client.post(`${base}/release`, grant),
        await on.client.post(`${base}/renew`, grant),
        await on.client.post(`${base}/stale-reports`, { token: 1, resource: 'table' }),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { code: 'NAMESPACE_NOT_FOUND' } });
      }
    });

    test('releasing what was never held changes nothing (case D01)', async () => {
      const [holder, other] = [await on.openSession(), await on.openSession()];
      const { body } = await on.acquire('kept', { session_id: holder });
      const token = Number(body.token);
      const wrong = await on.client.post(on.lockPath('kept', '/release'), { session_id: other, token });
      expect([409, 410]).toContain(wrong.status);
      const older = await on.client.post(on.lockPath('kept', '/release'), {
        session_id: other,
        token: token - 1,
      });
      expect(older).toMatchObject({ status: 409, body: { code: 'STALE_TOKEN' } });
      expect((await on.client.get(on.lockPath('kept'))).body.token).toBe(token);
    });

    test('a stale report is recorded', async () => {
      const answer = await on.client.post(on.lockPath('fenced', '/stale-reports'), {
        token: 7,
        resource: 'db.table',
      });
      expect(answer).toEqual({ status: 200, body: { recorded: true } });
    });

    test('the event stream has a line every second, and ends when the session does', async () => {
      const session = await on.openSession();
      const response = await on.client.open({ method: 'GET', path: `/v1/sessions/${session}/events` });
      expect(response.statusCode).toBe(200);
      expect(response.headers['content-type']).toBe('application/x-ndjson');
      const lines: { event: string }[] = [];
      const arrivals: number[] = [];
      const reading = (async () => {
        for await (const line of createInterface({ input: response })) {
          arrivals.push(performance.now());
          lines.push(JSON.parse(line));
        }
      })();
      await eventually(async () => lines.length >= 2);
      expect(lines.every(({ event }) => event === 'alive')).toBe(true);
      expect(arrivals[1]! - arrivals[0]!).toBeLessThan(1_000);
      await on.client.json({ method: 'DELETE', path: `/v1/sessions/${session}` });
      await reading;
      expect(lines.at(-1)).toMatchObject({ event: 'session_lost' });
      expect((await on.client.get(`/v1/sessions/${session}/events`)).status).toBe(410);
    });

    test('many sessions share a connection, and a session needs none of its own (case K01)', async () => {
      const sessions = await Promise.all(Array.from({ length: 20 }, () => on.openSession()));
      const taken = await Promise.all(
        sessions.map((session_id, index) => on.acquire(`shared-${index}`, { session_id })),
      );
      expect(taken.every(({ status }) => status === 200)).toBe(true);
      const elsewhere = new HttpClient(on.server.port);
      for (const [index, { body }] of taken.entries()) {
        const grant = { session_id: body.session_id, token: body.token };
        const { status } = await elsewhere.post(on.lockPath(`shared-${index}`, '/release'), grant);
        expect(status).toBe(200);
      }
      elsewhere.close();
    });
  });
}
