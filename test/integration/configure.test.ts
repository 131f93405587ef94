/** Admin.Configure: what it refuses, and `leasehold group configure` over it. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { configProblems } from '../../src/api/config-problems.ts';
import { adminServices, Group } from '../support/admin-services.ts';
import { leasehold } from '../support/cli.ts';
import { namespaceConfig } from '../support/core.ts';

const admin = adminServices();

async function configurable(alias: string): Promise<Group> {
  return Object.assign(await Group.start(alias), { isConfigurable: true });
}

function manifest(spec: object, name = 'payouts'): string {
  const path = join(dirname(admin.socketPath), 'manifest.yaml');
  const metadata = { name, namespace: 'test' };
  writeFileSync(
    path,
    stringify({
      apiVersion: 'leasehold.dev/v1alpha1',
      kind: 'LockNamespace',
      metadata,
      spec: { safety: { class: 'Efficiency' }, ...spec },
    }),
  );
  return path;
}

const cli = (...args: readonly string[]) =>
  leasehold(['group', 'configure', '--admin-socket', admin.socketPath, ...args]);

test('a manifest is compared, put into force once, and found unchanged after that', async () => {
  await admin.serve(await configurable('payouts'));
  const file = manifest({ limits: { heldLocks: 777 } });
  const dry = await cli('-f', file, '--dry-run', '-o', 'json');
  expect(dry).toMatchObject({ code: 0, stderr: '' });
  const told = JSON.parse(dry.stdout);
  expect(told).toMatchObject({ namespace: 'payouts', applied: false });
  expect(told.changes).toContainEqual({ field: 'heldLocks', from: expect.any(Number), to: 777 });
  expect((await admin.client.status(''))[0]?.configVersion).toBe(told.version - 1);
  const done = await cli('-f', file);
  expect(done.stdout).toMatch(/^FIELD +FROM +TO\n/);
  expect(done.stdout).toMatch(
    new RegExp(`heldLocks +\\d+ +777\n[\\s\\S]*payouts: version ${told.version} is in force\n$`),
  );
  const [status] = await admin.client.status('');
  expect(status).toMatchObject({ configVersion: told.version, config: { heldLocks: 777 } });
  expect((await cli('-f', file)).stdout).toContain('nothing to change');
  expect((await admin.client.status(''))[0]?.configVersion).toBe(told.version);
}, 40_000);

test('a manifest that is not valid, of another namespace, or for servers that read their own is refused', async () => {
  await admin.serve(await configurable('payouts'), await Group.start('filed'));
  const bad = await cli('-f', manifest({ limits: { heldLock: 1 } }), '-o', 'json');
  expect(bad.code).toBe(125);
  expect(JSON.parse(bad.stdout).message).toContain('heldLocks');
  const other = await cli('-f', manifest({}, 'elsewhere'));
  expect(other).toMatchObject({ code: 125, stderr: expect.stringContaining('served here: filed, payouts') });
  const filed = await cli('-f', manifest({ limits: { heldLocks: 5 } }, 'filed'), '-o', 'json');
  expect(filed.code).toBe(125);
  expect(JSON.parse(filed.stdout)).toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('edit the file'),
  });
}, 40_000);

test('absurd limits are refused by name, all at once, and change nothing', async () => {
  await admin.serve(await configurable('payouts'));
  const [before] = await admin.client.status('');
  const good = namespaceConfig({ namespace: 'test', name: 'payouts' });
  const absurd = { ...good, heldLocks: 0, maxWaitMs: 2 ** 53 - 1, ttlMs: 1, modes: [], name: 'other' };
  const refusal = admin.client.configure('', 99, absurd);
  await expect(refusal).rejects.toThrow(
    /ttlMs is 1,.*maxWaitMs is 9007199254740991.*heldLocks is 0.*modes.*name is "other"/,
  );
  await expect(admin.client.configure('', before?.configVersion ?? 0, good)).rejects.toThrow(
    /in force already/,
  );
  expect((await admin.client.status(''))[0]).toMatchObject({ configVersion: before?.configVersion });
});

test('every kind of problem has its field', () => {
  const good = namespaceConfig({});
  expect(configProblems(good)).toEqual([]);
  const fields = (differs: object) => configProblems({ ...good, ...differs }).map(({ field }) => field);
  expect(fields({ ttlMsMin: 60_000, ttlMs: 15_000 })).toEqual(['ttlMs']);
  expect(fields({ safetyClass: 'None' })).toEqual(['safetyClass']);
  expect(fields({ modes: ['exclusive', 'exclusive'] })).toEqual(['modes']);
  expect(fields({ semaphores: [{ pattern: 'a*b', permits: 0 }] })).toEqual([
    'semaphores.0.pattern',
    'semaphores.0.permits',
  ]);
  expect(
    fields({
      semaphores: [
        { pattern: '*', permits: 1 },
        { pattern: 'exports/*', permits: 3 },
      ],
    }),
  ).toEqual([]);
  expect(fields({ consumers: [{ namespace: '', serviceAccounts: [] }] })).toEqual([
    'consumers.0.namespace',
    'consumers.0.serviceAccounts',
  ]);
  expect(fields({ sessions: 1.5, waiters: -1 })).toEqual(['sessions', 'waiters']);
});
