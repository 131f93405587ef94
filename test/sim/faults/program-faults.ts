/** Versions of the program that come and go while a group serves: a roll-out, replica by replica, and its way back (rule C15). */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { Program } from '../nodes/programs.ts';
import type { ReplicaGroup } from '../nodes/replica-group.ts';
import type { FaultMaker } from './fault.ts';
import { serverStop } from './group-faults.ts';

/** Stops a replica in order; it starts again as the other program. */
function changeTo(program: Program): FaultMaker {
  return (cluster, random) => {
    const group = groupToChange(cluster, random);
    const servers = group?.servers.filter((server) => server.program !== program) ?? [];
    if (group === null || servers.length === 0) return null;
    const server = random.pick(servers);
    const stop = serverStop(group, random, cluster, server);
    if (stop !== null) server.runNext(program);
    return stop;
  };
}

function groupToChange(cluster: Cluster, random: Random): ReplicaGroup | null {
  const groups = cluster.groups.filter((group) => group.kind === 'replicas');
  return groups.length === 0 ? null : random.pick(groups);
}

export const programFaults = {
  serverUpgrade: changeTo('shipped'),
  serverDowngrade: changeTo('older'),
} satisfies Record<string, FaultMaker>;
