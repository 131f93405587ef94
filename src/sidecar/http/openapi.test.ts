/** The API's description against the running server: every documented route, every documented answer. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRecord } from '../../../test/support/http/client.ts';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';
import { ERRORS, type ErrorCode, LeaseholdError } from '../../api/errors.ts';
import { openApiDocument } from './openapi.ts';
import type { RouteDocument } from './route.ts';
import { healthRoutes } from './routes/health.ts';
import { apiRoutes } from './routes/index.ts';

const ROUTES: readonly RouteDocument[] = [...apiRoutes, ...healthRoutes];
const EXAMPLE_SESSION = '7d0f2ab64f1c';
const EXAMPLE_TOKEN = '1871905113735168';
/** What no service can be made to throw: told by the HTTP layer itself. */
const OWN_CODES: readonly ErrorCode[] = ['INVALID', 'BODY_TOO_LARGE'];

let served: ServedFake;
let sessionId: string;
let token: number;

beforeAll(async () => {
  served = await serveFake();
});
afterAll(() => served.close());

/** A session and a grant of the example's lock, both new. */
async function prepare(): Promise<void> {
  ({ sessionId } = await served.fake.openSession({ client: 'payout-worker-1', keepalive: 'app' }));
  const taken = await served.fake.acquire('payouts/merchant-48213', {
    sessionId,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    waitMs: 0,
    purpose: '',
    hangUp: new AbortController().signal,
  });
  ({ token } = taken);
}

/** The example of a route, with a session and a token that exist. */
function exampleOf(route: RouteDocument) {
  const real = (text: string) =>
    text.replaceAll(EXAMPLE_SESSION, sessionId).replaceAll(EXAMPLE_TOKEN, String(token));
  const { path, body } = route.example;
  return {
    method: route.method,
    path: real(path),
    ...(body !== undefined && { body: real(JSON.stringify(body)) }),
  };
}

function schemaProblems(route: RouteDocument, answer: unknown): unknown {
  return route.answer.safeParse(answer).error?.issues;
}

describe('examples', () => {
  it.each(ROUTES)('$method $path', async (route) => {
    await prepare();
    if (route.id === 'acquireLock') await served.fake.release('payouts/merchant-48213', { sessionId, token });
    const response = await served.client.open(exampleOf(route));
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toMatch(new RegExp(`^${route.contentType}`));
    if (route.streams) {
      const first = await new Promise((resolve) => response.once('data', (chunk) => resolve(String(chunk))));
      response.destroy();
      expect(schemaProblems(route, JSON.parse(String(first)))).toBeUndefined();
    } else {
      let text = '';
      for await (const chunk of response) text += String(chunk);
      const isJson = route.contentType === 'application/json';
      expect(schemaProblems(route, isJson ? JSON.parse(text) : text)).toBeUndefined();
    }
    if (route.id !== 'closeSession') await served.fake.closeSession(sessionId);
  });

  it.each(ROUTES)('the shown answer of $method $path is one', ({ answer, body, example }) => {
    const shown = Array.isArray(example.answer) ? example.answer : [example.answer];
    for (const one of shown) {
      const isLine = typeof one === 'string' && one.startsWith('{');
      expect(answer.safeParse(isLine ? JSON.parse(one) : one).error?.issues).toBeUndefined();
    }
    if (body !== null && example.body !== undefined) expect(body.safeParse(example.body).success).toBe(true);
  });
});

describe('refusals', () => {
  const documented = ROUTES.flatMap((route) => route.errors.map((code) => ({ route, code })));
  const thrown = documented.filter(({ route, code }) => !OWN_CODES.includes(code) && route.id !== 'openApi');

  it.each(thrown.filter(({ route }) => route.id !== 'ready'))(
    '$code of $route.method $route.path',
    async ({ route, code }) => {
      await prepare();
      served.fake.failNext(
        new LeaseholdError(code, `told ${code}`, {
          lock_delay_ms: 5,
          holder: null,
          big: 2n ** 60n,
          code: 'X',
          retry_after_ms: 400,
        }),
      );
      const { status, headers, text } = await served.client.send(exampleOf(route));
      expect(status).toBe(ERRORS[code].status);
      const body: unknown = JSON.parse(text);
      expect(body).toMatchObject({ code, message: `told ${code}`, lock_delay_ms: 5, big: String(2n ** 60n) });
      expect(route.refusal.safeParse(body).error?.issues).toBeUndefined();
      const isLater = status === 429 || status === 503;
      expect(headers['retry-after']).toBe(isLater ? '1' : undefined);
      if (isLater && isRecord(body)) {
        expect(body.retry_after_ms).toBeGreaterThanOrEqual(400);
        expect(body.retry_after_ms).toBeLessThanOrEqual(800);
      }
      await served.fake.closeSession(sessionId);
    },
  );

  it('every route that takes a body documents INVALID and BODY_TOO_LARGE, and gives them', async () => {
    for (const route of ROUTES.filter(({ body }) => body !== null)) {
      expect(route.errors).toEqual(expect.arrayContaining([...OWN_CODES]));
      for (const [body, code] of [
        ['[]', 'INVALID'],
        [' '.repeat(70_000), 'BODY_TOO_LARGE'],
      ] as const) {
        const { text, status } = await served.client.send({ ...exampleOf(route), body });
        expect(status).toBe(ERRORS[code].status);
        const parsed: unknown = JSON.parse(text);
        expect(parsed).toMatchObject({ code });
        expect(route.refusal.safeParse(parsed).error?.issues).toBeUndefined();
      }
    }
  });

  it('every route of the main port documents and gives FORBIDDEN', async () => {
    for (const route of apiRoutes) {
      expect(route.errors).toContain('FORBIDDEN');
      const answer = await served.client.json({ ...exampleOf(route), headers: { origin: 'http://x' } });
      expect(answer).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    }
  });

  it('what nobody foresaw is UNAVAILABLE on every route, and does not say why', async () => {
    for (const route of apiRoutes.filter(({ id }) => id !== 'openApi')) {
      await prepare();
      served.fake.failNext(new RangeError('inner'));
      const { status, text } = await served.client.send(exampleOf(route));
      expect(status).toBe(503);
      expect(text).not.toContain('inner');
      expect(JSON.parse(text)).toMatchObject({ code: 'UNAVAILABLE' });
      await served.fake.closeSession(sessionId);
    }
  });
});

describe('OpenAPI document', () => {
  const document = openApiDocument();
  const text = JSON.stringify(document);

  it('is the one in the repository (npm run docs writes it)', () => {
    const kept = readFileSync(new URL('../../../openapi/leasehold.v1.json', import.meta.url), 'utf8');
    expect(JSON.parse(kept)).toEqual(JSON.parse(text));
  });

  it('is served', async () => {
    expect(await served.client.get('/v1/openapi.json')).toEqual({ status: 200, body: JSON.parse(text) });
  });

  it('has every route, and every status that the server gave above', () => {
    const paths = document.paths;
    for (const route of ROUTES) {
      expect(paths).toHaveProperty([route.path, route.method.toLowerCase(), 'operationId'], route.id);
      for (const code of route.errors) {
        const responses = [route.path, route.method.toLowerCase(), 'responses', String(ERRORS[code].status)];
        const codes = [...responses, 'content', 'application/json', 'schema', 'properties', 'code', 'enum'];
        expect(paths).toHaveProperty(codes, expect.arrayContaining([code]));
      }
    }
  });

  it('refers only to what is in it, and leaves nothing unused', () => {
    const references = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, id]) => id),
    );
    const { schemas } = document.components as { schemas: Record<string, unknown> };
    expect(references).toEqual(new Set(Object.keys(schemas)));
    expect(text.match(/"\$ref":"/g)).toHaveLength(
      text.match(/"\$ref":"#\/components\/schemas\//g)?.length ?? 0,
    );
    expect(text).not.toContain('"$id"');
  });
});
