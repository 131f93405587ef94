// `npm run docs` writes the generated documents; with `--check` it only says which of them are not up to date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedDocuments } from './docs/documents.ts';
import { ROOT } from './processes.mjs';

const onlyCheck = process.argv.includes('--check');
let outdated = 0;
for (const [path, text] of await generatedDocuments()) {
  const file = join(ROOT, path);
  if (current(file) === text) {
    console.log(`ok       ${path}`);
  } else if (onlyCheck) {
    outdated += 1;
    console.log(`OUTDATED ${path}; npm run docs writes it anew`);
  } else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`written  ${path}`);
  }
}
process.exitCode = outdated === 0 ? 0 : 1;

function current(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
