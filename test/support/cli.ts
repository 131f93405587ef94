/** The `leasehold` program in a process of its own, run to its end. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `input` goes to its standard input; `onPrinted` is told each time that it has printed more. */
export function leasehold(
  args: readonly string[],
  input = '',
  onPrinted: () => void = () => undefined,
): Promise<CliResult> {
  const child = spawn(process.execPath, ['src/cli/main.ts', ...args], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 25_000,
  });
  const result = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      result[name] += text;
      onPrinted();
    });
  }
  // It may end without reading all of it.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...result }));
  });
}

/** What `history check` says while it is at work, every two seconds, taken out: the rest should be nothing. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^\d+ s: entry \d+, .*\n/gm, '');
}
