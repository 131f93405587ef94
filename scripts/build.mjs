// `npm run build`: compiles src to dist, which is what the package and the image contain.
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './processes.mjs';

/** tsc makes `./x.js` of `./x.ts` in code, but not in declarations, where only newer compilers find `./x.ts`. */
function rewriteDeclarations() {
  for (const file of globSync('dist/**/*.d.ts', { cwd: ROOT })) {
    const path = join(ROOT, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace(/((?:from|import\() ?['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2'));
  }
}

console.log('build: src -> dist');
rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
const { code } = await run('tsc', ['-p', 'tsconfig.build.json']);
rewriteDeclarations();
process.exitCode = code;
