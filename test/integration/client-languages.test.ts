/** The examples for languages without a library, each run by two processes at once against a real `leasehold dev`. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { shareDev } from '../support/dev/shared-dev.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
/** Go compiles its standard library when it runs for the first time. */
const TEST_MS_MAX = 240_000;
const LANGUAGES = [
  {
    name: 'Python',
    command: ['python3', join(EXAMPLES, 'python/payouts.py')],
    version: ['python3', '--version'],
  },
  { name: 'Go', command: ['go', 'run', join(EXAMPLES, 'go/payouts.go')], version: ['go', 'version'] },
];

const dev = shareDev({ name: 'payouts' });

function isHere([program = '', ...args]: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

/** Lines that it printed, as `<batch> <token>`. */
async function payments([program = '', ...args]: readonly string[]): Promise<string[]> {
  const env = { ...process.env, LEASEHOLD_URL: dev.process.url };
  const { stdout, stderr } = await promisify(execFile)(program, args, { env });
  expect(stderr).toBe('');
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.replace(/^pay (\w+) under token (\d+)$/, '$1 $2'));
}

describe.each(LANGUAGES)('$name', ({ command, version }) => {
  test.skipIf(!isHere(version))(
    'two workers pay one after the other, each under a token of its own, and leave nothing held',
    async () => {
      const both = await Promise.all([payments(command), payments(command)]);
      const tokens = both.map((lines) => lines[0]?.split(' ')[1] ?? '');
      expect(new Set(tokens).size).toBe(2);
      for (const [at, lines] of both.entries())
        expect(lines).toEqual([`b1 ${tokens[at]}`, `b2 ${tokens[at]}`]);
      const api = dev.api();
      await api.release(await api.lock('nightly', { session_id: await api.open() }));
    },
    TEST_MS_MAX,
  );
});
