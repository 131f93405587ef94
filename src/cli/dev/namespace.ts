/**
 * One LockNamespace served by `leasehold dev`: its log on disk, its one replica, its place in the sidecar.
 */
import { join } from 'node:path';
import type { NamespaceConfig } from '../../api/config.ts';
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import type { LockNamespace } from '../../api/locknamespace/schema.ts';
import { openEmbeddedLog } from '../../log/embedded/embedded-log.ts';
import { HaltedError } from '../../log/port.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { labelled, type Runtime } from '../../platform/runtime.ts';
import type { StopReason } from '../../server/leader/leader-options.ts';
import { haltMessage } from '../../server/member/halt-message.ts';
import { Metering } from '../../server/member/metering.ts';
import { Replica } from '../../server/member/replica.ts';
import type { Sidecar } from '../../sidecar/sidecar.ts';
import { UnavailableError } from '../errors.ts';

/** In dev every caller is the developer; identities come with the cluster. */
const DEVELOPER = { account: 'dev/developer', podUid: '' };

export interface DevContext {
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  readonly sidecar: Sidecar;
  readonly dataFolder: string;
  readonly onStopped: (alias: string, reason: StopReason) => void;
}

export class DevNamespace {
  readonly alias: string;
  readonly replica: Replica;
  config: NamespaceConfig;
  readonly #stopMetrics: readonly (() => void)[];

  private constructor(
    alias: string,
    replica: Replica,
    config: NamespaceConfig,
    stopMetrics: readonly (() => void)[],
  ) {
    this.alias = alias;
    this.replica = replica;
    this.config = config;
    this.#stopMetrics = stopMetrics;
  }

  static async start(lockNamespace: LockNamespace, context: DevContext): Promise<DevNamespace> {
    const { metrics, sidecar, dataFolder, onStopped } = context;
    const config = configOf(lockNamespace);
    const { namespace, name: alias } = config;
    const logger = labelled(context.runtime.logger, { namespace: `${namespace}/${alias}` });
    const runtime = { ...context.runtime, logger };
    const log = await openEmbeddedLog({
      directory: join(dataFolder, `${namespace}.${alias}`),
      timers: runtime.timers,
      random: runtime.random,
      logger: runtime.logger,
    });
    const serverMetrics = metrics.server(alias);
    const metering = new Metering(serverMetrics);
    const replica = await Replica.start({
      runtime,
      log,
      serverId: 'dev',
      config,
      onCommitted: (entry, stats) => metering.committed(entry, stats),
      onMark: (outcome) => serverMetrics.markShown(outcome),
      onStopped: (reason) => onStopped(alias, reason),
    }).catch(async (error: unknown) => {
      await log.close();
      if (!(error instanceof HaltedError)) throw error;
      const why = haltMessage(error.proof, newLineageCommand(alias, dataFolder));
      throw new UnavailableError(`${namespace}/${alias} is not served: ${why}`, { cause: error });
    });
    const sidecarMetrics = metrics.sidecar(alias);
    const served = new DevNamespace(alias, replica, config, [
      serverMetrics.observe(() => replica.gauges()),
      sidecarMetrics.observe(() => sidecar.figures(alias)),
    ]);
    sidecar.addNamespace({
      alias,
      connect: (handler) => replica.frontEnd.connect(DEVELOPER, handler),
      metrics: sidecarMetrics,
      defaults: () => served.config,
    });
    return served;
  }

  /** Brings a changed manifest into force; returns whether anything changed. */
  async reconfigure(lockNamespace: LockNamespace): Promise<boolean> {
    const config = configOf(lockNamespace);
    this.config = config;
    return this.replica.configure(config);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stopMetrics) stop();
    await this.replica.stop();
  }
}

function configOf(lockNamespace: LockNamespace): NamespaceConfig {
  return toNamespaceConfig(lockNamespace, { kind: 'unchecked' });
}

/** How a namespace that was found rolled back is served again; the server has to be stopped for it. */
export function newLineageCommand(alias: string, dataFolder: string): string {
  return `leasehold group new-lineage --data ${dataFolder} --namespace ${alias} --yes`;
}
