/** What is wrong with a request before it gets near the log: every field at its bound and one beyond. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acquireCommand } from '../../../test/support/core.ts';
import type { Command } from '../../api/entry.ts';
import {
  CLIENT_BYTES_MAX,
  KEY_BYTES_MAX,
  LIST_LIMIT_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  RESOURCE_BYTES_MAX,
  WAIT_MS_MAX,
} from '../../api/limits.ts';
import { bucketOf } from '../../api/names.ts';
import type { ClientRequestBody } from '../../api/wire.ts';
import { encodeEntry } from '../../core/index.ts';
import { requestProblem } from './validate.ts';

const named = (name: string) => ({ name, bucket: bucketOf(name) });
const acquire = (differs: object = {}): ClientRequestBody => ({
  ...acquireCommand({ session: 1, key: 'k' }),
  ...differs,
});
const VALID: Record<string, ClientRequestBody> = {
  acquire: acquire(),
  release: { type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] },
  cancel: { type: 'cancel', session: 1, attach: 1, key: 'k', acks: [] },
  closeSession: { type: 'closeSession', session: 1, attach: 1, clean: true },
  attachWithSecret: { type: 'attachWithSecret', session: 1, attach: 2, secret: 's' },
  open: { type: 'open', client: 'c', ttlMs: 5_000, maxHoldMs: 0, secretHash: 'ab'.repeat(32) },
  reportStale: { type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'r' },
  getLock: { type: 'getLock', name: 'a' },
  listLocks: { type: 'listLocks', prefix: '', after: '', limit: 1 },
};

test.each(Object.entries(VALID))('a valid %s goes on', (_type, body) => {
  expect(requestProblem(body)).toBeNull();
});

describe.each<[field: string, max: number, body: (text: string) => ClientRequestBody]>([
  ['owner', OWNER_BYTES_MAX, (owner) => acquire({ owner })],
  ['purpose', PURPOSE_BYTES_MAX, (purpose) => acquire({ purpose })],
  ['key', KEY_BYTES_MAX, (key) => acquire({ key })],
  ['name', NAME_BYTES_MAX, (name) => acquire(named(name))],
  ['acks', KEY_BYTES_MAX, (ack) => acquire({ acks: ['k', ack] })],
  ['client', CLIENT_BYTES_MAX, (client) => ({ ...(VALID.open as object), client }) as ClientRequestBody],
  [
    'resource',
    RESOURCE_BYTES_MAX,
    (resource) => ({ ...(VALID.reportStale as object), resource }) as ClientRequestBody,
  ],
])('%s', (field, max, body) => {
  test.each([1, 2, 3, 4])('is counted in bytes: characters of %i', (bytes) => {
    const character = ['', 'a', 'é', '中', '\u{1f512}'][bytes] as string;
    const count = Math.floor(max / bytes);
    expect(requestProblem(body(character.repeat(count)))).toBeNull();
    expect(requestProblem(body(character.repeat(count + 1)))).toMatchObject({ field });
  });

  test('must be a well-formed text', () => {
    expect(requestProblem(body('\ud800'))).toMatchObject({ field });
    expect(requestProblem(body(7 as unknown as string))).toMatchObject({ field });
  });
});

describe('numbers are whole, not negative, and bounded', () => {
  test.each<[field: string, body: (value: number) => ClientRequestBody, max: number]>([
    ['wait_ms', (waitMs) => acquire({ waitMs }), WAIT_MS_MAX],
    ['session', (session) => acquire({ session }), Number.MAX_SAFE_INTEGER],
    ['attach', (attach) => acquire({ attach }), Number.MAX_SAFE_INTEGER],
    ['permits', (permits) => acquire({ permits }), PERMITS_MAX],
    ['mapVersion', (mapVersion) => acquire({ mapVersion }), Number.MAX_SAFE_INTEGER],
    ['limit', (limit) => ({ ...(VALID.listLocks as object), limit }) as ClientRequestBody, LIST_LIMIT_MAX],
    [
      'ttl_s',
      (ttlMs) => ({ ...(VALID.open as object), ttlMs }) as ClientRequestBody,
      Number.MAX_SAFE_INTEGER,
    ],
    [
      'token',
      (token) => ({ ...(VALID.release as object), token }) as ClientRequestBody,
      Number.MAX_SAFE_INTEGER,
    ],
  ])('%s', (field, body, max) => {
    expect(requestProblem(body(0))).toBeNull();
    expect(requestProblem(body(max))).toBeNull();
    for (const wrong of [max + 1, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '1' as unknown as number]) {
      expect(requestProblem(body(wrong))).toMatchObject({ field });
    }
  });
});

test('a wrong bucket, an unknown mode, an empty key, too many acks and an unknown type are refused', () => {
  expect(requestProblem(acquire({ bucket: bucketOf('a') + 1 }))).toMatchObject({ field: 'bucket' });
  expect(requestProblem(acquire({ mode: 'both' }))).toMatchObject({ field: 'mode' });
  expect(requestProblem(acquire({ key: '' }))).toMatchObject({ field: 'key' });
  expect(requestProblem(acquire({ acks: Array.from({ length: 257 }, () => 'k') }))).toMatchObject({
    field: 'acks',
    limit: 256,
  });
  expect(requestProblem({ type: 'resign', epoch: 1 } as unknown as ClientRequestBody)).toMatchObject({
    field: 'type',
  });
});

test('rule C13: whatever passes can be written into an entry, whatever was sent', () => {
  const anything = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
  );
  const field = fc.constantFrom(
    'session',
    'attach',
    'name',
    'token',
    'key',
    'acks',
    'clean',
    'mode',
    'permits',
    'reentrant',
    'owner',
    'purpose',
    'waitMs',
    'bucket',
    'mapVersion',
    'secret',
    'secretHash',
    'client',
    'ttlMs',
    'maxHoldMs',
    'resource',
    'prefix',
  );
  let passed = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(VALID)),
      fc.array(fc.tuple(field, fc.oneof(anything, fc.array(anything, { maxLength: 3 }))), { maxLength: 2 }),
      (valid, changes) => {
        const body = { ...valid };
        for (const [name, value] of changes) if (name in body) Object.assign(body, { [name]: value });
        if (requestProblem(body) !== null || body.type === 'getLock' || body.type === 'listLocks') return;
        if (body.type === 'open' || body.type === 'attachWithSecret') return;
        passed++;
        encodeEntry({
          format: 1,
          behaviour: 1,
          lineage: 'l',
          epoch: 1,
          index: 1,
          at: 0,
          wallMs: 0,
          previous: '',
          eventHash: '',
          commands: [body satisfies Command],
        });
      },
    ),
    { numRuns: 3_000 },
  );
  expect(passed).toBeGreaterThan(100);
});
