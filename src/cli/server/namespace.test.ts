/** The manifest of a lock server, and what is said of it at the start. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { loadNamespace } from './namespace.ts';

function manifest(consumers?: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-namespace-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'payouts.yaml');
  const document = {
    apiVersion: 'leasehold.dev/v1alpha1',
    kind: 'LockNamespace',
    metadata: { name: 'payouts', namespace: 'payments' },
    spec: { safety: { class: 'Efficiency', failureCost: 'none' }, consumers },
  };
  writeFileSync(path, stringify(document));
  return path;
}

test('consumers that nobody can be held against are known to be ignored', async () => {
  const path = manifest([{ namespace: 'payments', serviceAccounts: ['worker'] }]);
  expect(await loadNamespace(path, false)).toMatchObject({
    ignoresConsumers: true,
    config: { consumers: null },
  });
  const checked = await loadNamespace(path, true);
  expect(checked.ignoresConsumers).toBe(false);
  expect(checked.config.consumers).toEqual([{ namespace: 'payments', serviceAccounts: ['worker'] }]);
  expect((await loadNamespace(manifest(), false)).ignoresConsumers).toBe(false);
});

test('with tokens and no consumers all accounts of its own Kubernetes namespace are', async () => {
  const { config } = await loadNamespace(manifest(), true);
  expect(config.consumers).toEqual([{ namespace: 'payments', serviceAccounts: null }]);
});
