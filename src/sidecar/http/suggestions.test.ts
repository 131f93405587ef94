/** What is suggested for a path that is none. */
import { expect, test } from 'vitest';
import { apiRoutes } from './routes/index.ts';
import { suggestRoutes } from './suggestions.ts';

test.each([
  ['/v1/locks/payouts/x/acquire', 'POST /v1/locks/{name}/acquire', '/acquire'],
  ['/v1/locks/payouts/a/b/c/acquire', 'POST /v1/locks/{name}/acquire', '/acquire'],
  ['/locks/payouts/x/release', 'POST /v1/locks/{name}/release', '/release'],
  ['/v1/locks/payouts/x/renwe', 'POST /v1/locks/{name}/renew', ''],
  ['/v1/locks/payouts/x', 'GET /v1/locks/{name}', ''],
])('a slash in a name that was not encoded: %s', (path, expected, verb) => {
  const { routes, hint } = suggestRoutes(path, apiRoutes);
  expect(routes).toContain(expected);
  expect(routes).toHaveLength(3);
  expect(hint).toContain(`is sent as %2F: /v1/locks/payouts%2Fmerchant-48213${verb}`);
});

test('a slip in a word is no matter of slashes', () => {
  const { routes, hint } = suggestRoutes('/v1/locks/payouts%2Fx/aquire', apiRoutes);
  expect(routes[0]).toBe('POST /v1/locks/{name}/acquire');
  expect(hint).toContain('%2F');
  expect(suggestRoutes('/v1/session', apiRoutes)).toMatchObject({ hint: '' });
});
