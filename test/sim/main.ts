/** `npm run sim`: repeats one seed, or runs many. The command line's only logic is in here. */
import { parseArgs } from 'node:util';
import { runSeeds, showSeed } from './seeds.ts';

const USAGE = `usage: npm run sim -- --seed N [--hours H] [--sparse] [--verbose]    repeat one run, and show what led to a finding
       npm run sim -- --seeds COUNT [--first N] [--hours H] [--sparse]  run many
       --sparse: calls and faults minutes apart, for long runs (left out: seconds)`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    first: { type: 'string' },
    hours: { type: 'string', default: '0.25' },
    sparse: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});

const run = { hours: Number(values.hours), pace: values.sparse ? 'sparse' : 'dense' } as const;
if (values.seed !== undefined) {
  process.exitCode = (await showSeed({ seed: Number(values.seed), ...run, isVerbose: values.verbose }))
    ? 0
    : 1;
} else if (values.seeds !== undefined) {
  const first = values.first === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.first);
  process.exitCode = (await runSeeds({ first, count: Number(values.seeds), ...run })) ? 0 : 1;
} else {
  console.error(USAGE);
  process.exitCode = 2;
}
