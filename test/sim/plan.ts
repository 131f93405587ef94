/**
 * What a seed chooses before its run begins: how many of everything, how slow, which faults and how often (a swarm: each run
 * leaves most of them out, so that those it has can have their way). All of it follows from the seed.
 */
import type { NamespaceConfig } from '../../src/api/config.ts';
import type { Random } from '../support/random.ts';
import { type Constants, SHIPPED } from './nodes/constants.ts';
import { allowing, type LockHabits, makeLocks, PLAIN_LOCKS } from './plan-locks.ts';
import { sliced } from './plan-sliced.ts';
import type { World } from './world/world.ts';

export const FAULT_KINDS = [
  'serverCrash',
  'serverStop',
  'serverPause',
  'serverUsurped',
  'logOutage',
  'logSlow',
  'logDepose',
  'linkCut',
  'linkCutSilently',
  'linkStall',
  'sidecarCrash',
  'sidecarPause',
  'machineSleep',
  'appFreeze',
  'appCrash',
  'wallStep',
  'configChange',
  'namespaceRemoved',
  'breakLock',
  'quarantine',
  'modesChange',
  'relayCut',
  'relayStall',
  'storeCut',
  'serverUpgrade',
  'serverDowngrade',
  'breakNow',
  'reportStale',
  'poisonName',
  'stateCopied',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** How applications behave; each a chance from 0 to 1 unless said otherwise. */
export interface Habits {
  /** Mean pause between two things a worker does, ms. */
  readonly thinkMs: number;
  /** Mean time a lock is kept, ms. */
  readonly holdMs: number;
  readonly waitMs: readonly number[];
  readonly keepalives: readonly ('app' | 'stream' | 'both')[];
  readonly oneLock: number;
  readonly withRequest: number;
  readonly repeatsRequest: number;
  readonly hangsUp: number;
  readonly wrongRelease: number;
  readonly closesSession: number;
  readonly closesStream: number;
  readonly fallsSilent: number;
  readonly neverReleases: number;
  readonly reads: number;
  /** Keepalives are sent every TTL times this. */
  readonly keepaliveShare: number;
}

export interface Plan {
  readonly aliases: readonly string[];
  /** Server and sidecar in one process, as in `leasehold dev`. */
  readonly isOneProcess: boolean;
  /** Of each group; one is a server as `leasehold dev` has it, not a group of one. */
  readonly replicas: number;
  /** So many of them begin with the program of the version before (rule C15). */
  readonly olderReplicas: number;
  /** The roll-out of the new version is brought to its end before the run becomes quiet. */
  readonly finishesUpgrade: boolean;
  /** How long the leadership of a silent leader lasts, in groups of several. */
  readonly leaseMs: number;
  /** Ends with an old copy of the storage in its place (rule S10). */
  readonly rollsBack: boolean;
  /** After that an operator begins a new lineage, and all goes on in it. */
  readonly beginsAnew: boolean;
  readonly sidecars: number;
  readonly applicationsPerSidecar: number;
  readonly workersPerApplication: number;
  /** Names below each alias. */
  readonly names: number;
  readonly config: NamespaceConfig;
  /** TTL of the second namespace, where there is one. */
  readonly otherTtlMs: number;
  readonly hasJitter: boolean;
  /** Largest difference of a clock's rate from 1. */
  readonly rateSpread: number;
  readonly networkDelayMs: { readonly from: number; readonly to: number };
  readonly localDelayMs: number;
  readonly logLatencyMs: { readonly from: number; readonly to: number };
  readonly unknownOutcomes: number;
  readonly snapshotDueBytes: number | undefined;
  readonly constants: Constants;
  /** Groups of several export an audit. */
  readonly isAudited: boolean;
  /** Mean time between two faults of a kind, ms. */
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly habits: Habits;
  readonly locks: LockHabits;
  /** A client that acts on sessions of others does so every so many ms; null: there is none (rule C7). */
  readonly rudeEveryMs: number | null;
  /** Share of the commands that make the state machine throw (rule C13). */
  readonly poisonous: number;
  /** How long machines sleep, ms. */
  readonly sleepMs: readonly number[];
}

const FAULT_SHARE = 0.3;
const FAULT_EVERY_MS = [8_000, 30_000, 120_000, 400_000];
const TTLS_MS = [5_000, 8_000, 15_000, 20_000];
const LONG_SLEEPS_MS = [2_600, 8_000, 60_000];
/** Down to what is noticed with a TTL of 5 s (rule A2). */
const SHORT_SLEEPS_MS = [700, 1_200, 1_900, 3_000];
/** Drawn apart from the rest of the plan: see plan-locks.ts. */
const OF_GROUPS: readonly FaultKind[] = ['relayCut', 'relayStall', 'storeCut'];
const OF_ADMINISTRATORS: readonly FaultKind[] = ['breakNow', 'reportStale', 'poisonName'];
const OF_PROGRAMS: readonly FaultKind[] = ['serverUpgrade', 'serverDowngrade'];
const OF_COPIES: readonly FaultKind[] = ['stateCopied'];
const DRAWN_APART: readonly FaultKind[] = [
  ...['modesChange' as const, ...OF_GROUPS, ...OF_PROGRAMS],
  ...[...OF_ADMINISTRATORS, ...OF_COPIES],
];

export function makePlan(world: World): Plan {
  const random = world.random('plan');
  const isOneProcess = random.chance(0.2);
  const plain: Plan = {
    aliases: random.chance(0.2) ? ['blue', 'green'] : ['blue'],
    isOneProcess,
    replicas: 1,
    olderReplicas: 0,
    finishesUpgrade: true,
    leaseMs: 5_000,
    rollsBack: false,
    beginsAnew: false,
    sidecars: isOneProcess ? 1 : random.pick([1, 2, 2, 3, 3, 4, 5]),
    applicationsPerSidecar: isOneProcess ? random.between(2, 5) : random.between(1, 3),
    workersPerApplication: random.between(1, 2),
    names: random.between(1, 4),
    config: makeConfig(random),
    otherTtlMs: random.pick(TTLS_MS),
    hasJitter: random.chance(0.7),
    rateSpread: random.pick([0, 0.001, 0.005, 0.01]),
    networkDelayMs: random.pick([
      { from: 0, to: 0 },
      { from: 0.1, to: 3 },
      { from: 1, to: 80 },
    ]),
    localDelayMs: random.pick([0, 0.5, 3]),
    logLatencyMs: random.pick([
      { from: 0, to: 1 },
      { from: 0.5, to: 6 },
      { from: 2, to: 60 },
    ]),
    unknownOutcomes: random.pick([0, 0, 0.01, 0.1]),
    snapshotDueBytes: random.chance(0.4) ? random.pick([2_000, 20_000, 100_000]) : undefined,
    constants: SHIPPED,
    isAudited: false,
    faults: makeFaults(random, isOneProcess),
    habits: makeHabits(random),
    locks: PLAIN_LOCKS,
    poisonous: 0,
    rudeEveryMs: null,
    sleepMs: LONG_SLEEPS_MS,
  };
  const ofGroup = withReplicas(withLocks(plain, world.random('locks')), world.random('replicas'));
  const beginsAnew = ofGroup.rollsBack && world.random('lineage').chance(0.8);
  const withVersions = withPrograms({ ...ofGroup, beginsAnew }, world.random('programs'));
  const withSmall = withSlices(withPoison(withVersions, world.random('poison')), world.random('transitions'));
  return withCopies(withSecondStates(withSmall, world.random('second states')), world.random('copies'));
}

/** Of sidecars' state files; sessions that need a stream are not renewed by who has only a copy. */
function withCopies(plan: Plan, random: Random): Plan {
  const everyMs = random.pick([8_000, 20_000, 60_000]);
  const isWanted = random.chance(0.15) && plan.habits.keepalives.includes('app');
  if (!isWanted || plan.isOneProcess) return plan;
  return { ...plan, faults: new Map([...plan.faults, ['stateCopied', everyMs]]) };
}

/** Half of those that write snapshots at all. */
function withSecondStates(plan: Plan, random: Random): Plan {
  if (plan.snapshotDueBytes === undefined || random.chance(0.5)) return plan;
  return { ...plan, constants: { ...plan.constants, onePassRecordsMax: 0 } };
}

/**
 * In most runs the product's own bound, which is never used up. On a log that takes long over each entry a few consequences an entry would be
 * late by more than the second that is allowed to what 2,000 carry out.
 */
function withSlices(plan: Plan, random: Random): Plan {
  if (!random.chance(0.2)) return plan;
  const faults = new Map([...plan.faults].filter(([kind]) => kind !== 'logSlow'));
  return { ...sliced(plan, random.pick([1, 2, 5, 20])), faults, logLatencyMs: { from: 0.5, to: 6 } };
}

/** Half of all runs have groups of several replicas. */
function withReplicas(plan: Plan, random: Random): Plan {
  const replicas = random.pick([1, 1, 1, 1, 1, 3, 3, 3, 3, 5]);
  const leaseMs = random.pick([2_000, 5_000]);
  const drawn = OF_GROUPS.map((kind) => [kind, random.pick(FAULT_EVERY_MS)] as const);
  const faults = drawn.filter(() => random.chance(FAULT_SHARE));
  const rollsBack = random.chance(0.1);
  if (plan.isOneProcess || replicas === 1) return plan;
  const isAudited = random.chance(0.3);
  return { ...plan, replicas, leaseMs, rollsBack, isAudited, faults: new Map([...plan.faults, ...faults]) };
}

/** In some groups the new version is rolled out meanwhile. */
function withPrograms(plan: Plan, random: Random): Plan {
  if (plan.replicas === 1 || random.chance(0.7)) return plan;
  const olderReplicas = random.chance(0.5) ? plan.replicas : random.between(0, plan.replicas);
  const everyMs = (): number => random.pick([8_000, 30_000, 60_000]);
  const faults = new Map([...plan.faults, ['serverUpgrade', everyMs()] as const]);
  if (random.chance(0.4)) faults.set('serverDowngrade', everyMs());
  return { ...plan, olderReplicas, finishesUpgrade: random.chance(0.7), faults };
}

/** What administrators do that is unsafe or rare, mistakes in the state machine, clients that mean harm. */
function withPoison(plan: Plan, random: Random): Plan {
  const faults = new Map(plan.faults);
  for (const kind of OF_ADMINISTRATORS)
    if (random.chance(0.15)) faults.set(kind, random.pick(FAULT_EVERY_MS));
  const poisonous = random.chance(0.15) ? random.pick([0.002, 0.01, 0.05]) : 0;
  const isRude = random.chance(0.15) && !plan.isOneProcess;
  return { ...plan, faults, poisonous, rudeEveryMs: isRude ? random.pick([200, 2_000]) : null };
}

/** The rest of a plan, drawn apart from what is above. */
function withLocks(plan: Plan, random: Random): Plan {
  const locks = makeLocks(random);
  const sleepMs = random.chance(0.4) ? SHORT_SLEEPS_MS : LONG_SLEEPS_MS;
  const everyMs = random.pick([3_000, 8_000, 30_000]);
  const changes = locks !== PLAIN_LOCKS && random.chance(0.6);
  return {
    ...plan,
    locks,
    sleepMs,
    config: allowing(plan.config, locks, plan.names, random),
    faults: changes ? new Map([...plan.faults, ['modesChange', everyMs]]) : plan.faults,
  };
}

/** The same plan without what is rare and says something of itself alone: versions, poison, rude clients, unsafe commands. */
export function withoutRare(plan: Plan): Plan {
  const rare: readonly FaultKind[] = [...OF_PROGRAMS, ...OF_ADMINISTRATORS, ...OF_COPIES];
  const faults = new Map([...plan.faults].filter(([kind]) => !rare.includes(kind)));
  return {
    ...plan,
    faults,
    olderReplicas: 0,
    poisonous: 0,
    rudeEveryMs: null,
    beginsAnew: false,
    constants: SHIPPED,
    isAudited: false,
  };
}

/** The same plan with nothing but one replica, plain exclusive locks and long sleeps: what there was before the others. */
export function exclusiveOnly(plan: Plan): Plan {
  const faults = new Map([...plan.faults].filter(([kind]) => !DRAWN_APART.includes(kind)));
  const config: NamespaceConfig = { ...plan.config, modes: ['exclusive'], semaphores: [] };
  return {
    ...plan,
    replicas: 1,
    olderReplicas: 0,
    poisonous: 0,
    rudeEveryMs: null,
    rollsBack: false,
    constants: SHIPPED,
    isAudited: false,
    locks: PLAIN_LOCKS,
    sleepMs: LONG_SLEEPS_MS,
    config,
    faults,
  };
}

function makeFaults(random: Random, isOneProcess: boolean): ReadonlyMap<FaultKind, number> {
  const faults = new Map<FaultKind, number>();
  for (const kind of FAULT_KINDS) {
    if (DRAWN_APART.includes(kind)) continue;
    if (random.chance(FAULT_SHARE)) faults.set(kind, random.pick(FAULT_EVERY_MS));
  }
  return sensible(faults, isOneProcess);
}

/** What a sidecar and a server of their own can suffer, and one process cannot. */
const NEED_PROCESSES_APART: readonly FaultKind[] = [
  'serverUsurped',
  'linkCut',
  'linkCutSilently',
  'linkStall',
  'sidecarCrash',
  'sidecarPause',
  'stateCopied',
];

function sensible(faults: Map<FaultKind, number>, isOneProcess: boolean): ReadonlyMap<FaultKind, number> {
  // A machine that sleeps while its wall clock is set looks as if it had not slept: nobody can tell (rule A2).
  if (faults.has('machineSleep')) faults.delete('wallStep');
  if (isOneProcess) for (const kind of NEED_PROCESSES_APART) faults.delete(kind);
  return faults;
}

/** The same plan with these faults as well, as far as they make sense in it. */
export function withFaults(plan: Plan, kinds: readonly FaultKind[], everyMs: number): Plan {
  const faults = new Map([...plan.faults, ...kinds.map((kind) => [kind, everyMs] as const)]);
  return { ...plan, faults: sensible(faults, plan.isOneProcess) };
}

function makeHabits(random: Random): Habits {
  const chance = (usual: number): number => (random.chance(0.3) ? 0 : usual * random.pick([0.3, 1, 3]));
  return {
    thinkMs: random.pick([100, 1_000, 5_000, 20_000, 60_000]),
    holdMs: random.pick([20, 400, 4_000, 20_000, 60_000]),
    waitMs: random.pick([[0], [0, 100, 5_000], [1_000, 20_000], [0, 1, 30_000, 120_000], [1, 600_000]]),
    keepalives: random.pick([['app'], ['stream'], ['both'], ['app', 'stream', 'both']] as const),
    oneLock: chance(0.2),
    withRequest: chance(0.25),
    repeatsRequest: chance(0.3),
    hangsUp: chance(0.1),
    wrongRelease: chance(0.1),
    closesSession: chance(0.05),
    closesStream: chance(0.03),
    fallsSilent: chance(0.03),
    neverReleases: chance(0.05),
    reads: chance(0.1),
    keepaliveShare: random.pick([0.1, 0.2, 0.4, 0.7]),
  };
}

/** Limits: mostly ample, sometimes tiny, each on its own. */
export function makeConfig(random: Random): NamespaceConfig {
  const limit = (tiny: readonly number[], ample: number): number =>
    random.chance(0.15) ? random.pick(tiny) : ample;
  return {
    namespace: 'simulated',
    name: 'locks',
    safetyClass: 'Efficiency',
    ttlMs: random.pick(TTLS_MS),
    ttlMsMin: 5_000,
    ttlMsMax: 60_000,
    lockDelayMs: random.pick([0, 0, 1_000, 5_000]),
    maxHoldMs: limit([1_000, 10_000], 86_400_000),
    modes: ['exclusive'],
    maxWaitersPerName: limit([1, 2], 500),
    maxWaitMs: limit([2_000], 600_000),
    sessions: limit([2, 4], 5_000),
    heldLocks: limit([1, 2], 200_000),
    waiters: limit([1, 3], 50_000),
    operationsPerSecond: limit([5, 20], 5_000),
    locksPerClient: limit([1, 2], 1_000),
    operationsPerSecondPerClient: limit([2, 10], 200),
    semaphores: [],
    consumers: null,
  };
}
