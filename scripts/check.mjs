// `npm run check`: all static checks at once. Each counts as one test in the closing line `N passed, N failed`.
import { run } from './processes.mjs';

const CHECKS = [
  { name: 'types', command: 'tsc', args: ['--noEmit', '-p', '.'] },
  { name: 'lint and format', command: 'biome', args: ['check', '.', '--max-diagnostics=50'] },
  { name: 'import order', command: 'node', args: ['scripts/import-order.mjs'] },
  { name: 'unused code and dependencies', command: 'knip', args: ['--no-progress'] },
];

const results = await Promise.all(
  CHECKS.map(async ({ name, command, args }) => {
    const { code, output } = await run(command, args, { capture: true });
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name}`);
    if (output.trim() !== '') console.log(output.trimEnd().replace(/^/gm, '       '));
    return code === 0;
  }),
);

const passed = results.filter((ok) => ok).length;
const failed = results.length - passed;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
