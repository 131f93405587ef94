// The samples that `npm start` serves load without errors and say what their comments say.
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import { loadManifests } from './load.ts';

const folder = fileURLToPath(new URL('../../../config/samples', import.meta.url));

it('serves deploys, exports, jobs and payouts from config/samples', async () => {
  const result = await loadManifests({ paths: [folder] });
  if (!result.ok) expect(result.errors).toEqual([]);
  const configs = result.ok
    ? result.namespaces.map(({ lockNamespace }) => toNamespaceConfig(lockNamespace, { kind: 'unchecked' }))
    : [];
  expect(configs.map(({ name, safetyClass }) => [name, safetyClass])).toEqual([
    ['deploys', 'Efficiency'],
    ['exports', 'Efficiency'],
    ['jobs', 'Efficiency'],
    ['payouts', 'Correctness'],
  ]);
  expect(configs.map(({ ttlMs, lockDelayMs, maxHoldMs }) => [ttlMs, lockDelayMs, maxHoldMs])).toEqual([
    [30_000, 10_000, 7_200_000],
    [15_000, 0, 86_400_000],
    [15_000, 0, 43_200_000],
    [15_000, 0, 7_200_000],
  ]);
  expect(configs.find(({ name }) => name === 'exports')).toMatchObject({
    modes: ['exclusive', 'shared', 'semaphore'],
    semaphores: [{ pattern: 'jobs/*', permits: 10 }],
  });
  expect(result.notices).toEqual([]);
});
