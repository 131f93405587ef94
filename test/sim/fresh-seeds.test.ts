/**
 * A few seeds that nobody has run before, in every `npm test`, for a bounded time: what the fixed seeds of simulation.test.ts
 * do not come by. A finding prints its seed and the command that repeats it. Hours of them: `npm run test:long`.
 */
import { expect, it } from 'vitest';
import { runUntil, summary, told } from './seeds.ts';

const SEED = Number(process.env.LEASEHOLD_SEED ?? Math.floor(Math.random() * 2 ** 31));
const HOURS = 0.05;
const FOR_MS = 20_000;
/** The last run begins in time and takes its own. */
const LIMIT_MS = 180_000;

it(
  'fresh seeds keep every promise',
  async () => {
    const reports = await runUntil({ first: SEED, hours: HOURS, forMs: FOR_MS, countMin: 1, threads: 1 });
    const last = SEED + reports.length - 1;
    console.log(`simulation, seeds ${SEED} to ${last}, ${HOURS} h each: ${summary(reports)}`);
    const found = reports.filter(({ findings }) => findings.length > 0);
    const said = found.map((report) => told(report));
    expect(said, said.join('; ')).toEqual([]);
    expect(reports.reduce((all, { entries }) => all + entries, 0)).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
