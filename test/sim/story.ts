/**
 * What happens in a run: start, some hours of traffic and faults, then quiet, then everybody leaves, then nothing may be left.
 */
import { MemoryLog } from '../../src/log/memory-log.ts';
import { history } from '../../src/server/snapshots/recovery.ts';
import { Cluster } from './cluster.ts';
import { FaultInjector } from './faults/injector.ts';
import { planCopy, rollBack } from './faults/roll-back.ts';
import { setConstants } from './nodes/constants.ts';
import type { Group } from './nodes/group.ts';
import { loadOlder } from './nodes/programs.ts';
import { makePlan, type Plan } from './plan.ts';
import { paced } from './plan-pace.ts';
import type { RunOptions, RunReport } from './run.ts';
import { World } from './world/world.ts';

/** Faults are over; what they left behind has this long to settle, ms. */
const QUIET_MS = 90_000;
/** Storage that answers within this time gives nobody a reason for a change of leaders. */
const PROMPT_MS = 200;
/** The longest wait of an acquire, with its bounds; who thinks for longer than most notices later that it is to leave. */
const LEAVING_MS_MAX = 640_000;
/** Sessions whose applications are gone end within this: the longest TTL twice, and the lock-delay. */
const GONE_MS = 2 * 20_000 + 5_000 + 5_000;

export async function run({
  seed,
  hours,
  pace = 'dense',
  isCutShort = false,
  onTrace,
  changePlan,
}: RunOptions): Promise<RunReport> {
  const world = new World(seed, onTrace);
  const chosen = paced(makePlan(world), pace, world);
  const plan = changePlan === undefined ? chosen : changePlan(chosen);
  if (usesOlder(plan)) await loadOlder();
  setConstants(plan.constants);
  const cluster = new Cluster(world, plan);
  const injector = new FaultInjector(cluster);
  // Refusals are errors that nobody looks at the stack of; a run with its story keeps them.
  const { stackTraceLimit } = Error;
  if (onTrace === undefined) Error.stackTraceLimit = 0;
  let failure: unknown;
  void story(cluster, injector, { hours, isCutShort }).then(
    () => world.stop(),
    (error: unknown) => {
      failure = error;
      world.stop();
    },
  );
  await world.run().finally(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  if (failure !== undefined) throw new Error(`seed ${seed}: the simulator failed`, { cause: failure });
  return { ...report(cluster, injector), hours, pace };
}

function usesOlder({ olderReplicas, faults }: Plan): boolean {
  return olderReplicas > 0 || faults.has('serverDowngrade');
}

async function story(
  cluster: Cluster,
  injector: FaultInjector,
  { hours, isCutShort }: { readonly hours: number; readonly isCutShort: boolean },
): Promise<void> {
  const { world, groups, findings, plan } = cluster;
  await cluster.start();
  injector.start();
  const oldCopy = plan.rollsBack ? planCopy(cluster, hours) : () => null;
  await world.sleep(hours * 3_600_000);
  if (isCutShort) return;
  world.trace?.('QUIET: the faults are over');
  injector.stop();
  cluster.calm();
  if (plan.finishesUpgrade) finishUpgrade(cluster);
  const copy = oldCopy();
  if (copy !== null && !(await rollBack(cluster, copy))) return;
  // On a storage that slow a leader may well be taken for dead, or hand over for the time it has lost (rule S6).
  if (plan.logLatencyMs.to <= PROMPT_MS) for (const { judge } of groups) judge.changes.quiet();
  await world.sleep(QUIET_MS);
  await everybodyLeaves(cluster);
  await world.sleep(GONE_MS);
  for (const { sidecar } of cluster.hosts) sidecar.http.checkBounds();
  nothingIsLeft(cluster);
  levelsAreRaised(cluster);
  if (findings.all.length > 0) return;
  for (const group of groups) {
    await replayAgrees(cluster, group);
    group.judge.finish(true);
    if (plan.isAudited) group.judge.audit.finish(group.judge.entries);
  }
}

/** Whoever still runs the older program is restarted as the shipped one. */
function finishUpgrade({ groups, world }: Cluster): void {
  for (const group of groups) {
    if (group.kind !== 'replicas') continue;
    for (const server of group.servers) {
      server.runNext('shipped');
      if (server.program === 'shipped' || server.process.life === null) continue;
      world.trace?.(`${server.process.name} is upgraded`);
      group.kill(server);
      group.startAgain(server);
    }
  }
}

/** Rule C15: once all replicas have been here with a higher level for a while, the group is at it. */
function levelsAreRaised({ groups, findings }: Cluster): void {
  for (const group of groups) {
    if (group.kind !== 'replicas') continue;
    const [level, levelOfAll] = [group.judge.state.behaviour, group.levelOfAll];
    if (level === levelOfAll) continue;
    findings.add(
      'rule C15',
      `${group.alias}: all replicas support level ${levelOfAll}, and ${level} is in force`,
    );
  }
}

/** Applications stop taking locks; half of them close their sessions, the others are simply gone. */
async function everybodyLeaves(cluster: Cluster): Promise<void> {
  const { world, findings, plan } = cluster;
  world.trace?.('LEAVING: no new locks are taken');
  for (const app of cluster.applications) app.isLeaving = true;
  const limitMs = LEAVING_MS_MAX + 2 * plan.habits.thinkMs;
  const untilMs = world.nowMs + limitMs;
  while (cluster.applications.some((app) => !app.isIdle)) {
    if (world.nowMs > untilMs) {
      const busy = cluster.applications.filter((app) => !app.isIdle).map(({ process }) => process.name);
      findings.add('liveness', `${busy.join(', ')} wait for something ${limitMs} ms after the last new lock`);
      return;
    }
    await world.sleep(500);
  }
  for (const app of cluster.applications) {
    if (app.random.chance(0.5)) await app.leave();
    app.die();
  }
}

function nothingIsLeft({ groups, sidecars, findings }: Cluster): void {
  for (const { alias, judge } of groups) {
    const { sessions, locks, holds, waits, timers, backlog } = judge.state;
    const left = {
      sessions: sessions.size,
      locks: locks.size,
      holds,
      waits,
      timers: timers.size,
      backlog: backlog.length,
    };
    if (Object.values(left).some((count) => count > 0)) {
      findings.add('leftovers', `${alias}: all clients are gone, and its state has ${JSON.stringify(left)}`);
    }
  }
  for (const { name, sidecar, store, http } of sidecars) {
    const figures = groups.map(({ alias }) => sidecar?.figures(alias) ?? null);
    const isEmpty = figures.every((one) => one !== null && one.sessions + one.grants + one.waits === 0);
    if (!isEmpty || store.size > 0 || http.openCalls > 0) {
      const records = JSON.stringify(store.load());
      findings.add(
        'leftovers',
        `${name}: all clients are gone; it has ${JSON.stringify(figures)}, ${http.openCalls} calls, records ${records}`,
      );
    }
  }
}

/** What a replica tells as history is what became durable when it did. */
async function replayAgrees({ world, findings }: Cluster, { alias, store, judge }: Group): Promise<void> {
  world.mustSettle();
  const oldest = store.snapshots().at(-1)?.index ?? 0;
  let index = oldest;
  for await (const entry of history(new MemoryLog(store), oldest + 1)) {
    index = entry.index;
    if (judge.eventHashAt(index) === entry.eventHash) continue;
    findings.add('durability', `${alias}: a replay of the log has other events at entry ${index}`);
    return;
  }
  if (index !== judge.entries)
    findings.add('durability', `${alias}: a replay ends at ${index}, not at ${judge.entries}`);
}

function report(cluster: Cluster, injector: FaultInjector): Omit<RunReport, 'hours' | 'pace'> {
  const { world, plan, findings, groups, resource } = cluster;
  const sum = (count: (group: Group) => number): number =>
    groups.reduce((all, group) => all + count(group), 0);
  return {
    seed: world.seed,
    hash: world.hash,
    findings: findings.all,
    plan,
    virtualMs: world.nowMs,
    busyMs: injector.busyMs,
    steps: world.steps,
    entries: sum(({ judge }) => judge.entries),
    carriedOver: sum(({ judge }) => judge.carriedOver),
    grants: sum(({ judge }) => judge.counts.grants),
    tally: {
      shared: sum(({ judge }) => judge.tally.shared),
      semaphore: sum(({ judge }) => judge.tally.semaphore),
      joined: sum(({ judge }) => judge.tally.joined),
      partlyReleased: sum(({ judge }) => judge.tally.partlyReleased),
      permitsCut: sum(({ judge }) => judge.tally.permitsCut),
    },
    sessions: sum(({ judge }) => judge.counts.sessions),
    takeOvers: sum(({ judge }) => judge.counts.takeOvers),
    calls: cluster.sidecars.reduce((all, { http }) => all + http.calls, 0),
    writes: resource.writes,
    staleWrites: resource.refusals,
    faults: withLineages(
      injector.struck,
      sum(({ judge }) => judge.lineages.begun),
    ),
  };
}

function withLineages(faults: ReadonlyMap<string, number>, begun: number): ReadonlyMap<string, number> {
  return begun === 0 ? faults : new Map([...faults, ['newLineage', begun] as const]);
}
