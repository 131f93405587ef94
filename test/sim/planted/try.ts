/**
 * Plants one bug and runs seeds until something is found: `node test/sim/planted/try.ts NAME FIRST_SEED SEEDS HOURS`.
 * Prints what came of it as JSON. In a process of its own, since a module is loaded once.
 */
import { PLANTED_BUGS } from './bugs.ts';
import { plant } from './mutate.ts';

/** Mean time between two of the faults that a bug needs, ms. */
const FAULT_EVERY_MS = 15_000;

const [name, first, count, hours] = process.argv.slice(2);
const bug = PLANTED_BUGS.find((one) => one.name === name);
if (bug === undefined) throw new Error(`no planted bug is named ${JSON.stringify(name)}`);
const isPlanted = plant(bug);
const { simulate } = await import('../simulation.ts');
const { withFaults, withoutRare } = await import('../plan.ts');

let virtualMs = 0;

async function outcome(seed: number) {
  try {
    const { findings, virtualMs: ranMs } = await simulate({
      seed,
      hours: Number(hours),
      changePlan: (drawn) => {
        const plan = withoutRare(drawn);
        return withFaults(bug?.change?.(plan) ?? plan, bug?.faults ?? [], FAULT_EVERY_MS);
      },
    });
    virtualMs += ranMs;
    return findings[0] ?? null;
  } catch (error) {
    // A process that cannot go on is found out too.
    return {
      property: 'crash',
      message: error instanceof Error ? String(error.cause ?? error) : String(error),
    };
  }
}

let found: Awaited<ReturnType<typeof outcome>> = null;
let seed = Number(first);
for (; seed < Number(first) + Number(count); seed++) {
  found = await outcome(seed);
  if (found !== null) break;
}
if (!isPlanted()) throw new Error(`planted bug "${bug.name}": ${bug.file} was not loaded`);
console.log(JSON.stringify({ seed, found, hours: virtualMs / 3_600_000 }));
