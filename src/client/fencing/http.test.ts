/** The HTTP fence over node:http, express and fetch-style handlers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fencedHandler, fencing, tokenHeader } from './http.ts';
import { StaleTokenError } from './stale-token.ts';
import { type FenceStore, MemoryFenceStore, PostgresFenceStore } from './store.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly token?: string;
}

type Send = (call: Call) => Promise<{ readonly status: number; readonly body: unknown }>;

interface Served {
  readonly send: Send;
  /** What reached the handler. */
  readonly handled: string[];
}

interface Setting {
  readonly store?: FenceStore;
  readonly report?: (stale: unknown) => Promise<void>;
}

const pathOf = (url: string) => new URL(url, 'http://x').pathname;
const resourceOf = (path: string) => (path === '/free' ? null : path);

function sendTo(base: string): Send {
  return async ({ method = 'POST', path = '/accounts/1', token }) => {
    const headers = token === undefined ? {} : { 'leasehold-token': token };
    const response = await fetch(`${base}${path}`, { method, headers });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  };
}

async function overNode({ store = new MemoryFenceStore(), ...rest }: Setting): Promise<Served> {
  const handled: string[] = [];
  const fence = fencing<IncomingMessage>({ store, resourceOf: ({ url = '' }) => resourceOf(url), ...rest });
  const server = createServer((request, response) =>
    fence(request, response, (error) => {
      handled.push(error === undefined ? `${request.method} ${request.url}` : `error ${String(error)}`);
      response.statusCode = error === undefined ? 200 : 500;
      response.end('{}');
    }),
  );
  return { send: sendTo(await listen(server)), handled };
}

async function overExpress({ store = new MemoryFenceStore(), ...rest }: Setting): Promise<Served> {
  const handled: string[] = [];
  const app = express();
  app.use(fencing<express.Request>({ store, resourceOf: ({ path }) => resourceOf(path), ...rest }));
  app.use((request, response) => {
    handled.push(`${request.method} ${request.url}`);
    response.json({});
  });
  app.use((error: unknown, _request: unknown, response: express.Response, _next: unknown) => {
    handled.push(`error ${String(error)}`);
    response.status(500).json({});
  });
  return { send: sendTo(await listen(createServer(app))), handled };
}

async function overFetch({ store = new MemoryFenceStore(), ...rest }: Setting): Promise<Served> {
  const handled: string[] = [];
  const handler = fencedHandler(
    { store, resourceOf: ({ url }) => resourceOf(pathOf(url)), ...rest },
    ({ method, url }, fenced) => {
      const path = pathOf(url);
      if (fenced !== null) expect(fenced.resource).toBe(path);
      handled.push(`${method} ${path}`);
      return Response.json({});
    },
  );
  const send: Send = async ({ method = 'POST', path = '/accounts/1', token }) => {
    const headers: Record<string, string> = token === undefined ? {} : { 'leasehold-token': token };
    const response = await handler(new Request(`http://x${path}`, { method, headers })).catch(
      (error: unknown) => {
        handled.push(`error ${String(error)}`);
        return Response.json({}, { status: 500 });
      },
    );
    return { status: response.status, body: await response.json() };
  };
  return { send, handled };
}

describe.each([
  ['node:http', overNode],
  ['express', overExpress],
  ['a fetch-style handler', overFetch],
])('the fence of %s', (_name, serve) => {
  it('passes an equal and a greater token, and answers a smaller one 409 before the handler runs', async () => {
    const { send, handled } = await serve({});
    for (const token of ['5', '5', '6']) expect((await send({ token })).status).toBe(200);
    const { status, body } = await send({ token: '5' });
    expect(status).toBe(409);
    expect(body).toEqual({
      code: 'STALE_TOKEN',
      message: 'token 5 is stale: /accounts/1 has seen 6',
      token: 5,
      current: 6,
      resource: '/accounts/1',
    });
    expect(handled).toHaveLength(3);
  });

  it('keeps each resource apart', async () => {
    const { send } = await serve({});
    await send({ token: '6' });
    expect((await send({ path: '/accounts/2', token: '5' })).status).toBe(200);
    expect((await send({ path: '/accounts/1', token: '5' })).status).toBe(409);
  });

  it.each(['0', '-1', '1.5', '1e3', '05', '+5', '0x5', '9007199254740992', '99999999999999999', '5, 6', 'x'])(
    'refuses %j as token',
    async (token) => {
      const { send, handled } = await serve({});
      const { status, body } = await send({ token });
      expect(status).toBe(400);
      expect(body).toMatchObject({ code: 'INVALID', field: 'leasehold-token' });
      expect(handled).toEqual([]);
    },
  );

  it('wants a token for a change of a fenced resource, and for nothing else', async () => {
    const { send, handled } = await serve({});
    expect((await send({ method: 'PUT' })).status).toBe(400);
    expect((await send({ method: 'GET' })).status).toBe(200);
    expect((await send({ path: '/free' })).status).toBe(200);
    expect(handled).toEqual(['GET /accounts/1', 'POST /free']);
  });

  it('lets nothing through when the store fails', async () => {
    const store = { raise: () => Promise.reject(new Error('no database')) };
    const { send, handled } = await serve({ store });
    expect((await send({ token: '5' })).status).toBe(500);
    expect(handled).toEqual(['error Error: no database']);
  });

  it('reports a refusal, and refuses also when that fails', async () => {
    const told: unknown[] = [];
    const report = async (stale: unknown) => {
      told.push(stale);
      throw new Error('no sidecar');
    };
    const { send } = await serve({ report });
    await send({ token: '6' });
    expect((await send({ token: '5' })).status).toBe(409);
    expect(told).toHaveLength(1);
    expect(told[0]).toBeInstanceOf(StaleTokenError);
    expect(told[0]).toMatchObject({ token: 5, current: 6, resource: '/accounts/1' });
  });

  it('leaves a request alone that a time-out has answered meanwhile', async () => {
    const store = new MemoryFenceStore();
    store.raise('/accounts/1', 6);
    const written: string[] = [];
    const response = {
      statusCode: 503,
      headersSent: false,
      setHeader: () => written.push('header'),
      end: (body: string) => written.push(body),
    };
    const next = vi.fn();
    fencing({ store, resourceOf: () => '/accounts/1' })(
      { method: 'POST', headers: tokenHeader(5) },
      response,
      next,
    );
    response.headersSent = true;
    await new Promise((resolve) => setImmediate(resolve));
    expect(written).toEqual([]);
    expect(next).not.toHaveBeenCalled();
  });

  it('with safeMethods checks reads too', async () => {
    const store = new MemoryFenceStore();
    store.raise('/accounts/1', 6);
    const handler = fencedHandler(
      { store, resourceOf: ({ url }) => pathOf(url), safeMethods: true },
      () => new Response(null),
    );
    expect((await handler(new Request('http://x/accounts/1', { headers: tokenHeader(5) }))).status).toBe(409);
  });
});

describe('MemoryFenceStore', () => {
  it('refuses new resources when it is full, and forgets no old one', () => {
    const store = new MemoryFenceStore({ resourcesMax: 2 });
    store.raise('a', 6);
    store.raise('b', 1);
    expect(() => store.raise('c', 1)).toThrow('full');
    expect(store.raise('a', 5)).toBe(6);
    expect(store.raise('b', 2)).toBe(2);
  });

  it('forgets at a restart: why it is for tests', () => {
    new MemoryFenceStore().raise('a', 6);
    expect(new MemoryFenceStore().raise('a', 5)).toBe(5);
  });
});

describe('PostgresFenceStore', () => {
  /** The first `failures` statements meet another transaction. */
  const storeThatMeets = (failures: number, code = '40001') => {
    const query = vi.fn(async () => {
      if (query.mock.calls.length <= failures)
        throw Object.assign(new Error('could not serialize'), { code });
      return { rows: [{}] };
    });
    return { store: new PostgresFenceStore({ query }), query };
  };

  it('begins again when a database that isolates strictly asks for that, a few times', async () => {
    expect(await storeThatMeets(4).store.raise('a', 6)).toBe(6);
    const { store, query } = storeThatMeets(99);
    await expect(store.raise('a', 6)).rejects.toThrow('could not serialize');
    expect(query).toHaveBeenCalledTimes(5);
  });

  it('lets every other failure through at once', async () => {
    const { store, query } = storeThatMeets(1, '57P01');
    await expect(store.raise('a', 6)).rejects.toThrow();
    expect(query).toHaveBeenCalledTimes(1);
  });
});
