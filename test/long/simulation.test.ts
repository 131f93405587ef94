/** Hours of simulation: long runs of few seeds for what builds up slowly, short runs of many for what is rare. */
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { runUntil, summary, told } from '../sim/seeds.ts';

const SEED = Number(process.env.LEASEHOLD_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** So many seeds hardly all choose the same modes. */
const SEEDS_FOR_ALL_MODES = 40;
/** How long each kind of run is given. */
const FOR_MS = Number(process.env.LEASEHOLD_SIM_MS ?? 5 * 60_000);

it.each([
  { hours: 0.05, what: 'short runs' },
  { hours: 2, what: 'long runs' },
])('$what keep every promise', async ({ hours }) => {
  const reports = await runUntil({
    first: SEED,
    hours,
    forMs: FOR_MS,
    countMin: 2,
    threads: availableParallelism(),
  });
  console.log(`seeds ${SEED} to ${SEED + reports.length - 1}: ${summary(reports)}`);
  const found = reports.filter(({ findings }) => findings.length > 0).map((report) => told(report, hours));
  expect(found).toEqual([]);
  expect(reports.length).toBeGreaterThanOrEqual(2);
  if (reports.length < SEEDS_FOR_ALL_MODES) return;
  for (const kind of ['shared', 'semaphore', 'joined', 'partlyReleased', 'permitsCut'] as const)
    expect(
      reports.reduce((all, { tally }) => all + tally[kind], 0),
      kind,
    ).toBeGreaterThan(0);
});
