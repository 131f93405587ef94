/** `npm run chaos`: real processes, real faults, one seed. The command line's only logic is in here. */
import { parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';

const USAGE = 'usage: npm run chaos -- [--minutes M] [--seed N] [--without-root] [--only PART_OF_A_NAME]';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string' },
    only: { type: 'string' },
    'without-root': { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
if (!(minutes > 0) || !Number.isSafeInteger(seed) || seed < 0) {
  console.error(USAGE);
  process.exit(2);
}
const asRoot = process.getuid?.() === 0 && !values['without-root'];
const again = `npm run chaos -- --minutes ${minutes} --seed ${seed}${asRoot ? '' : ' --without-root'}`;
console.log(`chaos: ${again}`);
const only = values.only === undefined ? {} : { only: values.only };
try {
  const checks = await runChaos({ seed, minutes, asRoot, ...only }, (line) => console.log(line));
  const failed = checks.filter(({ problems }) => problems.length > 0);
  for (const { name, problems } of checks) {
    console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'} ${name}`);
    for (const problem of problems.slice(0, 20)) console.log(`       ${problem}`);
  }
  if (failed.length > 0) console.log(`the same faults in the same order: ${again}`);
  console.log(`${checks.length - failed.length} passed, ${failed.length} failed`);
  process.exit(failed.length === 0 ? 0 : 1);
} catch (error) {
  console.error(error);
  console.log(`the same faults in the same order: ${again}`);
  console.log('0 passed, 1 failed');
  process.exit(1);
}
