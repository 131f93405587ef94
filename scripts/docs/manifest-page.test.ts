/** What docs/MANIFEST.md says beyond the schema is true: its example, its rules, and who uses which field. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { toNamespaceConfig } from '../../src/api/locknamespace/effective.ts';
import { API_VERSION, LOCK_NAMESPACE_KIND } from '../../src/api/locknamespace/schema.ts';
import { validateLockNamespace } from '../../src/api/locknamespace/validate.ts';
import { permitsOf } from '../../src/core/policy.ts';
import { loadManifests } from '../../src/platform/manifests/load.ts';
import { fieldsInForce, manifestFields } from './manifest-fields.ts';
import { EXAMPLE, MINIMAL } from './manifest-page.ts';
import { RULES_IN_WORDS } from './manifest-rules.ts';

const folder = mkdtempSync(join(tmpdir(), 'leasehold-manifest-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function loaded(yaml: string) {
  const file = join(folder, 'example.yaml');
  writeFileSync(file, yaml);
  const result = await loadManifests({ paths: [file] });
  expect(result).toMatchObject({ ok: true, notices: [] });
  const [first] = result.ok ? result.namespaces : [];
  if (first === undefined) throw new Error('no LockNamespace in the example');
  return first.lockNamespace;
}

describe('the examples', () => {
  it('load', async () => {
    expect((await loaded(MINIMAL)).metadata.name).toBe('jobs');
    expect((await loaded(EXAMPLE)).spec.modes).toEqual(['Exclusive', 'Shared', 'Semaphore']);
  });

  it('write every field of the tables', () => {
    const written = new Set<string>();
    collectPaths(parse(EXAMPLE), '', written);
    const missing = manifestFields().filter(({ path }) => !written.has(path));
    expect(missing.map(({ path }) => path)).toEqual([]);
  });

  it('give permits as the page says', async () => {
    const config = toNamespaceConfig(await loaded(EXAMPLE), { kind: 'unchecked' });
    const permits = (name: string) => permitsOf(config, name);
    expect(['jobs/nightly', 'jobs/nightly2', 'jobs/a/b', 'jobs', 'dataset'].map(permits)).toEqual([
      1,
      10,
      10,
      null,
      null,
    ]);
    const all = { ...config, semaphores: [{ pattern: '*', permits: 3 }] };
    expect(permitsOf(all, 'anything')).toBe(3);
  });
});

describe('the tables', () => {
  it('say of each field what it takes and what it means', () => {
    const fields = manifestFields();
    expect(fields.filter(({ takes, meaning }) => takes === '' || meaning === '')).toEqual([]);
    const byPath = new Map(fields.map((field) => [field.path, field]));
    expect(byPath.get('spec.lease.ttl')).toMatchObject({ byDefault: '15s', isRequired: false });
    expect(byPath.get('spec.lease.ttl')?.takes).toContain('from 5s to 60s');
    expect(byPath.get('spec.semaphores[].permits')).toMatchObject({ byDefault: null, isRequired: true });
  });

  it('tell what has an effect without a cluster', async () => {
    const inForce = fieldsInForce(await loaded(EXAMPLE));
    const parts = ['lease.ttl', 'semaphores[].pattern', 'limits.perClient.locks', 'modes', 'safety.class'];
    for (const part of parts) expect(inForce).toContain(`spec.${part}`);
    const clusterOnly = ['group', 'consumers', 'paused', 'safety.fencedResource', 'safety.failureCost'];
    for (const part of clusterOnly) expect(inForce).not.toContain(`spec.${part}`);
  });
});

it.each(RULES_IN_WORDS)('rule: $words', ({ brokenBy, at }) => {
  const manifest = {
    apiVersion: API_VERSION,
    kind: LOCK_NAMESPACE_KIND,
    metadata: { name: 'jobs' },
    spec: brokenBy,
  };
  const result = validateLockNamespace(manifest);
  expect(result.ok ? [] : result.problems.map(({ path }) => path.join('.'))).toEqual([at]);
});

/** Paths as `manifestFields` writes them. */
function collectPaths(value: unknown, path: string, into: Set<string>): void {
  if (path !== '') into.add(path);
  if (Array.isArray(value)) for (const item of value) collectPaths(item, `${path}[]`, into);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      collectPaths(part, path === '' ? key : `${path}.${key}`, into);
    }
  }
}
