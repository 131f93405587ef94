// `npm run build`: compiles src to dist, which is what the package and the image contain.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './processes.mjs';

console.log('build: src -> dist');
rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
const { code } = await run('tsc', ['-p', 'tsconfig.build.json']);
process.exitCode = code;
