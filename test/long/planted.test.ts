/**
 * Each planted bug must be found by the simulator within a few seeds: a harness that cannot see a broken rule proves nothing
 * about an unbroken one.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PLANTED_BUGS } from '../sim/planted/bugs.ts';

const TRY = join(import.meta.dirname, '../sim/planted/try.ts');
const SEEDS = 15;
const HOURS = 0.05;
const RUN_MS = 600_000;

describe('planted bugs are found', () => {
  it.each(PLANTED_BUGS.map(({ rule, name }) => [rule, name]))(
    'rule %s: %s',
    (_rule, name) => {
      const args = [TRY, name, '1', String(SEEDS), String(HOURS)];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: RUN_MS });
      expect(stdout, stderr).not.toBe('');
      expect(JSON.parse(stdout)).toMatchObject({ found: { property: expect.any(String) } });
    },
    RUN_MS,
  );
});
