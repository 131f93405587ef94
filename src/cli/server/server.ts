/** `leasehold server`, from its configuration to the end of its process. */
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import { formatFindings } from '../../platform/manifests/format.ts';
import { loadManifests } from '../../platform/manifests/load.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { besideConfig, loadConfig } from '../config-file.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { UsageError } from '../errors.ts';
import { redacted, type ServerConfig, serverConfig, serverConfigProblems } from './config.ts';
import { type LockServer, startLockServer } from './lock-server.ts';

export async function runServer(file: string): Promise<void> {
  let server: LockServer | null = null;
  let isStopping = false;
  const stop = async (): Promise<void> => {
    // Asked twice, or before it serves: nothing is held that the log does not know.
    if (isStopping || server === null) process.exit(EXIT_UNAVAILABLE);
    isStopping = true;
    await server.stop();
    process.exit(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop());
  try {
    const config = withPaths(file, loadConfig(file, serverConfig, serverConfigProblems));
    const namespace = await loadNamespace(besideConfig(file, config.namespace));
    const runtime = createSystemRuntime({ logLevel: config.logLevel });
    runtime.logger.info({ config: redacted(config) }, 'lock server starts');
    server = await startLockServer({
      config,
      namespace,
      runtime,
      onHalted: (error) => {
        console.error(`this lock server cannot go on: ${String(error)}`);
        process.exit(EXIT_WRONG);
      },
    });
    runtime.logger.info({ listen: config.listen }, 'lock server serves');
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(error instanceof UsageError ? EXIT_USAGE : EXIT_UNAVAILABLE);
  }
}

/** Paths are relative to the configuration's own folder. */
function withPaths(file: string, config: ServerConfig): ServerConfig {
  const { admin } = config;
  return admin === undefined ? config : { ...config, admin: { socket: besideConfig(file, admin.socket) } };
}

async function loadNamespace(path: string) {
  const loaded = await loadManifests({ paths: [path] });
  if (!loaded.ok) throw new UsageError(formatFindings(loaded.errors));
  const [only] = loaded.namespaces;
  if (only === undefined || loaded.namespaces.length > 1) {
    throw new UsageError(`${path} holds ${loaded.namespaces.length} LockNamespaces; a group serves one`);
  }
  return toNamespaceConfig(only.lockNamespace, { kind: 'unchecked' });
}
