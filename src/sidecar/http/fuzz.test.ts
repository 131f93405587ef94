/**
 * Any bytes on any connection: never a 5xx, never a crash. The arbitraries aim at what the routes look at
 * (paths, names, fields, framing), since pure noise ends in the parser.
 * A failure names its seed; LEASEHOLD_SEED=<seed> npx vitest run src/sidecar/http/fuzz.test.ts repeats it.
 */
import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendBytes } from '../../../test/support/http/client.ts';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));
const CONNECTIONS = 1_500;
const QUIET_MS = 1_000;

const lockName = fc.oneof(
  fc
    .string({ unit: 'binary', maxLength: 12 })
    .map((rest) => encodeURIComponent(`payouts/${rest.toWellFormed()}`)),
  fc.constantFrom('payouts%2Fa', 'payouts%2F', '%', '%2', '%ff', '..', '', 'a:b', '%00', 'payouts%2Fa%'),
  fc.string({ maxLength: 10 }),
  fc.integer({ min: 500, max: 600 }).map((length) => `payouts%2F${'x'.repeat(length)}`),
);
const action = fc.constantFrom(
  ...[
    '/acquire',
    '/release',
    '/renew',
    '/stale-reports',
    '/held',
    '',
    ':acquire',
    ':release',
    '/events',
    '/keepalive',
  ],
);
const query = fc.oneof(
  fc.constantFrom(
    '',
    '?',
    '?limit=5',
    '?prefix=payouts%2F',
    '?token=7',
    '?limit=1&limit=2',
    '?%',
    '?continue=YQ',
  ),
  fc.string({ maxLength: 20 }).map((text) => `?${text}`),
);
const path = fc.oneof(
  fc
    .tuple(fc.constantFrom('/v1/locks/', '/locks/', '/v1/sessions/', '/v1//locks/'), lockName, action, query)
    .map((parts) => parts.join('')),
  fc
    .tuple(
      fc.constantFrom(
        '/v1/sessions',
        '/v1/locks',
        '/v1/openapi.json',
        '/livez',
        '/readyz',
        '*',
        'http://localhost/v1/locks',
      ),
      query,
    )
    .map((parts) => parts.join('')),
  fc.webUrl(),
  fc.string({ unit: 'binary', maxLength: 40 }),
);
const method = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('GET', 'POST', 'DELETE') },
  { weight: 1, arbitrary: fc.constantFrom('HEAD', 'PUT', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT', 'get', '') },
  { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
);
const anyValue = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom('exclusive', 'app', 1, 0, -1, 1e308, 15, 's', 2 ** 53, null, true, [], {}),
);
const field = fc.constantFrom(
  ...[
    'client',
    'keepalive',
    'ttl_s',
    'max_hold_ms',
    'session_id',
    'token',
    'owner',
    'mode',
    'permits',
    'wait_ms',
  ],
  ...['reentrant', 'purpose', 'request', 'resource', '__proto__', 'constructor', 'toString', ''],
);
const body = fc.oneof(
  fc.array(fc.tuple(field, anyValue), { maxLength: 8 }).map((pairs) => {
    // Waits are cut short: this test is about the edge, not about patience.
    const text = pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',');
    return Buffer.from(`{${text}}`.replace(/"wait_ms":[0-9]+/g, '"wait_ms":1'));
  }),
  fc.constant(Buffer.from('{"client":"a","keepalive":"app"}')),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text)),
);
const header = fc.oneof(
  fc.constantFrom(
    ...[
      'content-type: application/json',
      'content-type: text/html',
      'content-encoding: gzip',
      'origin: http://x',
    ],
    ...[
      'host: evil',
      'expect: 100-continue',
      'expect: more',
      'transfer-encoding: chunked',
      'content-length: 1',
    ],
    ...[
      'connection: upgrade',
      'upgrade: websocket',
      'connection: keep-alive',
      'content-length: zz',
      ': x',
      'range: bytes=0-',
    ],
  ),
  fc
    .tuple(fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 20 }))
    .map(([name, value]) => `${name}: ${value}`),
);

const oneRequest = fc
  .record({
    method,
    path,
    headers: fc.oneof(
      { weight: 3, arbitrary: fc.constant<string[]>([]) },
      { weight: 2, arbitrary: fc.array(header, { maxLength: 3 }) },
    ),
    body,
  })
  .map(({ method: verb, path: target, headers, body: content }) => {
    const head = [
      `${verb} ${target} HTTP/1.1`,
      'host: localhost',
      ...headers,
      `content-length: ${content.length}`,
    ];
    return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'utf8'), content]);
  });

const onOneConnection = fc
  .tuple(
    fc.array(oneRequest, { minLength: 1, maxLength: 3 }),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(new Uint8Array()) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 30 }) },
    ),
  )
  // The last request asks for the end of the connection, so that silence is noticed.
  .map(([requests, junk]) =>
    Buffer.concat([
      ...requests,
      junk,
      Buffer.from('GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'),
    ]),
  );

describe(`any bytes on any connection (LEASEHOLD_SEED=${seed})`, () => {
  let served: ServedFake;
  beforeAll(async () => {
    served = await serveFake();
  });
  afterAll(() => served.close());

  it('is answered below 500 or closed, and harms nobody', async () => {
    const statuses = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(onOneConnection, async (bytes) => {
        const reply = await sendBytes(served.server.port, bytes, QUIET_MS);
        for (const [, status = ''] of reply.matchAll(/HTTP\/1\.1 ([0-9]{3}) /g)) {
          expect(Number(status), reply).toBeLessThan(500);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
        expect(served.logged).toEqual([]);
      }),
      { seed, numRuns: CONNECTIONS, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
    );
    expect((await served.client.get('/livez')).status).toBe(200);
    // The traffic reached the routes, not only the parser.
    for (const status of ['200', '400', '404', '405', '403']) {
      expect(statuses.get(status) ?? 0, `${status} of ${JSON.stringify([...statuses])}`).toBeGreaterThan(5);
    }
    console.log(`fuzz: ${JSON.stringify(Object.fromEntries(statuses))}`);
  });
});
