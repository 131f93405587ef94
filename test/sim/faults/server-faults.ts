/** Faults of lock servers and of the storage below them. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { LockGroup } from '../nodes/lock-group.ts';
import { type Fault, type FaultMaker, moment } from './fault.ts';

const RESTART_MS = [20, 500, 3_000, 20_000];
const PAUSE_MS = [300, 900, 3_000, 10_000, 30_000];
const OUTAGE_MS = [50, 400, 3_000, 20_000];
/** A stop in order that takes longer is made short by whoever asked for it. */
const STOP_MS_MAX = 10_000;

function serving(cluster: Cluster, random: Random): LockGroup | null {
  const group = random.pick(cluster.groups);
  return group.active.process.life === null ? null : group;
}

/** The process dies at once, and is started again. */
const serverCrash: FaultMaker = (cluster, random) => {
  const group = serving(cluster, random);
  if (group === null) return null;
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
};

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
const serverStop: FaultMaker = (cluster, random) => {
  const group = serving(cluster, random);
  const replica = group?.active.replica ?? null;
  if (group === null || replica === null || group.active.process.isPaused || cluster.plan.isOneProcess)
    return null;
  const { active } = group;
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
};

const serverPause: FaultMaker = (cluster, random) => {
  const group = serving(cluster, random);
  if (group === null || group.active.process.isPaused) return null;
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
};

/** Another process takes the log over; the old one may be stopped meanwhile and wakes up as a leader of the past. */
const serverUsurped: FaultMaker = (cluster, random) => {
  const group = serving(cluster, random);
  if (group === null) return null;
  const { process } = group.active;
  const by = {};
  if (random.chance(0.7)) process.pause(by);
  group.usurp();
  return {
    parts: [group.part],
    forMs: random.pick(PAUSE_MS),
    end: () => process.resume(by, { timersFirst: random.chance(0.7) }),
  };
};

const logOutage: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  for (const server of group.servers) server.setOutage(true);
  return {
    parts: [group.part],
    forMs: random.pick(OUTAGE_MS),
    end: () => {
      for (const server of group.servers) server.setOutage(false);
    },
  };
};

const logSlow: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  const slowMs = random.pick([50, 300, 1_000, 4_000]);
  for (const server of group.servers) server.setSlow(slowMs);
  return {
    parts: [group.part],
    forMs: random.pick([500, 5_000, 30_000]),
    end: () => {
      for (const server of group.servers) server.setSlow(0);
    },
  };
};

/** The leader loses the log and nobody has taken it. */
const logDepose: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  group.store.depose();
  return moment([group.part]);
};

export const serverFaults = {
  serverCrash,
  serverStop,
  serverPause,
  serverUsurped,
  logOutage,
  logSlow,
  logDepose,
} satisfies Record<string, FaultMaker>;
