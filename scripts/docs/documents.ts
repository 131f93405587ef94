/** The documents that are made from the source: where each stands, and its text. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { openApiDocument } from '../../src/sidecar/http/index.ts';
import { ROOT } from '../processes.mjs';
import { apiPage } from './api-page.ts';
import { cliPage } from './cli-page.ts';
import { errorsPage } from './errors-page.ts';
import { manifestPage } from './manifest-page.ts';

const OPENAPI = 'openapi/leasehold.v1.json';

/** Path from the root and text of each. */
export async function generatedDocuments(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/API.md', apiPage()],
    ['docs/CLI.md', cliPage()],
    ['docs/ERRORS.md', errorsPage()],
    ['docs/MANIFEST.md', manifestPage()],
    [OPENAPI, await formatted(OPENAPI, JSON.stringify(openApiDocument()))],
  ]);
}

/** As the formatter of the repository wants it, so that `npm run check` agrees with the generator. */
async function formatted(path: string, json: string): Promise<string> {
  const biome = spawn('npx', ['biome', 'format', `--stdin-file-path=${path}`], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  biome.stdin.end(json);
  const output = await text(biome.stdout);
  if (output.trim() === '') throw new Error('biome gave no output');
  return output;
}
