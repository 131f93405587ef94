// Starts the project's tools for the scripts beside it: from node_modules/.bin, on the Node.js installed there.
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * @param {string} command a program in node_modules/.bin or on PATH
 * @param {readonly string[]} args
 * @param {{ capture?: boolean, onLine?: (line: string) => void, env?: Record<string, string> }} [options] `capture` collects the output
 *   instead of showing it; `onLine` gets it line by line
 * @returns {Promise<{ code: number, output: string }>} code 1 also for a program that a signal ended
 */
export function run(command, args, { capture = false, onLine, env = {} } = {}) {
  const path = `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`;
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env, PATH: path },
    stdio: capture || onLine ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    if (stream && onLine) createInterface({ input: stream }).on('line', onLine);
    else
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
