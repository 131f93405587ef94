/** Faults of lock servers and of the storage below them. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { LockGroup } from '../nodes/lock-group.ts';
import type { ReplicaGroup } from '../nodes/replica-group.ts';
import { type Fault, type FaultMaker, logDepose, logSlow } from './fault.ts';
import * as ofGroups from './group-faults.ts';

const RESTART_MS = [20, 500, 3_000, 20_000];
const PAUSE_MS = [300, 900, 3_000, 10_000, 30_000];
const OUTAGE_MS = [50, 400, 3_000, 20_000];
/** A stop in order that takes longer is made short by whoever asked for it. */
const STOP_MS_MAX = 10_000;

/** The same for a group of one server and for one of several. */
function either(
  ofOne: (group: LockGroup, random: Random, cluster: Cluster) => Fault | null,
  ofSeveral: (group: ReplicaGroup, random: Random, cluster: Cluster) => Fault | null,
): FaultMaker {
  return (cluster, random) => {
    const group = random.pick(cluster.groups);
    if (group.kind === 'replicas') return ofSeveral(group, random, cluster);
    return ofOne(group, random, cluster);
  };
}

function isServing(group: LockGroup): boolean {
  return group.active.process.life !== null;
}

/** The process dies at once, and is started again. */
function serverCrash(group: LockGroup, random: Random, cluster: Cluster): Fault | null {
  if (!isServing(group)) return null;
  const forMs = random.pick(RESTART_MS);
  if (cluster.plan.isOneProcess) return oneProcessDown(cluster, forMs);
  group.kill();
  return {
    parts: [group.part],
    forMs,
    end: () => {
      if (group.active.process.life === null) void group.start();
    },
  };
}

function oneProcessDown(cluster: Cluster, forMs: number): Fault {
  const [host] = cluster.hosts;
  if (host === undefined) throw new Error('one process has one host');
  const { sidecar } = host;
  const goOn = cluster.stops.begin(cluster.sessionsOf(host));
  cluster.killOneProcess();
  return {
    parts: [sidecar.part, ...cluster.groups.map(({ part }) => part)],
    forMs,
    end: () => {
      goOn();
      if (sidecar.process.life === null) void cluster.startOneProcess();
    },
  };
}

/** SIGTERM: hands over in order, then starts again. */
function serverStop(group: LockGroup, random: Random, cluster: Cluster): Fault | null {
  const { active } = group;
  const { replica } = active;
  if (replica === null || active.process.isPaused || cluster.plan.isOneProcess) return null;
  const { life } = active.process;
  let isDown = false;
  const down = (): void => {
    if (isDown || active.process.life !== life) return;
    isDown = true;
    cluster.world.mustSettle();
    group.kill(active);
    group.startAfter(random.pick(RESTART_MS));
  };
  void replica.stop().then(down, () => undefined);
  return { parts: [group.part], forMs: STOP_MS_MAX, end: down };
}

function serverPause(group: LockGroup, random: Random, cluster: Cluster): Fault | null {
  if (!isServing(group) || group.active.process.isPaused) return null;
  const { process } = group.active;
  const by = {};
  process.pause(by);
  const parts = cluster.plan.isOneProcess ? cluster.groups.map(({ part }) => part) : [group.part];
  const host = cluster.plan.isOneProcess ? cluster.hosts[0] : undefined;
  if (host !== undefined) parts.push(host.sidecar.part);
  const goOn = host === undefined ? null : cluster.stops.begin(cluster.sessionsOf(host));
  return {
    parts,
    forMs: random.pick(PAUSE_MS),
    end: () => {
      goOn?.();
      process.resume(by, { timersFirst: random.chance(0.7) });
    },
  };
}

/** Another process takes the log over; the old one may be stopped meanwhile and wakes up as a leader of the past. */
function serverUsurped(group: LockGroup, random: Random): Fault | null {
  if (!isServing(group)) return null;
  const { process } = group.active;
  const by = {};
  if (random.chance(0.7)) process.pause(by);
  group.usurp();
  return {
    parts: [group.part],
    forMs: random.pick(PAUSE_MS),
    end: () => process.resume(by, { timersFirst: random.chance(0.7) }),
  };
}

function logOutage(group: LockGroup, random: Random): Fault {
  for (const server of group.servers) server.setOutage(true);
  return {
    parts: [group.part],
    forMs: random.pick(OUTAGE_MS),
    end: () => {
      for (const server of group.servers) server.setOutage(false);
    },
  };
}

export const serverFaults = {
  serverCrash: either(serverCrash, ofGroups.serverCrash),
  serverStop: either(serverStop, ofGroups.serverStop),
  serverPause: either(serverPause, ofGroups.serverPause),
  serverUsurped: either(serverUsurped, () => null),
  logOutage: either(logOutage, ofGroups.logOutage),
  logSlow: (cluster, random) => logSlow(random.pick(cluster.groups), random),
  logDepose: (cluster, random) => logDepose(random.pick(cluster.groups)),
} satisfies Record<string, FaultMaker>;
