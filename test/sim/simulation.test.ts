/**
 * The simulator in every `npm test`: the shipped code on virtual time, under a swarm of faults that each seed chooses for
 * itself. A finding prints its seed and the one command that repeats it. Fresh seeds: fresh-seeds.test.ts; many more hours of
 * them: `npm run test:long`.
 */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { exclusiveOnly, type Plan, withFaults } from './plan.ts';
import { isPlain, type LockHabits } from './plan-locks.ts';
import { sliced } from './plan-sliced.ts';
import type { RunReport } from './run.ts';
import { told } from './seeds.ts';

/** By Node's own loader, which can load a program of another version beside it (nodes/programs.ts). */
const { simulate } = createRequire(import.meta.url)('./simulation.ts') as typeof import('./simulation.ts');

const HOURS = 0.05;
const FIXED_SEEDS = Array.from({ length: 16 }, (_, i) => i + 1);
/** Runs in which something was found once, when nothing but plain exclusive locks was asked for. */
const FOUND_BEFORE = [
  { seed: 20_175, what: 'a grant under a revoke came back after a sleep of the machine' },
  { seed: 20_187, what: 'the judge did not take the opening of a stream for a sign of life' },
  { seed: 400_736, what: 'the end of a session was told when the group had said who has the lock' },
];
/** The same of runs as their seeds choose them. */
const FOUND_IN_GROUPS = [
  {
    seed: 1_047,
    what: 'a front end sent a new leader an acquire again whose cancel had been committed too; a stopped standby suspected a sound leader',
  },
  { seed: 611_602_049, what: 'a standby took the time since its last look for silence of the leader' },
  {
    seed: 1_598_901_209,
    what: 'the copy of a sidecar closed a session that the other one still believed in',
  },
];
const RUN_MS = 180_000;

describe('simulated runs keep every promise', () => {
  const reports: RunReport[] = [];

  it.each(FIXED_SEEDS)(
    'seed %i',
    async (seed) => {
      const report = await simulate({ seed, hours: HOURS });
      reports.push(report);
      expect(told(report)).toBe(`seed ${seed}: nothing found`);
    },
    RUN_MS,
  );

  it.each(FOUND_BEFORE)(
    'seed $seed: $what',
    async ({ seed }) => {
      const report = await simulate({ seed, hours: HOURS, changePlan: exclusiveOnly });
      expect(told(report)).toBe(`seed ${seed}: nothing found`);
    },
    RUN_MS,
  );

  it.each(FOUND_IN_GROUPS)(
    'seed $seed: $what',
    async ({ seed }) => {
      const report = await simulate({ seed, hours: HOURS });
      expect(told(report)).toBe(`seed ${seed}: nothing found`);
    },
    RUN_MS,
  );

  it('and they had traffic, take-overs and every kind of fault', () => {
    const sum = (count: (report: RunReport) => number): number =>
      reports.reduce((all, report) => all + count(report), 0);
    expect(reports).toHaveLength(FIXED_SEEDS.length);
    expect(sum(({ grants }) => grants)).toBeGreaterThan(500);
    expect(sum(({ takeOvers }) => takeOvers)).toBeGreaterThan(20);
    expect(sum(({ writes }) => writes)).toBeGreaterThan(500);
    expect(new Set(reports.flatMap(({ faults }) => [...faults.keys()])).size).toBeGreaterThan(14);
  });

  it('and locks of every mode were held and shared, though many runs asked for plain ones alone', () => {
    const sum = (count: (report: RunReport) => number): number =>
      reports.reduce((all, report) => all + count(report), 0);
    expect(sum(({ tally }) => tally.shared)).toBeGreaterThan(50);
    expect(sum(({ tally }) => tally.semaphore)).toBeGreaterThan(50);
    expect(sum(({ tally }) => tally.joined)).toBeGreaterThan(20);
    expect(sum(({ tally }) => tally.partlyReleased)).toBeGreaterThan(20);
    const plain = reports.filter(({ plan }) => isPlain(plan.locks));
    expect(plain.length).toBeGreaterThanOrEqual(4);
    for (const { tally } of plain) expect(Object.values(tally).every((count) => count === 0)).toBe(true);
  });
});

describe('locks in all modes, while an administrator changes permits', () => {
  const reports: RunReport[] = [];
  const locks: LockHabits = {
    modes: ['exclusive', 'shared', 'semaphore'],
    reentrant: 0.4,
    takesMore: 0.2,
    asksWrong: 0.05,
    owners: ['one', 'other'],
  };
  const mixed = (plan: Plan): Plan => {
    const semaphores = [{ pattern: 'job-0', permits: 4 }];
    const ample = {
      sessions: 5_000,
      heldLocks: 1_000,
      locksPerClient: 100,
      operationsPerSecondPerClient: 200,
    };
    const config = { ...plan.config, ...ample, modes: locks.modes, semaphores, maxHoldMs: 86_400_000 };
    const habits = { ...plan.habits, thinkMs: 1_000, holdMs: 8_000 };
    const apart = { ...plan, isOneProcess: false, sidecars: 2 };
    return withFaults({ ...apart, locks, config, habits, names: 2 }, ['modesChange'], 5_000);
  };

  it.each([401, 402, 403])(
    'seed %i: permits are cut under those who hold them',
    async (seed) => {
      const report = await simulate({ seed, hours: HOURS, changePlan: mixed });
      reports.push(report);
      expect(report.findings).toEqual([]);
    },
    RUN_MS,
  );

  it('and grants were cut, joined and shared', () => {
    expect(reports).toHaveLength(3);
    for (const kind of ['permitsCut', 'joined', 'shared', 'semaphore'] as const)
      expect(
        reports.reduce((all, { tally }) => all + tally[kind], 0),
        kind,
      ).toBeGreaterThan(0);
  });
});

describe('entries that carry out a few consequences each', () => {
  const crowd = (plan: Plan, transitionsMax: number): Plan => {
    const config = { ...plan.config, ttlMs: 5_000, sessions: 5_000, heldLocks: 1_000, locksPerClient: 100 };
    const habits = { ...plan.habits, thinkMs: 1_000, holdMs: 8_000 };
    const apart = { ...plan, isOneProcess: false, sidecars: 2, config, habits, snapshotDueBytes: 2_000 };
    return withFaults(sliced(apart, transitionsMax), ['serverCrash', 'appCrash'], 15_000);
  };

  it.each([
    { seed: 801, most: 1 },
    { seed: 802, most: 2 },
    { seed: 812, most: 3 },
  ])(
    'seed $seed, $most at most: the rest is carried from entry to entry (rule C1)',
    async ({ seed, most }) => {
      const report = await simulate({ seed, hours: HOURS, changePlan: (plan) => crowd(plan, most) });
      expect(report.findings).toEqual([]);
      expect(report.carriedOver).toBeGreaterThan(10);
    },
    RUN_MS,
  );
});

describe('two sidecars with one state file', () => {
  it.each([
    { seed: 901, replicas: 1 },
    { seed: 902, replicas: 3 },
  ])(
    'seed $seed: whoever attached last has the session, and nobody else believes in it',
    async ({ seed, replicas }) => {
      const report = await simulate({
        seed,
        hours: HOURS,
        changePlan: (plan) => {
          const habits = { ...plan.habits, keepalives: ['app' as const], thinkMs: 1_000, holdMs: 20_000 };
          const group = { ...plan, isOneProcess: false, replicas, rollsBack: false, sidecars: 2, habits };
          return withFaults(group, ['stateCopied', 'sidecarPause'], 8_000);
        },
      });
      expect(report.findings).toEqual([]);
      expect(report.faults.get('stateCopied')).toBeGreaterThan(4);
    },
    RUN_MS,
  );
});

describe('groups of several replicas', () => {
  it.each([
    { seed: 501, replicas: 3 },
    { seed: 502, replicas: 3 },
    { seed: 503, replicas: 3 },
    { seed: 504, replicas: 5 },
  ])(
    'seed $seed: $replicas replicas that crash, pause, hand over and are cut off',
    async ({ seed, replicas }) => {
      const report = await simulate({
        seed,
        hours: HOURS,
        changePlan: (plan) => {
          const group = { ...plan, isOneProcess: false, replicas, sidecars: 2 };
          return withFaults(
            group,
            ['serverCrash', 'serverStop', 'serverPause', 'storeCut', 'relayCut', 'relayStall'],
            15_000,
          );
        },
      });
      expect(report.findings).toEqual([]);
      expect(report.takeOvers).toBeGreaterThan(4);
    },
    RUN_MS,
  );
});

describe('two versions of the program side by side', () => {
  it.each([
    { seed: 601, olderReplicas: 3, downgrades: false },
    { seed: 602, olderReplicas: 3, downgrades: true },
    { seed: 603, olderReplicas: 1, downgrades: true },
  ])(
    'seed $seed: a roll-out from $olderReplicas older ones, rolled back now and then: $downgrades',
    async ({ seed, olderReplicas, downgrades }) => {
      const report = await simulate({
        seed,
        hours: HOURS,
        changePlan: (plan) => {
          const group = { ...plan, isOneProcess: false, replicas: 3, sidecars: 2, rollsBack: false };
          const changes = downgrades
            ? (['serverUpgrade', 'serverDowngrade'] as const)
            : (['serverUpgrade'] as const);
          return withFaults({ ...group, olderReplicas, finishesUpgrade: true }, changes, 15_000);
        },
      });
      expect(report.findings).toEqual([]);
      expect(report.faults.get('serverUpgrade')).toBeGreaterThan(0);
      expect(report.takeOvers).toBeGreaterThan(1);
    },
    RUN_MS,
  );
});

describe('a storage that is rolled back', () => {
  it.each([701, 702, 703])(
    'seed %i: the group halts, an operator begins a new lineage, and everybody locks again',
    async (seed) => {
      const report = await simulate({
        seed,
        hours: HOURS,
        changePlan: (plan) => ({
          ...{
            ...plan,
            isOneProcess: false,
            replicas: 3,
            sidecars: 2,
            names: 2,
            rollsBack: true,
            beginsAnew: true,
          },
          config: { ...plan.config, ttlMs: 8_000, sessions: 5_000, heldLocks: 1_000, locksPerClient: 100 },
          habits: { ...plan.habits, thinkMs: 1_000, holdMs: 4_000 },
        }),
      });
      expect(report.findings).toEqual([]);
      expect(report.faults.get('newLineage')).toBe(1);
    },
    RUN_MS,
  );
});

describe('one process, as leasehold dev is', () => {
  it.each([301, 302, 303])(
    'seed %i: kill -9 of server and sidecar together, again and again',
    async (seed) => {
      const report = await simulate({
        seed,
        hours: HOURS,
        changePlan: (plan) => ({
          ...withFaults(
            { ...plan, isOneProcess: true, isAudited: false, sidecars: 1 },
            ['serverCrash', 'appFreeze'],
            10_000,
          ),
        }),
      });
      expect(report.findings).toEqual([]);
      expect(report.takeOvers).toBeGreaterThan(4);
    },
    RUN_MS,
  );
});

describe('the simulator is deterministic', () => {
  it.each(Array.from({ length: 50 }, (_, i) => i + 101))(
    'seed %i twice',
    async (seed) => {
      const run = () => simulate({ seed, hours: 0.01, isCutShort: true });
      const [first, second] = [await run(), await run()];
      expect(second.hash).toBe(first.hash);
      expect(second.steps).toBe(first.steps);
    },
    RUN_MS,
  );

  it('another seed is another run', async () => {
    const hashes: string[] = [];
    for (const seed of [201, 202, 203]) hashes.push((await simulate({ seed, hours: 0.01 })).hash);
    expect(new Set(hashes).size).toBe(3);
  }, 60_000);

  it('looking on changes nothing', async () => {
    let lines = 0;
    const onTrace = (): void => void lines++;
    const [silent, told] = [
      await simulate({ seed: 204, hours: 0.01 }),
      await simulate({ seed: 204, hours: 0.01, onTrace }),
    ];
    expect(told.hash).toBe(silent.hash);
    expect(lines).toBeGreaterThan(100);
  }, 60_000);
});
