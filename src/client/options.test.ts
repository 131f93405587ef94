/** Where the API is, and names and durations that cannot be meant. */
import { expect, onTestFinished, test, vi } from 'vitest';
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
