// `npm run test:long`: everything that takes longer than a change may wait: the long tests and all planted bugs, an hour of chaos beside
// them (it waits more than it computes), and when the machine is free again the bench. Runs all of it even if a part fails, says how each
// ended and what failed, and closes with the sum. With arguments: only the long tests, which get them
// (`npm run test:long -- test/long/soak.test.ts`). LEASEHOLD_CHAOS_MINUTES, LEASEHOLD_SIM_HOURS and
// LEASEHOLD_SIM_SEEDS set other lengths.
import { run } from './processes.mjs';

const CHAOS_MINUTES = process.env.LEASEHOLD_CHAOS_MINUTES ?? '60';

/** @typedef {{ name: string, args: readonly string[] }} Part */

/** In turn, each with what stands beside it: the parts of a lane follow each other. @type {ReadonlyArray<ReadonlyArray<readonly Part[]>>} */
const STAGES = [
  [
    [
      { name: 'long tests', args: ['scripts/test.mjs', '--long'] },
      { name: 'planted bugs', args: ['test/sim/planted/main.ts'] },
    ],
    [{ name: 'chaos', args: ['test/chaos/main.ts', '--minutes', CHAOS_MINUTES] }],
  ],
  [[{ name: 'bench', args: ['bench/main.ts'] }]],
];
const FAILURE = /^(FAILED|NOT CAUGHT) /;

/** @type {string[]} */
const failures = [];
let passed = 0;

/** @param {Part} part */
async function runPart({ name, args }) {
  const startedMs = performance.now();
  console.log(`[${name}] node ${args.join(' ')}`);
  const onLine = (/** @type {string} */ line) => {
    console.log(`[${name}] ${line}`);
    if (FAILURE.test(line)) failures.push(`${name}: ${line}`);
  };
  const { code } = await run('node', args, { onLine });
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
  console.log(`[${name}] ${code === 0 ? 'passed' : `ended with ${code}`} after ${minutes} minutes`);
  if (code === 0) passed += 1;
  else failures.push(`${name}: ended with ${code}`);
}

/** @param {readonly Part[]} parts */
async function runLane(parts) {
  for (const part of parts) await runPart(part);
}

const only = process.argv.slice(2);
if (only.length > 0) {
  const { code } = await run('node', ['scripts/test.mjs', '--long', ...only]);
  process.exit(code);
}
for (const lanes of STAGES) await Promise.all(lanes.map(runLane));
for (const line of failures) console.log(line);
const all = STAGES.flat(2).length;
console.log(`${passed} passed, ${all - passed} failed`);
process.exitCode = passed === all ? 0 : 1;
