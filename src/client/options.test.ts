/** Where the API is, and names and durations that cannot be meant. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { API_URL_DEFAULT } from '../api/limits.ts';
import { createClient, LeaseholdError } from './index.ts';
import { aliasOf, durationOf, urlFrom } from './options.ts';

test('the URL: as given, else LEASEHOLD_URL as it stands when the client is made, else the default', () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('LEASEHOLD_URL', undefined);
  expect(urlFrom({}).origin).toBe(API_URL_DEFAULT);
  vi.stubEnv('LEASEHOLD_URL', '');
  expect(urlFrom({}).origin).toBe(API_URL_DEFAULT);
  vi.stubEnv('LEASEHOLD_URL', 'http://127.0.0.1:8080/');
  expect(urlFrom({}).origin).toBe('http://127.0.0.1:8080');
  expect(urlFrom({ url: 'https://[::1]:9/x' }).href).toBe('https://[::1]:9/x');
  vi.stubEnv('LEASEHOLD_URL', 'somewhere');
  expect(() => createClient()).toThrow(/LEASEHOLD_URL/);
  expect(() => createClient({ url: '127.0.0.1:7070' })).toThrow(LeaseholdError);
});

test('names need an alias and a rest; durations are finite and not negative', () => {
  expect(aliasOf('jobs/a/b')).toBe('jobs');
  for (const name of ['', 'jobs', '/a', 'jobs/', 'jobs/\udfff'])
    expect(() => aliasOf(name)).toThrow(LeaseholdError);
  expect([0, 1.2, 86_400_000].map((durationMs) => durationOf('waitMs', durationMs))).toEqual([
    0, 2, 86_400_000,
  ]);
  for (const durationMs of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => durationOf('waitMs', durationMs)).toThrow(/waitMs/);
});

describe('slips of plain JavaScript are refused, with the option and what is allowed', () => {
  // What the compiler would not let through is what this is about.
  const loose = createClient as unknown as (
    ...given: unknown[]
  ) => Record<string, (...given: unknown[]) => unknown>;
  const told = async (call: () => unknown): Promise<string> => {
    const error = await Promise.resolve()
      .then(call)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LeaseholdError);
    expect(error).toMatchObject({ code: 'INVALID', retryable: false });
    return (error as LeaseholdError).message;
  };

  test.each([
    [[{ ttl: 15 }], 'ttl: is not an option here; there are url, client, ttlMs, keepalive'],
    [[{ keepalive: 'stream' }], 'keepalive: "stream" is not both or app'],
    [
      ['http://127.0.0.1:7070'],
      'options: "http://127.0.0.1:7070" is not an object with options (there are url,',
    ],
    [[null], 'options: null is not an object'],
  ])('createClient(...%j)', async (given, message) => {
    expect(await told(() => loose(...given))).toContain(message);
  });

  const work = (): void => undefined;
  test.each([
    ['acquire', [], 'name: undefined is not a string'],
    ['acquire', ['jobs/a', { waitMS: 5 }], 'waitMS: is not an option here; there are waitMs, mode, permits,'],
    ['acquire', ['jobs/a', { ttl: 5 }], 'ttl: is not an option here'],
    ['acquire', ['jobs/a', { signal: 5 }], 'signal: 5 is not an AbortSignal'],
    ['tryLock', ['jobs/a', { waitMs: 5 }], 'waitMs: is not an option here; there are mode,'],
    [
      'tryLock',
      ['jobs/a', { retry: 3 }],
      'retry: 3 is not an object with options (there are tries, baseMs, capMs)',
    ],
    ['tryLock', ['jobs/a', { retry: { times: 3 } }], 'times: is not an option here; there are tries,'],
    ['withLock', ['jobs/a'], 'work: undefined is not a function'],
    ['withLock', ['jobs/a', {}], 'work: [object Object] is not a function'],
    ['withLock', ['jobs/a', { waitMS: 5 }, work], 'waitMS: is not an option here'],
    ['withLock', [work], 'work: undefined is not a function'],
    ['withLocks', ['a/b', {}, work], 'names: is not an array'],
    ['withLocks', [['a/b', 7], {}, work], 'name: 7 is not a string'],
    ['describe', [], 'name: undefined is not a string'],
  ])('%s(...%j)', async (method, given, message) => {
    const client = loose();
    expect(await told(() => client[method]?.(...given))).toContain(message);
  });
});
