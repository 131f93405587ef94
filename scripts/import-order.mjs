// Checks which folder of src imports from which, and that the pure folders stay pure. Tests are free.
// dependency-cruiser cannot read this code (no TypeScript 7, and with swc no `using`), so this small table does it;
// cycles are found by biome (noImportCycles). Specifiers are found by their text, which the formatter makes uniform.
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { ROOT } from './processes.mjs';

const BASE = ['api', 'core', 'history'];

/** What each folder of src may import from, apart from itself. */
/** @type {Readonly<Record<string, readonly string[]>>} */
const MAY_IMPORT = {
  api: [],
  core: ['api'],
  history: ['api'],
  platform: BASE,
  client: ['api'],
  log: [...BASE, 'platform'],
  server: [...BASE, 'platform', 'log'],
  sidecar: [...BASE, 'platform', 'log', 'server'],
  controllers: [...BASE, 'platform'],
  webhook: [...BASE, 'platform'],
  operator: [...BASE, 'platform', 'controllers', 'webhook'],
  cli: [...BASE, 'platform', 'client', 'log', 'server', 'sidecar', 'controllers', 'webhook', 'operator'],
};

/** Folders without effects: of Node's own modules they may use only these. */
const PURE = ['api', 'core', 'history'];
const PURE_BUILTINS = ['node:buffer', 'node:crypto'];

/** Ways round the ports of src/platform; biome forbids the globals of the same name. */
const PLATFORM_BUILTINS = ['node:timers', 'node:timers/promises', 'node:perf_hooks', 'node:process'];

const SPECIFIER = /(?:\bfrom |\bimport |\bimport\()'([^']+)'/g;

/**
 * @param {string} folder of the importing file, below src
 * @param {string} specifier as written
 * @param {string} targetFolder the folder below src that a relative specifier leads to, `..` if out of src
 * @returns {string | null} what is wrong with it
 */
function violation(folder, specifier, targetFolder) {
  const allowed = MAY_IMPORT[folder];
  if (allowed === undefined)
    return `src/${folder} has no place in the order; add it to scripts/import-order.mjs`;
  if (specifier.startsWith('.')) {
    if (targetFolder === folder || allowed.includes(targetFolder)) return null;
    return `src/${folder} must not import from ${targetFolder === '..' ? 'outside src' : `src/${targetFolder}`}`;
  }
  const builtin = builtinModules.includes(specifier.replace(/^node:/, '')) || specifier.startsWith('node:');
  if (!builtin) return null;
  if (PURE.includes(folder) && !PURE_BUILTINS.includes(specifier)) return `src/${folder} is pure`;
  if (folder !== 'platform' && PLATFORM_BUILTINS.includes(specifier)) return 'use the port in src/platform';
  return null;
}

/** @param {string} file path from the root @param {string} text @returns {string[]} */
export function violationsIn(file, text) {
  const folder = file.split(sep)[1] ?? '';
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(SPECIFIER)].flatMap(([, specifier = '']) => {
      const target = relative('src', join(dirname(file), specifier)).split(sep)[0] ?? '';
      const problem = violation(folder, specifier, target);
      return problem === null ? [] : [`${file}:${index + 1}: '${specifier}': ${problem}`];
    }),
  );
}

if (import.meta.main) {
  const files = globSync('src/*/**/*.ts', { cwd: ROOT }).filter(
    (file) => !/\.(test|fixture)\.ts$/.test(file),
  );
  const problems = files.sort().flatMap((file) => violationsIn(file, readFileSync(join(ROOT, file), 'utf8')));
  for (const problem of problems) console.log(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
