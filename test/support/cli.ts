/** The `leasehold` program in a process of its own, run to its end. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Of a command that starts no processes of its own. */
const CLI_MS_MAX = 25_000;

/**
 * `input` goes to its standard input; `onPrinted` is told each time that it has printed more. Rejects when it has not ended within
 * `limitMs`, so that nobody takes that for an answer.
 */
export function leasehold(
  args: readonly string[],
  input = '',
  onPrinted: () => void = () => undefined,
  limitMs: number = CLI_MS_MAX,
): Promise<CliResult> {
  const child = spawn(process.execPath, ['src/cli/main.ts', ...args], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: limitMs,
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
    child.once('close', (code, signal) => {
      if (signal === null) resolve({ code, ...result });
      else reject(new Error(`${args.join(' ')}: ended by ${signal}; it had ${limitMs} ms. ${result.stderr}`));
    });
  });
}

/** What `history check` says while it is at work, every two seconds, taken out: the rest should be nothing. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^\d+ s: entry \d+, .*\n/gm, '');
}
