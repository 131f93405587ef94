/** A leader alone on real time, over a log in memory: for what runs beside it, as snapshots and the audit do. The caller stops it. */
import type { NamespaceConfig } from '../../src/api/config.ts';
import { MemoryLog } from '../../src/log/memory-log.ts';
import type { MemoryStore } from '../../src/log/memory-store.ts';
import type { Runtime } from '../../src/platform/runtime.ts';
import { Leader } from '../../src/server/leader/leader.ts';
import { namespaceConfig } from './core.ts';

interface LoneLeaderOptions {
  readonly config?: NamespaceConfig;
  /** Left out: none is ever due. */
  readonly snapshotDueBytes?: number;
}

export async function leadAlone(
  store: MemoryStore,
  runtime: Runtime,
  { config = namespaceConfig(), snapshotDueBytes = Number.MAX_SAFE_INTEGER }: LoneLeaderOptions = {},
): Promise<Leader> {
  const leader = await Leader.start({
    runtime,
    log: new MemoryLog(store),
    serverId: 'a',
    reason: 'test',
    tokenFloor: 0,
    replicas: 1,
    beatWhenIdle: false,
    onStopped: () => undefined,
    snapshotDueBytes,
  });
  await leader.submit([{ type: 'configure', version: leader.state.configVersion + 1, config }]);
  return leader;
}
