/** `leasehold group configure`: a manifest into force, through Admin.Configure. */
import type { NamespaceConfig } from '../../api/config.ts';
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import type { LockNamespace } from '../../api/locknamespace/schema.ts';
import { formatFindings } from '../../platform/manifests/format.ts';
import { loadManifests } from '../../platform/manifests/load.ts';
import { withAdminClient } from '../admin/with-admin-client.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import type { AdminTarget, OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { table } from '../output/table.ts';

export interface ConfigureFlags extends AdminTarget {
  readonly filename: string;
  readonly dryRun?: true;
  readonly output: OutputFormat;
}

interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

export async function configure(flags: ConfigureFlags): Promise<boolean> {
  const manifest = await manifestIn(flags.filename);
  const namespace = manifest.metadata.name;
  const outcome = await withAdminClient(flags, async (client) => {
    const [status] = await client.status(namespace);
    if (status === undefined) throw new UnavailableError(`${namespace} is not served there`);
    const config = configOf(manifest, status.config);
    const changes = changesBetween(status.config, config);
    if (changes.length === 0) return { changes, applied: false, version: status.configVersion };
    const version = status.configVersion + 1;
    const applied = flags.dryRun !== true;
    if (applied) await client.configure(namespace, version, config);
    return { changes, applied, version };
  });
  const lines =
    flags.output === 'json' ? [JSON.stringify({ namespace, ...outcome })] : describe(namespace, outcome);
  for (const line of lines) await print(line);
  return true;
}

async function manifestIn(path: string): Promise<LockNamespace> {
  const loaded = await loadManifests({ paths: [path] });
  if (!loaded.ok) throw new UsageError(formatFindings(loaded.errors));
  const [only] = loaded.namespaces;
  if (only !== undefined && loaded.namespaces.length === 1) return only.lockNamespace;
  throw new UsageError(`${path} holds ${loaded.namespaces.length} LockNamespaces; give one`);
}

/** Where nobody proves who he is, consumers cannot be checked, and stay unchecked. */
function configOf(manifest: LockNamespace, current: NamespaceConfig | null): NamespaceConfig {
  if (current !== null && current.consumers === null)
    return toNamespaceConfig(manifest, { kind: 'unchecked' });
  return toNamespaceConfig(manifest, {
    kind: 'checked',
    namespacesOf: () => {
      throw new UsageError('consumers with a namespaceSelector need a cluster: name the namespaces');
    },
  });
}

/** Field by field, in the order of the configuration; the first one changes all. */
function changesBetween(from: NamespaceConfig | null, to: NamespaceConfig): readonly Change[] {
  return (Object.keys(to) as (keyof NamespaceConfig)[]).flatMap((field) => {
    const before = from === null ? null : from[field];
    return JSON.stringify(before) === JSON.stringify(to[field])
      ? []
      : [{ field, from: before, to: to[field] }];
  });
}

function describe(
  namespace: string,
  { changes, applied, version }: { changes: readonly Change[]; applied: boolean; version: number },
): readonly string[] {
  if (changes.length === 0) return [`${namespace}: nothing to change; version ${version} is in force`];
  const rows = changes.map(({ field, from, to }) => [field, shown(from), shown(to)]);
  const end = applied
    ? `${namespace}: version ${version} is in force`
    : `${namespace}: nothing was changed; without --dry-run this would be version ${version}`;
  return [...table(['FIELD', 'FROM', 'TO'], rows), end];
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
