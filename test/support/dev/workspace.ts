/**
 * A folder of its own for one `leasehold dev`: manifests that a test states by what differs, and the data it keeps.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** What differs from a LockNamespace of class Efficiency with the shortest lease. Durations as manifests write them. */
export interface NamespaceSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly lease?: Readonly<Record<string, string>>;
  readonly queue?: Readonly<Record<string, unknown>>;
  readonly limits?: Readonly<Record<string, unknown>>;
  readonly consumers?: readonly unknown[];
}

/** In dev all applications come through one client, so its limit is that of them all. */
const LIMITS = {
  operationsPerSecond: 1_000_000,
  perClient: { locks: 20_000, operationsPerSecond: 1_000_000 },
};

function lockNamespace(spec: NamespaceSpec): string {
  const { name, namespace = 'test', lease = {}, queue = {}, limits = {}, consumers } = spec;
  return stringify({
    apiVersion: 'leasehold.dev/v1alpha1',
    kind: 'LockNamespace',
    metadata: { name, namespace },
    spec: {
      safety: { class: 'Efficiency' },
      lease: { ttl: '5s', ...lease },
      queue: { maxWait: '24h', ...queue },
      limits: { ...LIMITS, ...limits },
      ...(consumers === undefined ? {} : { consumers }),
    },
  });
}

export class Workspace {
  readonly root: string;
  readonly manifests: string;
  readonly data: string;

  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'leasehold-integration-'));
    this.manifests = join(this.root, 'manifests');
    this.data = join(this.root, 'data');
    mkdirSync(this.manifests);
  }

  /** One file per namespace, replaced as a whole as editors do it. */
  write(...specs: readonly NamespaceSpec[]): void {
    for (const spec of specs) this.writeText(`${spec.name}.yaml`, lockNamespace(spec));
  }

  textOf(spec: NamespaceSpec): string {
    return lockNamespace(spec);
  }

  writeText(file: string, text: string): void {
    const path = join(this.manifests, file);
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }

  removeManifest(name: string): void {
    rmSync(join(this.manifests, `${name}.yaml`));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
