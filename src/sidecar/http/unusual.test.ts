/** Requests that look odd but are right. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendBytes } from '../../../test/support/http/client.ts';
import { parse } from '../../../test/support/http/hostile.ts';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';

const QUIET_MS = 2_000;

describe('unusual requests that are right', () => {
  let served: ServedFake;
  beforeAll(async () => {
    served = await serveFake({ extraHosts: ['leasehold.internal'] });
  });
  afterAll(() => served.close());

  test.each([
    ['our hosts, any port', 'GET /v1/locks HTTP/1.1', ['host: LocalHost:1']],
    ['the IPv6 loopback address', 'GET /v1/locks HTTP/1.1', ['host: [::1]:7070']],
    ['a configured host', 'GET /v1/locks HTTP/1.1', ['host: leasehold.internal:80']],
    ['HTTP/1.0 without Host', 'GET /v1/locks HTTP/1.0', []],
    ['the absolute form', 'GET http://localhost:7070/v1/locks HTTP/1.1', ['host: whatever']],
    [
      'the absolute form with a query only',
      'GET http://localhost/v1/locks?limit=1 HTTP/1.1',
      ['host: localhost'],
    ],
    ['an empty query', 'GET /v1/locks? HTTP/1.1', ['host: localhost']],
    ['empty query parts', 'GET /v1/locks?&limit=5&& HTTP/1.1', ['host: localhost']],
    [
      'an upgrade we do not do',
      'GET /v1/locks HTTP/1.1',
      ['host: localhost', 'connection: upgrade', 'upgrade: h2c'],
    ],
  ])('%s', async (_title, line, headers) => {
    const bytes = Buffer.from(
      `${[line, ...headers, ...(line.endsWith('1.0') ? [] : ['connection: close'])].join('\r\n')}\r\n\r\n`,
    );
    const { status, body } = parse(await sendBytes(served.server.port, bytes, QUIET_MS));
    expect({ status, body }).toEqual({ status: 200, body: { locks: [] } });
  });

  test.each([
    ['no content type', {}],
    ['what curl -d sends', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['what fetch sends with a string', { 'content-type': 'text/plain;charset=UTF-8' }],
    ['JSON with parameters', { 'content-type': 'application/json; charset="UTF-8"; profile=x' }],
    ['a +json type', { 'content-type': 'application/merge-patch+json' }],
  ])('a body with %s', async (_title, headers) => {
    const body = '\uFEFF{"client":"a","keepalive":"app","ttl_s":7.001}';
    const sent = { method: 'POST', path: '/v1/sessions', body, headers: { 'content-type': '', ...headers } };
    const { status, body: answer } = await served.client.json(sent);
    expect({ status, ttl: answer.ttl_s }).toEqual({ status: 200, ttl: 7.001 });
  });

  test('a body of exactly 64 KiB is read', async () => {
    const empty = JSON.stringify({ client: 'a', keepalive: 'app' });
    const body = `${empty}${' '.repeat(64 * 1024 - empty.length)}`;
    expect((await served.client.json({ method: 'POST', path: '/v1/sessions', body })).status).toBe(200);
    const larger = await served.client.json({ method: 'POST', path: '/v1/sessions', body: `${body} ` });
    expect(larger).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE', limit: 65_536 } });
  });

  test('HEAD is GET without a body, but never opens a stream', async () => {
    const head = await served.client.send({ method: 'HEAD', path: '/v1/locks' });
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: '' });
    const stream = await served.client.send({ method: 'HEAD', path: '/v1/sessions/s/events' });
    expect({ status: stream.status, allow: stream.headers.allow }).toEqual({ status: 405, allow: 'GET' });
    expect(served.fake.calls).not.toContain('openEvents');
  });

  test('no answer carries a CORS header or says what it runs on', async () => {
    for (const path of ['/v1/locks', '/nowhere', '/livez']) {
      const { headers } = await served.client.send({ method: 'GET', path });
      const names = Object.keys(headers);
      expect(names.filter((name) => name.startsWith('access-control') || name === 'x-powered-by')).toEqual(
        [],
      );
      expect(headers['cache-control']).toBe('no-store');
    }
  });
});
