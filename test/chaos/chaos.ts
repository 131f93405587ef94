/** One run: calm, faults under load, quiet, judgement. Each thing that must hold is one line of the report. */
import { setTimeout as pause } from 'node:timers/promises';
import { LockApi } from '../support/dev/lock-api.ts';
import { ALIAS, ETCDS, SERVERS } from '../support/group/group-bench.ts';
import { Random } from '../support/random.ts';
import { AppSession } from './clients/session.ts';
import type { Fault, Lane } from './faults/fault.ts';
import { FAULTS, planLane, REST_SECONDS_MAX } from './faults/plan.ts';
import { Fired } from './fired.ts';
import { type Hindrance, judge } from './judge.ts';
import { runMs } from './run-time.ts';
import { clearStage, configOf, makeQuiet, type Stage, setStage, startApplications } from './stage.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly asRoot: boolean;
  /** Kinds to run, by a part of their names; left out: what the seed chooses. */
  readonly only?: string;
}

export interface Check {
  readonly name: string;
  /** What is wrong; empty: nothing. */
  readonly problems: readonly string[];
}

/** Start, calm, quiet and judgement take about that of the time. */
const AROUND_SECONDS = 50;
const FAULT_SECONDS_MIN = 20;
const GRANTS_PER_MINUTE_MIN = 60;
const QUIET_MS_MAX = 40_000;
const LATENCY_ROUNDS = 60;
/** What is still called the same latency, on a machine that others use too. */
const LATENCY_FACTOR_MAX = 4;
const LATENCY_MS_MAX = 60;

export async function runChaos(options: ChaosOptions, tell: (line: string) => void): Promise<Check[]> {
  const random = new Random(options.seed);
  const stage = await setStage(options);
  const ending = new AbortController();
  try {
    tell(`the fenced resource is ${stage.resource.kind}`);
    const before = await latency(stage);
    const applications = startApplications(stage, random, ending.signal);
    await pause(3_000);
    const faults = await runFaults(stage, random, options, tell);
    await makeQuiet(stage);
    const granted = stage.ledger.grants.length;
    ending.abort();
    const served = await within(Promise.all(applications), QUIET_MS_MAX);
    const after = await latency(stage);
    const checks = [
      { name: 'every kind of fault fired', problems: faults.fired.problems() },
      { name: 'traffic was there', problems: tooFew(granted, options.minutes) },
      {
        name: 'in the quiet phase every waiter was served',
        problems: served ? [] : ['an application still waits'],
      },
      { name: 'latency is what it was', problems: compareLatency(before, after, tell) },
      { name: 'every server runs, and none has halted', problems: await haltedServers(stage) },
      ...(await judged(stage, faults.hindrances, tell)),
    ];
    if (checks.some(({ problems }) => problems.length > 0)) tell(stage.bench.logs());
    return checks;
  } finally {
    ending.abort();
    await clearStage(stage);
  }
}

/** The lanes go side by side. */
async function runFaults(stage: Stage, random: Random, options: ChaosOptions, tell: (line: string) => void) {
  const seconds = Math.max(FAULT_SECONDS_MIN, options.minutes * 60 - AROUND_SECONDS);
  const isPossible = (fault: Fault): boolean => whyNot(fault, stage) === null && isWanted(fault, options);
  for (const fault of FAULTS) {
    const reason = whyNot(fault, stage);
    if (reason !== null) tell(`not run: ${fault.name} (${reason})`);
  }
  const hindrances: Hindrance[] = [];
  const fired = new Fired();
  const runLane = async (lane: Lane): Promise<void> => {
    const own = new Random(random.int(2 ** 32));
    for (const fault of planLane(lane, own, { seconds, isPossible })) {
      const from = runMs();
      const without = await fault.run(stage, own).then(
        (hadEffect) => (hadEffect ? null : 'had no effect'),
        (error: unknown) => String(error),
      );
      const to = runMs();
      const when = `${new Date(from).toISOString().slice(11, 23)} ${Math.round(to - from)} ms`;
      tell(`${when}: ${fault.name}${without === null ? '' : ` (${without})`}`);
      fired.add(fault.name, without);
      hindrances.push({ from, to, what: fault.name });
      await pause(own.int(REST_SECONDS_MAX * 1_000));
    }
  };
  await Promise.all([runLane('processes'), runLane('network')]);
  return { hindrances, fired };
}

function isWanted({ name }: Fault, { only }: ChaosOptions): boolean {
  return only === undefined || name.includes(only);
}

/** Null: it can be run. */
function whyNot({ needs }: Fault, { disk, clocks }: Stage): string | null {
  if (needs === 'root' && disk === null) return 'needs root, to mount a small disk';
  if (needs === 'libfaketime' && clocks === null) return 'libfaketime is not installed';
  return null;
}

async function judged(
  stage: Stage,
  hindrances: readonly Hindrance[],
  tell: (line: string) => void,
): Promise<Check[]> {
  const { timeline, ledger, resource, ttlMs, bench } = stage;
  // What was left behind by a broken call is over one TTL later.
  const giveUpAt = runMs() + 3 * ttlMs;
  while (timeline.counts.sessions > 0 && runMs() < giveUpAt) await pause(100);
  const leases = await bench.etcd(ETCDS[0] as string).figures();
  const [history, config] = [await timeline.finish(), await configOf(stage)];
  const writes = await resource.accepted();
  const evidence = { history, config, grants: ledger.grants, writes, hindrances, extraMs: 2 * ttlMs };
  const { verdict, unknown, badWrites } = judge(evidence);
  const { entries, grants, takeOvers } = verdict.counts;
  tell(
    `${entries} entries, ${grants} grants, ${takeOvers} take-overs; ${ledger.grants.length} grants told, ${writes.length} writes accepted`,
  );
  tell(
    [...ledger.calls]
      .map(([what, count]) => `${what}: ${count}`)
      .sort()
      .join(', '),
  );
  return [
    {
      name: 'the history keeps every promise',
      problems: verdict.violations.map(({ property, message }) => `${property}: ${message}`),
    },
    {
      name: 'every told grant is in the history',
      problems: unknown.map(({ name, token }) => `${name} ${token}`),
    },
    { name: 'the resource accepted no older token', problems: badWrites },
    { name: 'no application saw what it must not', problems: ledger.complaints },
    {
      name: 'one etcd lease for each lock server, at most',
      problems:
        leases.leases > SERVERS.length || leases.streams > SERVERS.length ? [JSON.stringify(leases)] : [],
    },
  ];
}

function tooFew(grants: number, minutes: number): string[] {
  const least = GRANTS_PER_MINUTE_MIN * minutes;
  return grants < least ? [`${grants} grants, at least ${least} were expected`] : [];
}

/** One whose log was rolled back runs on, and serves nothing. */
async function haltedServers({ bench }: Stage): Promise<string[]> {
  const roles = await Promise.all(
    SERVERS.map(async (name) => [name, (await bench.status(name))?.role ?? 'silent'] as const),
  );
  return roles
    .filter(([, role]) => role !== 'leading' && role !== 'following')
    .map(([name, role]) => `${name}: ${role}`);
}

/** Median of an acquire with its release, ms. */
async function latency({ apiPorts, ledger, ttlMs }: Stage): Promise<number> {
  const api = new LockApi(apiPorts[0] as number, ALIAS);
  const options = { client: 'latency', ttlMs, ledger, ending: new AbortController().signal };
  const session = await AppSession.open(api, options);
  const times: number[] = [];
  for (let round = 0; round < LATENCY_ROUNDS; round++) {
    const from = performance.now();
    const grant = await session?.acquire(`latency/${round}`, 5_000);
    if (grant != null) await session?.release(grant);
    times.push(performance.now() - from);
  }
  await session?.close();
  api.end();
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.POSITIVE_INFINITY;
}

function compareLatency(before: number, after: number, tell: (line: string) => void): string[] {
  tell(`an acquire and its release: ${before.toFixed(1)} ms before the faults, ${after.toFixed(1)} ms after`);
  return after > Math.max(LATENCY_FACTOR_MAX * before, LATENCY_MS_MAX)
    ? [`${after.toFixed(1)} ms after the faults`]
    : [];
}

async function within(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return Promise.race([work.then(() => true), pause(limitMs, false, { ref: false })]);
}
