// `npm run test:long`: everything that takes longer than a change may wait, one after the other: the long tests, all planted bugs, an hour
// of chaos, the bench. Runs all of it even if a part fails, says how each ended, and closes with the sum. With arguments: only the long
// tests, which get them (`npm run test:long -- test/long/soak.test.ts`).
import { run } from './processes.mjs';

const CHAOS_MINUTES = process.env.LEASEHOLD_CHAOS_MINUTES ?? '60';

/** @type {ReadonlyArray<{ name: string, args: readonly string[] }>} */
const PARTS = [
  { name: 'long tests', args: ['scripts/test.mjs', '--long'] },
  { name: 'planted bugs', args: ['test/sim/planted/main.ts'] },
  { name: 'chaos', args: ['test/chaos/main.ts', '--minutes', CHAOS_MINUTES] },
  { name: 'bench', args: ['bench/main.ts'] },
];

const only = process.argv.slice(2);
if (only.length > 0) {
  const { code } = await run('node', ['scripts/test.mjs', '--long', ...only]);
  process.exit(code);
}
let failed = 0;
for (const { name, args } of PARTS) {
  console.log(`== ${name}: node ${args.join(' ')}`);
  const { code } = await run('node', args);
  console.log(`== ${name}: ${code === 0 ? 'passed' : `ended with ${code}`}`);
  if (code !== 0) failed += 1;
}
console.log(`${PARTS.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
