/**
 * What every `SidecarService` must do through the HTTP API. Call it with a factory of the service to test; it serves the
 * API on a free port and uses two aliases at most, the first of the service. No test here waits longer than a second.
 */

import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/platform/metrics.ts';
import type { Runtime } from '../../../src/platform/runtime.ts';
import { createHttpApi, type HttpApi, type HttpServer, listenHttp } from '../../../src/sidecar/http/index.ts';
import type { SidecarService } from '../../../src/sidecar/service.ts';
import { HttpClient } from './client.ts';

export interface ServiceUnderTest {
  readonly service: SidecarService;
  readonly runtime: Runtime;
  close(): Promise<void>;
}

const SOON_MS = 5_000;
const POLL_MS = 5;

export function describeRoutes(title: string, makeService: () => Promise<ServiceUnderTest>): void {
  describe(`HTTP routes over ${title}`, () => {
    let under: ServiceUnderTest;
    let api: HttpApi;
    let server: HttpServer;
    let client: HttpClient;
    let alias: string;

    beforeEach(async () => {
      under = await makeService();
      const { service, runtime } = under;
      api = createHttpApi({ service, runtime, metrics: createMetrics(), health: true });
      server = await listenHttp({
        listener: api.listener,
        port: 0,
        portSetting: '--port',
        logger: runtime.logger,
      });
      client = new HttpClient(server.port);
      alias = service.aliases()[0]!;
    });

    afterEach(async () => {
      client.close();
      api.beginStop();
      await server.close();
      await under.close();
    });

    const lockPath = (rest: string, action = '') =>
      `/v1/locks/${encodeURIComponent(`${alias}/${rest}`)}${action}`;

    async function openSession(name = 'worker'): Promise<string> {
      const { status, body } = await client.post('/v1/sessions', {
        client: name,
        ttl_s: 15,
        keepalive: 'app',
      });
      expect(status, JSON.stringify(body)).toBe(200);
      return String(body.session_id);
    }

    async function acquire(rest: string, fields: object) {
      return await client.post(lockPath(rest, '/acquire'), fields);
    }

    async function waitersOf(rest: string, count: number): Promise<void> {
      await eventually(async () => (await client.get(lockPath(rest))).body.waiters === count);
    }

    test('a lock is taken, looked at, renewed, given back, and given back again', async () => {
      const session = await openSession();
      const name = `${alias}/merchant-1`;
      const taken = await acquire('merchant-1', { session_id: session, owner: 'job', purpose: 'pay' });
      expect(taken.body).toMatchObject({ acquired: true, session_id: session, lease_ttl_ms: 15_000 });
      expect(taken.body.deadline_monotonic_ns).toMatch(/^[0-9]+$/);
      const token = Number(taken.body.token);
      expect(token).toBeGreaterThan(0);

      const seen = await client.get(lockPath('merchant-1'));
      expect(seen.body).toMatchObject({ name, token, owner: 'job', purpose: 'pay', waiters: 0, queue: [] });
      expect(seen.body.holder).toMatchObject({ client: 'worker', owner: 'job', token, mode: 'exclusive' });
      const held = await client.get(lockPath('merchant-1', `/held?token=${token}`));
      expect(held.body).toMatchObject({ held: true });
      expect(held.body.deadline_in_ms).toBeGreaterThan(0);
      const other = await client.get(lockPath('merchant-1', `/held?token=${token - 1}`));
      expect(other.body).toEqual({ held: false });

      const grant = { session_id: session, token };
      expect((await client.post(lockPath('merchant-1', '/renew'), grant)).body).toMatchObject({
        renewed: true,
        ...grant,
      });
      expect(await client.post(lockPath('merchant-1', '/release'), grant)).toEqual({
        status: 200,
        body: { released: true },
      });
      expect(await client.post(lockPath('merchant-1', '/release'), grant)).toEqual({
        status: 200,
        body: { released: true, already: true },
      });
      expect((await client.post(lockPath('merchant-1', '/renew'), grant)).status).toBe(410);
      const free = await client.get(lockPath('merchant-1'));
      expect(free).toMatchObject({
        status: 200,
        body: { name, holder: null, token: null, owner: null, waiters: 0 },
      });
    });

    test('keepalive answers the deadline, DELETE frees everything, afterwards the session is gone', async () => {
      const session = await openSession();
      await acquire('a', { session_id: session });
      await acquire('b', { session_id: session });
      const kept = await client.post(`/v1/sessions/${session}/keepalive`);
      expect(kept.status).toBe(200);
      expect(kept.body.deadline_in_ms).toBeGreaterThan(0);
      expect(await client.json({ method: 'DELETE', path: `/v1/sessions/${session}` })).toEqual({
        status: 200,
        body: { closed: true },
      });
      for (const rest of ['a', 'b']) expect((await client.get(lockPath(rest))).body.holder).toBeNull();
      const after = await client.post(`/v1/sessions/${session}/keepalive`);
      expect(after).toMatchObject({ status: 410, body: { code: 'SESSION_EXPIRED' } });
      expect((await acquire('a', { session_id: session })).body).toMatchObject({
        acquired: false,
        code: 'SESSION_EXPIRED',
        name: `${alias}/a`,
      });
    });

    test('an acquire without session_id opens a session that the answer names', async () => {
      const taken = await acquire('one-lock', { client: 'script', ttl_s: 7.5 });
      expect(taken.body).toMatchObject({ acquired: true, lease_ttl_ms: 7_500 });
      const { session_id, token } = taken.body;
      expect((await client.post(lockPath('one-lock', '/renew'), { session_id, token })).status).toBe(200);
      expect((await client.post(lockPath('one-lock', '/release'), { session_id, token })).status).toBe(200);
    });

    test('who does not wait is told who holds; who waits is told when the wait is over (case C12)', async () => {
      const [first, second] = [await openSession('first'), await openSession('second')];
      const { body: holder } = await acquire('busy', { session_id: first, owner: 'the-owner' });
      for (const [fields, code] of [
        [{}, 'HELD'],
        [{ wait_ms: 30 }, 'WAIT_TIMEOUT'],
      ] as const) {
        const refused = await acquire('busy', { session_id: second, ...fields });
        expect(refused).toMatchObject({
          status: 409,
          body: { acquired: false, code, name: `${alias}/busy` },
        });
        expect(refused.body.holder).toMatchObject({
          owner: 'the-owner',
          client: 'first',
          token: holder.token,
        });
      }
    });

    test('a waiter is granted by the release, with a higher token', async () => {
      const [first, second] = [await openSession(), await openSession()];
      const held = await acquire('queue', { session_id: first });
      const waiting = acquire('queue', { session_id: second, wait_ms: 60_000 });
      await waitersOf('queue', 1);
      const seen = await client.get(lockPath('queue'));
      expect(seen.body.queue).toMatchObject([{ client: 'worker', mode: 'exclusive' }]);
      await client.post(lockPath('queue', '/release'), { session_id: first, token: held.body.token });
      const granted = await waiting;
      expect(granted.body).toMatchObject({ acquired: true, session_id: second });
      expect(Number(granted.body.token)).toBeGreaterThan(Number(held.body.token));
    });

    test('a waiter that hangs up leaves the queue, and the one behind it is granted (cases B02, B03)', async () => {
      const [holder, leaving, next] = [await openSession(), await openSession(), await openSession()];
      const held = await acquire('left', { session_id: holder });
      const controller = new AbortController();
      const left = client
        .send({
          method: 'POST',
          path: lockPath('left', '/acquire'),
          body: { session_id: leaving, wait_ms: 60_000 },
          signal: controller.signal,
        })
        .catch((error: unknown) => error);
      await waitersOf('left', 1);
      const waiting = acquire('left', { session_id: next, wait_ms: 60_000 });
      await waitersOf('left', 2);
      controller.abort();
      expect(await left).toBeInstanceOf(Error);
      await waitersOf('left', 1);
      await client.post(lockPath('left', '/release'), { session_id: holder, token: held.body.token });
      expect((await waiting).body).toMatchObject({ acquired: true, session_id: next });
    });

    test('the same request is the same acquire (case C10)', async () => {
      const session = await openSession();
      const fields = { session_id: session, request: 'retry-1' };
      const once = await acquire('retried', fields);
      const again = await acquire('retried', fields);
      expect(again.body).toMatchObject({ acquired: true, token: once.body.token });
      expect((await client.get(lockPath('retried'))).body.waiters).toBe(0);
    });

    test('colon forms and forms without /v1 are the same routes', async () => {
      const session = await openSession();
      const encoded = encodeURIComponent(`${alias}/aliased`);
      for (const action of [':', '/']) {
        const base = action === ':' ? `/v1/locks/${encoded}:` : `/locks/${encoded}/`;
        const { body } = await client.post(`${base}acquire`, { session_id: session });
        expect(body.acquired).toBe(true);
        const grant = { session_id: session, token: body.token };
        expect((await client.post(`${base}renew`, grant)).status).toBe(200);
        expect((await client.post(`${base}release`, grant)).body).toEqual({ released: true });
      }
      expect((await client.post(`/v1/sessions/${session}:keepalive`)).status).toBe(200);
      expect((await client.post(`/sessions/${session}/keepalive`)).status).toBe(200);
      expect((await client.get(`/locks/${encoded}`)).body.holder).toBeNull();
      expect((await client.get('/locks')).status).toBe(200);
      expect((await client.json({ method: 'DELETE', path: `/sessions/${session}` })).status).toBe(200);
    });

    test('names keep every character, the same on every route (cases H02, H04, H05, H10)', async () => {
      const session = await openSession();
      const names = [
        ...['a', 'a/b', 'a/b/c', 'a//b', '/a', 'a/', '..', '../x', '.', ' a', 'a ', ' ', 'a b', 'a+b', '+'],
        ...[
          'a\u0000b',
          'a\nb',
          'a\r\nb',
          '\t',
          'a:b',
          ':acquire',
          'a:release',
          '%',
          '%2F',
          '%252F',
          'a%00',
          '?x=1',
        ],
        ...[
          '#x',
          'a&b',
          'a;b',
          'a\\b',
          '"',
          "'",
          '<x>',
          '{name}',
          '*',
          '~',
          '\u00e9',
          'e\u0301',
          '\u{1F512}',
          'A',
        ],
        ...[
          '\uFEFF',
          '\u200B',
          '\u202E',
          'constructor',
          '__proto__',
          'acquire',
          'held',
          'null',
          'x'.repeat(512),
        ],
      ];
      expect(new Set(names).size).toBe(names.length);
      const tokens = new Map<string, unknown>();
      for (const rest of names) {
        const { status, body } = await acquire(rest, { session_id: session });
        expect({ rest, status }).toEqual({ rest, status: 200 });
        tokens.set(`${alias}/${rest}`, body.token);
      }
      for (const rest of names) {
        const name = `${alias}/${rest}`;
        const token = tokens.get(name);
        expect((await client.get(lockPath(rest))).body).toMatchObject({ name, token });
        expect((await client.get(lockPath(rest, `/held?token=${token}`))).body.held).toBe(true);
      }
      const listed = await client.get(`/v1/locks?prefix=${encodeURIComponent(`${alias}/`)}&limit=1000`);
      expect(listed.body.locks).toHaveLength(names.length);
      for (const rest of names) {
        const grant = { session_id: session, token: tokens.get(`${alias}/${rest}`) };
        const colonForm = `/v1/locks/${encodeURIComponent(`${alias}/${rest}`)}:release`;
        expect({ rest, ...(await client.post(colonForm, grant)).body }).toEqual({ rest, released: true });
      }
    });

    test('texts work at their limit in bytes and are shown whole; one byte more is refused before queueing (case H09)', async () => {
      const session = await openSession();
      const owner = '\u{1F512}'.repeat(64);
      const purpose = '\u00e9'.repeat(512);
      expect((await acquire('limits', { session_id: session, owner, purpose })).status).toBe(200);
      expect((await client.get(lockPath('limits'))).body).toMatchObject({ owner, purpose, waiters: 0 });
      for (const [field, value, limit] of [
        ['owner', `${owner}x`, 256],
        ['purpose', `${purpose}x`, 1024],
        ['request', 'r'.repeat(65), 64],
      ] as const) {
        const refused = await acquire('limits', { session_id: session, wait_ms: 60_000, [field]: value });
        expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID', field, limit } });
      }
      expect((await client.get(lockPath('limits'))).body.waiters).toBe(0);
    });

    test('a name of 512 bytes is fine, of 513 it is refused, the same on every route (case H07)', async () => {
      const session = await openSession();
      for (const [rest, status] of [
        ['\u00e9'.repeat(256), 200],
        [`${'\u00e9'.repeat(256)}x`, 400],
      ] as const) {
        expect((await acquire(rest, { session_id: session })).status).toBe(status);
        expect((await client.get(lockPath(rest))).status).toBe(status);
        expect((await client.get(lockPath(rest, '/held?token=1'))).status).toBe(status);
      }
    });

    test('lists come in pages that join without gap or repeat', async () => {
      const session = await openSession();
      const names = ['p/1', 'p/2', 'p/3', 'p/\u00e9', 'p/\u{1F512}'];
      for (const rest of [...names, 'q/1']) await acquire(rest, { session_id: session });
      const prefix = encodeURIComponent(`${alias}/p/`);
      const seen: unknown[] = [];
      let next: string | undefined;
      for (let page = 0; page < 10; page++) {
        const from: string = next === undefined ? '' : `&continue=${encodeURIComponent(next)}`;
        const { body } = await client.get(`/v1/locks?prefix=${prefix}&limit=2${from}`);
        for (const lock of body.locks as { name: string }[]) seen.push(lock.name);
        next = body.continue === undefined ? undefined : String(body.continue);
        if (next === undefined) break;
      }
      expect(seen).toHaveLength(names.length);
      expect(new Set(seen)).toEqual(new Set(names.map((rest) => `${alias}/${rest}`)));
    });

    test('an alias that is not served is told as such on every lock route', async () => {
      const session = await openSession();
      const grant = { session_id: session, token: 1 };
      const base = '/v1/locks/no-such-alias%2Fx';
      for (const answer of [
        await client.get(base),
        await client.get(`${base}/held?token=1`),
        await client.post(`${base}/acquire`, { session_id: session }),
        await client.post(`${base}/release`, grant),
        await client.post(`${base}/renew`, grant),
        await client.post(`${base}/stale-reports`, { token: 1, resource: 'table' }),
        await client.get('/v1/locks?prefix=no-such-alias%2F'),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { code: 'NAMESPACE_NOT_FOUND' } });
      }
    });

    test('releasing what was never held changes nothing (case D01)', async () => {
      const [holder, other] = [await openSession(), await openSession()];
      const { body } = await acquire('kept', { session_id: holder });
      const token = Number(body.token);
      const wrong = await client.post(lockPath('kept', '/release'), { session_id: other, token });
      expect([409, 410]).toContain(wrong.status);
      const older = await client.post(lockPath('kept', '/release'), { session_id: other, token: token - 1 });
      expect(older).toMatchObject({ status: 409, body: { code: 'STALE_TOKEN' } });
      expect((await client.get(lockPath('kept'))).body.token).toBe(token);
    });

    test('a stale report is recorded', async () => {
      const answer = await client.post(lockPath('fenced', '/stale-reports'), {
        token: 7,
        resource: 'db.table',
      });
      expect(answer).toEqual({ status: 200, body: { recorded: true } });
    });

    test('the event stream has a line every second, and ends when the session does', async () => {
      const session = await openSession();
      const response = await client.open({ method: 'GET', path: `/v1/sessions/${session}/events` });
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
      await client.json({ method: 'DELETE', path: `/v1/sessions/${session}` });
      await reading;
      expect(lines.at(-1)).toMatchObject({ event: 'session_lost' });
      expect((await client.get(`/v1/sessions/${session}/events`)).status).toBe(410);
    });

    test('many sessions share a connection, and a session needs none of its own (case K01)', async () => {
      const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession()));
      const taken = await Promise.all(
        sessions.map((session_id, index) => acquire(`shared-${index}`, { session_id })),
      );
      expect(taken.every(({ status }) => status === 200)).toBe(true);
      const elsewhere = new HttpClient(server.port);
      for (const [index, { body }] of taken.entries()) {
        const grant = { session_id: body.session_id, token: body.token };
        const { status } = await elsewhere.post(lockPath(`shared-${index}`, '/release'), grant);
        expect(status).toBe(200);
      }
      elsewhere.close();
    });
  });
}

/** Waits until `isSo`; fails when it takes longer than five seconds. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + SOON_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('it did not happen within five seconds');
    await pause(POLL_MS);
  }
}
