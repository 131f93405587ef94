/**
 * Somebody puts an old copy of the storage back in its place, under a group that runs on (rule S10). What clients saw of it is lost, so what
 * they hold may be granted again: as soon as one of them shows its mark the group must halt, and stay halted.
 */
import type { Mark } from '../../../src/api/wire.ts';
import { MemoryLog } from '../../../src/log/memory-log.ts';
import { planLineage } from '../../../src/server/member/new-lineage.ts';
import type { SidecarRecord } from '../../../src/sidecar/state-store.ts';
import type { Cluster } from '../cluster.ts';
import type { ReplicaGroup } from '../nodes/replica-group.ts';
import type { ReplicaServer } from '../nodes/replica-server.ts';
import { US_PER_MS } from '../world/world.ts';

type OldCopy = ReturnType<ReplicaGroup['store']['copy']>;

/** For sidecars to hear of the newest entries. */
const CALM_MS = 5_000;
/** A leader, a connection, a commit: then somebody has shown a mark. */
const NOTICED_MS_MAX = 30_000;
/** Nothing may be committed from the halt on; a look after so long. */
const HALTED_MS = 10_000;
/** For everybody to lock again. */
const TRAFFIC_MS = 60_000;

/** Copies the storage of a group at some moment of the part with faults. */
export function planCopy(cluster: Cluster, hours: number): () => OldCopy | null {
  const random = cluster.world.random('roll-back');
  const group = groupOf(cluster);
  let copy: OldCopy | null = null;
  const atMs = hours * 3_600_000 * (0.2 + 0.7 * (random.int(1_000) / 1_000));
  if (group !== null) {
    cluster.world.afterMs(atMs, () => {
      copy = group.store.copy();
    });
  }
  return () => copy;
}

/**
 * The power fails, the copy is put back, everything starts again. Only rule S10 is judged from here on, until an operator begins a new
 * lineage. False: that was the end of the run.
 */
export async function rollBack(cluster: Cluster, copy: OldCopy): Promise<boolean> {
  const { world, findings } = cluster;
  const group = groupOf(cluster);
  if (group === null) return false;
  await world.sleep(CALM_MS);
  const isKnown = cluster.sidecars.some(({ store }) =>
    store
      .load()
      .some(
        (record) =>
          record.type === 'mark' && record.alias === group.alias && record.mark.index > copy.head().index,
      ),
  );
  // Nobody has seen what is lost.
  if (!isKnown) return false;
  findings.judgeOnly('rule S10');
  for (const server of group.servers) group.kill(server);
  world.trace?.(`ROLL-BACK of ${group.alias} from ${group.store.head().index} to ${copy.head().index}`);
  group.store.rollBack(copy);
  for (const server of group.servers) group.startAgain(server);
  const untilUs = world.nowUs + NOTICED_MS_MAX * US_PER_MS;
  while (group.store.standing().halted === null && world.nowUs < untilUs) await world.sleep(100);
  if (group.store.standing().halted === null) {
    findings.add('rule S10', `${group.alias}: its log was rolled back, and it is served on`);
    return false;
  }
  const { index } = group.store.head();
  await world.sleep(HALTED_MS);
  if (group.store.head().index !== index)
    findings.add('rule S10', `${group.alias}: entries were committed after it halted at ${index}`);
  if (!cluster.plan.beginsAnew || findings.all.length > 0) return false;
  await beginAnew(cluster, group);
  return true;
}

/** As `leasehold group new-lineage --yes` does; then traffic, until the time without grants is over. */
async function beginAnew(cluster: Cluster, group: ReplicaGroup): Promise<void> {
  const { world, findings } = cluster;
  const { life } = (group.servers[0] as ReplicaServer).process;
  if (life === null) throw new Error('a halted server is up');
  world.mustSettle();
  const log = new MemoryLog(group.store);
  const { tokenFloor, quietMs } = await planLineage(log, life.runtime, group.config);
  const lineage = await log.beginLineage({ tokenFloor, quietMs });
  world.trace?.(
    `NEW LINEAGE ${lineage} of ${group.alias}: quiet for ${quietMs} ms, tokens above ${tokenFloor}`,
  );
  const mark = cluster.sidecars
    .map(({ store }) => markIn(store.load(), group.alias))
    .find((one) => one !== null);
  cluster.beginLineage(group);
  findings.judgeAll();
  const sleeper = mark == null ? null : cluster.sleeper(mark);
  sleeper?.start();
  await world.sleep(quietMs + TRAFFIC_MS);
  sleeper?.stop();
}

function markIn(records: readonly SidecarRecord[], alias: string): Mark | null {
  for (const record of records) if (record.type === 'mark' && record.alias === alias) return record.mark;
  return null;
}

function groupOf({ groups }: Cluster): ReplicaGroup | null {
  return groups.find((group) => group.kind === 'replicas') ?? null;
}
