/** Listening, the second port, and the metrics of both. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpClient, sendBytes } from '../../../test/support/http/client.ts';
import { serveFake } from '../../../test/support/http/serve-fake.ts';
import { createMetrics } from '../../platform/prometheus.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { createHealthApi, listenHttp } from './index.ts';

const runtime = createSystemRuntime({ logLevel: 'silent' });
const { logger } = runtime;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function listener(): void {
  throw new Error('nobody calls it');
}

async function served() {
  const fake = await serveFake();
  closing.push(fake.close);
  return fake;
}

/** Longer than a busy machine needs for the first answer of a cold server. */
const QUIET_MS = 3_000;

describe('listenHttp', () => {
  it('listens on the loopback address only', async () => {
    const { server } = await served();
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    expect(server.port).toBeGreaterThan(0);
  });

  it('says which port is taken, and by what setting to choose another', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    closing.push(() => new Promise((resolve) => taken.close(() => resolve())));
    const address = taken.address();
    if (address === null || typeof address === 'string') throw new Error('no address');
    const { port } = address;
    await expect(listenHttp({ listener, port, portSetting: '--port', logger })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is taken by another program. Stop that one, or choose another port with --port.`,
    );
  });

  it('names an address that this machine does not have', async () => {
    const options = { listener, port: 7070, host: '203.0.113.1', portSetting: '--port', logger };
    await expect(listenHttp(options)).rejects.toThrow(/Cannot listen on port 7070 of 203\.0\.113\.1/);
  });

  it('closes with connections open', async () => {
    const { server, client } = await serveFake();
    expect((await client.get('/livez')).status).toBe(200);
    await server.close();
    await expect(client.get('/livez')).rejects.toThrow();
    client.close();
  });

  it('answers several requests on one connection in order, and the junk behind them last', async () => {
    const { server } = await served();
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    const bytes = Buffer.from(request('/livez') + request('/nowhere') + request('/readyz'));
    const reply = await sendBytes(server.port, bytes, QUIET_MS);
    expect(reply.match(/HTTP\/1\.1 [0-9]+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200']);
    const junk = await sendBytes(server.port, Buffer.from('\0\x01TLS?\r\n\r\n'), QUIET_MS);
    expect(junk).toMatch(/^HTTP\/1\.1 400 .*"code":"INVALID"/s);
  });
});

describe('connections that other requests were made on', () => {
  it('a CONNECT behind a request that had closed the connection ended the process (write after end)', async () => {
    const { server, client } = await served();
    const closing = 'POST /v1/sessions HTTP/1.1\r\nhost: x\r\nexpect: more\r\ncontent-length: 2\r\n\r\n{}';
    const bytes = Buffer.from(`${closing}CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n`);
    expect(await sendBytes(server.port, bytes, QUIET_MS)).toMatch(/^HTTP\/1\.1 400 /);
    expect((await client.get('/livez')).status).toBe(200);
  });

  it('a CONNECT whose caller is gone at once', async () => {
    const { server, client } = await served();
    const socket = connect(server.port, '127.0.0.1');
    await new Promise<void>((resolve) => {
      socket.on('close', () => resolve());
      socket.write('CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n', () => socket.resetAndDestroy());
    });
    expect((await client.get('/livez')).status).toBe(200);
  });
});

describe('health and metrics', () => {
  it('the second port answers to any host, with health and metrics alone', async () => {
    let ready = false;
    const metrics = createMetrics({ processMetrics: true });
    const health = createHealthApi({ runtime, metrics, ready: () => ready });
    const server = await listenHttp({ listener: health, port: 0, portSetting: '--health-port', logger });
    const client = new HttpClient(server.port);
    closing.push(async () => {
      client.close();
      await server.close();
    });
    const headers = { host: '10.1.2.3:7071' };
    const get = (path: string) => client.send({ method: 'GET', path, headers });
    expect(await get('/livez')).toMatchObject({ status: 200, text: '{"live":true}' });
    expect(await get('/readyz')).toMatchObject({ status: 503 });
    ready = true;
    expect(await get('/readyz')).toMatchObject({ status: 200, text: '{"ready":true}' });
    expect((await get('/v1/locks')).status).toBe(404);
    const scraped = await get('/metrics');
    expect(scraped.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(scraped.text).toContain('process_resident_memory_bytes');
    expect(scraped.text).toContain('leasehold_http_requests_total{route="/livez",status="200",code="OK"} 1');
  });

  it('counts by route and code, whatever name or path was used', async () => {
    const { client, fake, metrics } = await served();
    const { sessionId } = await fake.openSession({ client: 'w', keepalive: 'app' });
    for (const rest of ['a', 'b', 'a']) {
      await client.post(`/v1/locks/payouts%2F${rest}:acquire`, { session_id: sessionId });
    }
    await client.get('/a/b/c');
    await client.get('/v1/locks/payouts%2F%zz');
    const text = await metrics.text();
    const route = '/v1/locks/{name}/acquire';
    expect(text).toContain(`leasehold_http_requests_total{route="${route}",status="200",code="OK"} 2`);
    expect(text).toContain(`leasehold_http_requests_total{route="${route}",status="409",code="HELD"} 1`);
    expect(text).toContain('leasehold_http_requests_total{route="unknown",status="404",code="NOT_FOUND"} 1');
    expect(text).toContain('leasehold_http_requests_total{route="unknown",status="400",code="INVALID"} 1');
    expect(text).toContain(`leasehold_http_request_seconds_count{route="${route}"} 3`);
    expect(text).not.toContain('payouts');
  });

  it('without `health` the main port has no health routes', async () => {
    const { client, close } = await serveFake({ health: false });
    closing.push(close);
    for (const path of ['/livez', '/readyz', '/metrics']) expect((await client.get(path)).status).toBe(404);
  });
});
