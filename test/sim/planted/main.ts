/**
 * `npm run planted`: plants each bug and says which seed caught it, and after how many simulated hours. One that nobody catches is a
 * failure: then the harness would not notice such a fault either. Ends with the line `N passed, N failed`.
 *
 *   --recorded   only the seed on record of each bug: quick, for every change
 *   --write      puts the seeds found on record
 *   NAME...      only these bugs
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { attempt, type Caught } from './attempt.ts';
import type { PlantedBug } from './bug.ts';
import { PLANTED_BUGS } from './bugs.ts';

const RECORD = fileURLToPath(new URL('./recorded.json', import.meta.url));
const SEEDS = 60;
/** A change of the product shifts what a seed leads to: then so many are tried before a bug counts as uncaught. */
const SEEDS_IF_STALE = 40;

type Recorded = Readonly<Record<string, number>>;

async function find(bug: PlantedBug, recorded: Recorded, isQuick: boolean): Promise<Caught> {
  const seed = recorded[bug.name];
  if (seed !== undefined) {
    const caught = await attempt(bug, { first: seed, count: 1 });
    if (caught.found !== null) return caught;
  }
  return attempt(bug, { first: 1, count: isQuick ? SEEDS_IF_STALE : SEEDS });
}

function told(bug: PlantedBug, { seed, hours, found }: Caught, recorded: Recorded): string {
  const commit = bug.commit === undefined ? '' : ` (a fault of ours until ${bug.commit})`;
  const what = `${bug.rule}: ${bug.name}${commit}`;
  if (found === null) return `NOT CAUGHT ${what}, within ${hours.toFixed(2)} simulated hours`;
  const stale =
    recorded[bug.name] !== undefined && recorded[bug.name] !== seed ? '; its seed on record is stale' : '';
  return `caught ${what}: by ${found.property}, seed ${seed}, after ${hours.toFixed(2)} simulated hours${stale}`;
}

/** After each bug, so that a search that is cut short is not lost. */
function record(seeds: Recorded): void {
  const known = Object.entries(seeds).filter(([name]) => PLANTED_BUGS.some((bug) => bug.name === name));
  writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(known.sort()), null, 2)}\n`);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { recorded: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const recorded = JSON.parse(readFileSync(RECORD, 'utf8')) as Recorded;
  const wanted = PLANTED_BUGS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  const caught = new Map<string, number>();
  let [failed, next] = [wanted.length === 0 ? 1 : 0, 0];
  const worker = async (): Promise<void> => {
    for (let bug = wanted[next++]; bug !== undefined; bug = wanted[next++]) {
      try {
        const outcome = await find(bug, recorded, values.recorded);
        console.log(told(bug, outcome, recorded));
        if (outcome.found === null) failed++;
        else caught.set(bug.name, outcome.seed);
        if (values.write) record({ ...recorded, ...Object.fromEntries(caught) });
      } catch (error) {
        failed++;
        console.log(`FAILED ${bug.rule}: ${bug.name}: ${String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker));
  console.log(`${caught.size} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

await main();
