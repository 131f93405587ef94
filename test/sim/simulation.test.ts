/**
 * The simulator in every `npm test`: the shipped code on virtual time, under a swarm of faults that each seed chooses for itself.
 * A finding prints its seed and the one command that repeats it. Many more hours: `npm run test:long`.
 */
import { describe, expect, it } from 'vitest';
import { describe as told } from './seeds.ts';
import { type RunReport, simulate } from './simulation.ts';

const HOURS = 0.05;
const isLong = process.env.LEASEHOLD_LONG !== undefined;
const FIXED_SEEDS = Array.from({ length: 10 }, (_, i) => i + 1);
/** Fresh ones find new things, and belong where somebody looks at them: the long run. */
const FRESH_SEEDS = Array.from({ length: isLong ? 60 : 0 }, () => Math.floor(Math.random() * 2 ** 31));
const DETERMINISM_SEEDS = Array.from({ length: 20 }, (_, i) => i + 101);
const RUN_MS = 120_000;

async function expectNothingFound(seed: number): Promise<RunReport> {
  const report = await simulate({ seed, hours: HOURS });
  expect(report.findings.length === 0 ? 'nothing found' : told(report, HOURS)).toBe('nothing found');
  return report;
}

describe('simulated runs keep every promise', () => {
  it.each(FIXED_SEEDS)('seed %i', async (seed) => void (await expectNothingFound(seed)), RUN_MS);
  it.runIf(isLong).each(FRESH_SEEDS)(
    'fresh seed %i',
    async (seed) => void (await expectNothingFound(seed)),
    RUN_MS,
  );

  it(
    'and they had traffic and faults',
    async () => {
      const reports: RunReport[] = [];
      for (const seed of [11, 12, 13, 14]) reports.push(await expectNothingFound(seed));
      const sum = (count: (report: RunReport) => number): number =>
        reports.reduce((all, report) => all + count(report), 0);
      expect(sum(({ grants }) => grants)).toBeGreaterThan(100);
      expect(sum(({ takeOvers }) => takeOvers)).toBeGreaterThan(4);
      expect(new Set(reports.flatMap(({ faults }) => [...faults.keys()])).size).toBeGreaterThan(5);
    },
    RUN_MS,
  );
});

describe('the simulator is deterministic', () => {
  it.each(DETERMINISM_SEEDS)(
    'seed %i twice',
    async (seed) => {
      const [first, second] = [await simulate({ seed, hours: 0.01 }), await simulate({ seed, hours: 0.01 })];
      expect(second.hash).toBe(first.hash);
      expect(second.steps).toBe(first.steps);
    },
    RUN_MS,
  );
});
