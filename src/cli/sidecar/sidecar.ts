/** `leasehold sidecar`, from its configuration to the end of its process. */
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { besideConfig, loadConfig, missingFiles } from '../config-file.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE } from '../conventions.ts';
import { UsageError } from '../errors.ts';
import type { ConfigFlags } from '../options.ts';
import { onStopSignals } from '../stop-signals.ts';
import { type SidecarConfig, sidecarConfig, sidecarConfigProblems } from './config.ts';
import { type SidecarServer, startSidecar } from './sidecar-server.ts';

export async function runSidecar({ config: file, set }: ConfigFlags): Promise<void> {
  let sidecar: SidecarServer | null = null;
  let isStopping = false;
  const stop = async (): Promise<void> => {
    if (isStopping || sidecar === null) process.exit(EXIT_UNAVAILABLE);
    isStopping = true;
    await sidecar.stop();
    process.exit(0);
  };
  onStopSignals(() => void stop());
  try {
    const problemsOf = (config: SidecarConfig): readonly string[] => [
      ...sidecarConfigProblems(config),
      ...missingFiles(file, { ca: config.ca, token: config.token }),
    ];
    const config = loadConfig(file, sidecarConfig, problemsOf, set);
    const beside = (path: string): string => besideConfig(file, path);
    const runtime = createSystemRuntime({ logLevel: config.logLevel });
    runtime.logger.info({ config }, 'sidecar starts');
    sidecar = await startSidecar(config, { runtime, data: beside(config.data), beside });
    runtime.logger.info({ url: sidecar.url }, 'sidecar serves');
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(error instanceof UsageError ? EXIT_USAGE : EXIT_UNAVAILABLE);
  }
}
