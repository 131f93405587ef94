/** How commands end: by what went wrong, and when nobody reads what they print. Real processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LogUnavailableError } from '../../log/errors.ts';
import { CorruptLogError } from '../../log/port.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { failureOf } from './outcome.ts';

/** Its tokens go back. */
const BROKEN = [
  { index: 1, events: [{ type: 'tookOver', epoch: 1, token: 1_000, reason: 'test' }] },
  { index: 2, events: [{ type: 'tookOver', epoch: 1, token: 999, reason: 'test' }] },
].map((entry) => ({ lineage: 'l', epoch: 1, at: entry.index, wallMs: 0, eventHash: '', ...entry }));
const ROOT = join(import.meta.dirname, '../../..');

/** Its exit code, with the reader of its standard output gone before it prints. */
async function unread(...args: readonly string[]): Promise<unknown> {
  const child = spawn(process.execPath, ['src/cli/main.ts', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  child.stdout.destroy();
  const [code] = await once(child, 'exit');
  return code;
}

test('a log that cannot be read now is told apart from a damaged one', async () => {
  const code = 'UNAVAILABLE';
  const gone = await failureOf(new LogUnavailableError('unable to open database file (SQLite 14)'));
  expect(gone).toMatchObject({ code, exitCode: EXIT_UNAVAILABLE });
  expect(await failureOf(new CorruptLogError('entry 5'))).toMatchObject({ exitCode: EXIT_WRONG });
});

test('a refusal that nobody reads is one still', async () => {
  const nobody = ['--url', 'http://127.0.0.1:1', '-o', 'json'];
  expect(await unread('acquire', 'jobs/a', ...nobody)).toBe(EXIT_UNAVAILABLE);
  expect(await unread('acquire', 'jobs/a', '--url', 'nonsense', '-o', 'json')).toBe(EXIT_USAGE);
});

test('a broken promise that nobody reads of is one still', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-outcome-'));
  const file = join(folder, 'history.ndjson');
  writeFileSync(file, BROKEN.map((line) => `${JSON.stringify(line)}\n`).join(''));
  expect(await unread('history', 'check', file)).toBe(EXIT_WRONG);
  rmSync(folder, { recursive: true });
});
