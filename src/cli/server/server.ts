/** `leasehold server`, from its configuration to the end of its process. */
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { besideConfig, loadConfig, missingFiles } from '../config-file.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { UsageError } from '../errors.ts';
import type { ConfigFlags } from '../options.ts';
import { onStopSignals } from '../stop-signals.ts';
import { redacted, type ServerConfig, serverConfig, serverConfigProblems, serverFiles } from './config.ts';
import { type LockServer, startLockServer } from './lock-server.ts';
import { loadNamespace } from './namespace.ts';

/** It starts anew within this time, or ends, for whoever watches over it to start it. */
const RESTART_MS_MAX = 30_000;

export async function runServer({ config: file, set }: ConfigFlags): Promise<void> {
  let server: LockServer | null = null;
  let isStopping = false;
  const stop = async (): Promise<void> => {
    // Asked twice, or before it serves: nothing is held that the log does not know.
    if (isStopping || server === null) process.exit(EXIT_UNAVAILABLE);
    isStopping = true;
    await server.stop();
    process.exit(0);
  };
  onStopSignals(() => void stop());
  try {
    const problemsOf = (config: ServerConfig): readonly string[] => [
      ...serverConfigProblems(config),
      ...missingFiles(file, serverFiles(config)),
    ];
    const config = withPaths(file, loadConfig(file, serverConfig, problemsOf, set));
    const beside = (path: string): string => besideConfig(file, path);
    const namespace = await loadNamespace(beside(config.namespace), config.tokens !== undefined);
    const runtime = createSystemRuntime({ logLevel: config.logLevel });
    runtime.logger.info({ config: redacted(config) }, 'lock server starts');
    if (namespace.ignoresConsumers)
      runtime.logger.warn({}, 'the consumers of the manifest are not checked: there are no tokens');
    let current = namespace.config;
    const start = async (): Promise<void> => {
      const wanted = current;
      server = await startLockServer({
        config,
        namespace: wanted,
        runtime,
        beside,
        onHalted: (error) => {
          console.error(`this lock server cannot go on: ${String(error)}`);
          process.exit(EXIT_WRONG);
        },
        onReplaced: () => void startAnew(),
      });
      if (current !== wanted) void server.member.reconfigure(current);
      runtime.logger.info({ listen: config.listen }, 'lock server serves');
    };
    // Nothing of what it knows holds in the new lineage (rule S10), so nothing is kept: as if the process had been started again.
    const startAnew = async (): Promise<void> => {
      if (isStopping) return;
      const limit = runtime.timers.after(RESTART_MS_MAX, () => process.exit(EXIT_UNAVAILABLE));
      try {
        await server?.stop();
        await start();
      } catch (error) {
        console.error(error instanceof Error ? error.message : String(error));
        process.exit(EXIT_UNAVAILABLE);
      }
      limit.cancel();
    };
    await start();
    namespace.watch(runtime.logger, (changed) => {
      current = changed;
      void server?.member.reconfigure(changed);
    });
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(error instanceof UsageError ? EXIT_USAGE : EXIT_UNAVAILABLE);
  }
}

/** Paths are relative to the configuration's own folder. */
function withPaths(file: string, config: ServerConfig): ServerConfig {
  const { admin, audit } = config;
  return {
    ...config,
    ...(admin.socket === undefined ? {} : { admin: { ...admin, socket: besideConfig(file, admin.socket) } }),
    ...(audit?.sink === 'file' ? { audit: { ...audit, path: besideConfig(file, audit.path) } } : {}),
  };
}
