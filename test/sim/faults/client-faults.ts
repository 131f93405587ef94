/** Faults of sidecars, applications, and the machines they run on. */
import type { Random } from '../../support/random.ts';
import type { Cluster, Host } from '../cluster.ts';
import type { Application } from '../nodes/application.ts';
import { type FaultMaker, moment } from './fault.ts';

const RESTART_MS = [20, 800, 4_000, 30_000];
const PAUSE_MS = [200, 2_000, 9_000, 40_000];
const WALL_STEPS_MS = [3_600_000, -3_600_000, 10_000, -10_000];

const sidecarCrash: FaultMaker = (cluster, random) => {
  const host = random.pick(cluster.hosts);
  const { sidecar } = host;
  if (sidecar.process.life === null) return null;
  const goOn = cluster.stops.begin(cluster.sessionsOf(host));
  sidecar.kill();
  return {
    parts: [sidecar.part],
    forMs: random.pick(RESTART_MS),
    end: () => {
      goOn();
      if (sidecar.process.life === null) sidecar.start();
    },
  };
};

const sidecarPause: FaultMaker = (cluster, random) => {
  const host = random.pick(cluster.hosts);
  const { sidecar } = host;
  const { process } = sidecar;
  if (process.life === null || process.isPaused) return null;
  const goOn = cluster.stops.begin(cluster.sessionsOf(host));
  const by = {};
  process.pause(by);
  return {
    parts: [sidecar.part],
    forMs: random.pick(PAUSE_MS),
    end: () => {
      goOn();
      process.resume(by, { timersFirst: random.chance(0.7) });
    },
  };
};

/** The machine sleeps: its processes stand still, and its monotonic clock does not count the time (rule A2). */
const machineSleep: FaultMaker = (cluster, random) => {
  const host = random.pick(cluster.hosts);
  const apps = host.applications.filter((app) => app !== null);
  if (host.machine.isAsleep) return null;
  const goOn = cluster.stops.begin(cluster.sessionsOf(host));
  for (const app of apps) for (const grant of app.grants.values()) grant.beforeSleep();
  host.machine.fallAsleep();
  const servers = cluster.plan.isOneProcess ? cluster.groups.map(({ part }) => part) : [];
  return {
    parts: [host.sidecar.part, ...servers],
    forMs: random.pick(cluster.plan.sleepMs),
    end: () => {
      goOn();
      host.machine.wakeUp({ timersFirst: random.chance(0.7) });
    },
  };
};

/** Shorter than the shortest TTL less its margin, by any clock: what it does not renew it does not close either. */
const COPY_MS = [300, 1_500, 3_500];

/** For a while two sidecars have the same secrets (rule S3). */
const stateCopied: FaultMaker = (cluster, random) => {
  const { sidecar } = random.pick(cluster.hosts);
  if (sidecar.process.life === null || cluster.copies.size > 0) return null;
  const copy = cluster.copyOf(sidecar);
  copy.start();
  return {
    parts: [],
    forMs: random.pick(COPY_MS),
    end: () => {
      copy.kill();
      cluster.copies.delete(copy);
    },
  };
};

function anyApplication(
  cluster: Cluster,
  random: Random,
): { host: Host; place: number; app: Application } | null {
  const host = random.pick(cluster.hosts);
  const place = random.int(host.applications.length);
  const app = host.applications[place] ?? null;
  return app === null || app.process.isPaused ? null : { host, place, app };
}

const appFreeze: FaultMaker = (cluster, random) => {
  const struck = anyApplication(cluster, random);
  if (struck === null) return null;
  const { host, app } = struck;
  const goOn = cluster.stops.begin(cluster.stoppedSessions(host.sidecar, app.sessionIds()));
  const by = {};
  app.process.pause(by);
  return {
    parts: [],
    forMs: random.pick(PAUSE_MS),
    end: () => {
      goOn();
      app.process.resume(by, { timersFirst: random.chance(0.7) });
    },
  };
};

const appCrash: FaultMaker = (cluster, random) => {
  const struck = anyApplication(cluster, random);
  if (struck === null) return null;
  const { host, place, app } = struck;
  // Never resumed: who starts in its place has sessions of its own (case C15).
  cluster.stops.begin(cluster.stoppedSessions(host.sidecar, app.sessionIds()));
  app.die();
  host.applications[place] = null;
  return { parts: [], forMs: random.pick(RESTART_MS), end: () => cluster.startApplication(host, place) };
};

const wallStep: FaultMaker = (cluster, random) => {
  random.pick(cluster.machines).stepWall(random.pick(WALL_STEPS_MS));
  return moment();
};

export const clientFaults = {
  sidecarCrash,
  sidecarPause,
  machineSleep,
  appFreeze,
  appCrash,
  stateCopied,
  wallStep,
} satisfies Record<string, FaultMaker>;
