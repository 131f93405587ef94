/** Faults of a group of several replicas: of its servers, of the streams between them, of the storage below them. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { ReplicaGroup } from '../nodes/replica-group.ts';
import type { ReplicaServer } from '../nodes/replica-server.ts';
import type { Direction } from '../world/pipe.ts';
import type { Fault, FaultMaker } from './fault.ts';

const RESTART_MS = [20, 500, 3_000, 20_000];
/** Shorter and longer than the lease of a leader, and than the TTLs of sessions. */
const PAUSE_MS = [300, 900, 3_000, 10_000, 30_000];
const OUTAGE_MS = [50, 400, 3_000, 20_000];
const CUT_MS = [300, 3_000, 12_000, 40_000];
/** A stop in order that takes longer is made short by whoever asked for it. */
const STOP_MS_MAX = 10_000;

/** Often the one that leads: the others are only watched. */
function running(group: ReplicaGroup, random: Random): ReplicaServer | null {
  const server = random.chance(0.5) ? group.leader : random.pick(group.servers);
  return server?.process.life == null ? null : server;
}

export function serverCrash(group: ReplicaGroup, random: Random): Fault | null {
  const server = running(group, random);
  if (server === null) return null;
  group.kill(server);
  return {
    parts: [server.part],
    forMs: random.pick(RESTART_MS),
    end: () => group.startAgain(server),
  };
}

/** SIGTERM: hands over in order, then starts again. */
export function serverStop(
  group: ReplicaGroup,
  random: Random,
  cluster: Cluster,
  server = running(group, random),
): Fault | null {
  const member = server?.member ?? null;
  if (server === null || member === null || server.process.isPaused) return null;
  const { life } = server.process;
  let isDown = false;
  const down = (): void => {
    if (isDown || server.process.life !== life) return;
    isDown = true;
    cluster.world.mustSettle();
    group.kill(server);
    cluster.world.afterMs(random.pick(RESTART_MS), () => group.startAgain(server));
  };
  void member.stop().then(down, () => undefined);
  return { parts: [server.part], forMs: STOP_MS_MAX, end: down };
}

export function serverPause(group: ReplicaGroup, random: Random): Fault | null {
  const server = running(group, random);
  if (server === null || server.process.isPaused) return null;
  const by = {};
  server.process.pause(by);
  return {
    parts: [server.part],
    forMs: random.pick(PAUSE_MS),
    end: () => server.process.resume(by, { timersFirst: random.chance(0.7) }),
  };
}

/** Nobody reaches the storage, or it does not work at all. */
export function logOutage(group: ReplicaGroup, random: Random): Fault {
  group.store.setOutage(true);
  for (const server of group.servers) server.setOutage(true);
  return {
    parts: [group.part],
    forMs: random.pick(OUTAGE_MS),
    end: () => {
      group.store.setOutage(false);
      for (const server of group.servers) server.setOutage(false);
    },
  };
}

function anyReplicas(cluster: Cluster, random: Random): ReplicaGroup | null {
  const groups = cluster.groups.filter((group) => group.kind === 'replicas');
  return groups.length === 0 ? null : random.pick(groups);
}

/** One replica is cut off from the storage, and from nothing else. */
const storeCut: FaultMaker = (cluster, random) => {
  const group = anyReplicas(cluster, random);
  if (group === null) return null;
  const server = random.chance(0.5) ? group.leader : random.pick(group.servers);
  if (server === null || !server.isOnStore) return null;
  server.setOutage(true);
  return {
    parts: [server.part, server.storePart],
    forMs: random.pick(CUT_MS),
    end: () => server.setOutage(false),
  };
};

/** Two replicas cannot talk to each other. */
const relayCut: FaultMaker = (cluster, random) => {
  const group = anyReplicas(cluster, random);
  const pair = group === null ? null : random.pick(group.pairs);
  if (pair === null || pair.links[0].isCut) return null;
  const silently = random.chance(0.5);
  for (const link of pair.links) link.cut({ silently });
  return {
    parts: [pair.part],
    forMs: random.pick(CUT_MS),
    end: () => {
      for (const link of pair.links) link.mend();
    },
  };
};

/** What one replica sends to another stands still, or what both do. */
const relayStall: FaultMaker = (cluster, random) => {
  const group = anyReplicas(cluster, random);
  const pair = group === null ? null : random.pick(group.pairs);
  if (pair === null) return null;
  const [there, back] = pair.links;
  const wanted: readonly Direction[] = random.pick([
    ['toServer'],
    ['toClient'],
    ['toServer', 'toClient'],
  ] as const);
  const opposite = { toServer: 'toClient', toClient: 'toServer' } as const;
  const directions = wanted.filter((direction) => !there.isStalled(direction));
  if (directions.length === 0) return null;
  for (const direction of directions) {
    there.stall(direction);
    back.stall(opposite[direction]);
  }
  return {
    parts: [pair.part],
    forMs: random.pick(CUT_MS),
    end: () => {
      for (const direction of directions) {
        there.unstall(direction);
        back.unstall(opposite[direction]);
      }
    },
  };
};

export const groupFaults = { storeCut, relayCut, relayStall } satisfies Record<string, FaultMaker>;
