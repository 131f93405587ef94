/** The one LockNamespace that a lock server serves: read at the start, and again whenever its file changes. */
import type { NamespaceConfig } from '../../api/config.ts';
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import { formatFindings } from '../../platform/manifests/format.ts';
import { type LoadResult, loadManifests } from '../../platform/manifests/load.ts';
import { type ManifestWatch, watchManifests } from '../../platform/manifests/watch.ts';
import type { Logger } from '../../platform/runtime.ts';
import { UsageError } from '../errors.ts';

export interface LoadedNamespace {
  readonly config: NamespaceConfig;
  /** It names consumers, and nobody proves to be one. */
  readonly ignoresConsumers: boolean;
  /** Tells of each valid change; what is not valid is logged, and the configuration stays. */
  watch(logger: Logger, onChange: (config: NamespaceConfig) => void): ManifestWatch;
}

/** `areProven`: clients prove who they are, so `consumers` are checked. @throws UsageError with all findings. */
export async function loadNamespace(path: string, areProven: boolean): Promise<LoadedNamespace> {
  const loaded = await loadManifests({ paths: [path] });
  const config = configIn(loaded, path, areProven);
  return {
    config,
    ignoresConsumers:
      !areProven && loaded.ok && loaded.namespaces[0]?.lockNamespace.spec.consumers !== undefined,
    watch: (logger, onChange) =>
      watchManifests({
        paths: [path],
        loaded,
        onChange: (result) => {
          try {
            const changed = configIn(result, path, areProven);
            if (changed.name !== config.name || changed.namespace !== config.namespace) {
              throw new UsageError(`${path} names another LockNamespace; this group serves ${config.name}`);
            }
            onChange(changed);
          } catch (error) {
            logger.error({ error }, 'changed manifest not taken; the configuration stays');
          }
        },
      }),
  };
}

function configIn(loaded: LoadResult, path: string, areProven: boolean): NamespaceConfig {
  if (!loaded.ok) throw new UsageError(formatFindings(loaded.errors));
  const [only] = loaded.namespaces;
  if (only === undefined || loaded.namespaces.length > 1) {
    throw new UsageError(`${path} holds ${loaded.namespaces.length} LockNamespaces; a group serves one`);
  }
  if (!areProven) return toNamespaceConfig(only.lockNamespace, { kind: 'unchecked' });
  return toNamespaceConfig(only.lockNamespace, {
    kind: 'checked',
    namespacesOf: () => {
      throw new UsageError(`${path}: consumers with a namespaceSelector need a cluster; name the namespaces`);
    },
  });
}
