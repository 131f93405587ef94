/** docs/TESTING.md says where each public lock bug is tested; a page that names tests that are not there would be worth nothing. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/TESTING.md'), 'utf8');

/** The suites that some test files run are where their names stand. */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  'src/sidecar/http/hostile.test.ts': globSync('test/support/http/hostile*.ts', { cwd: ROOT }),
  'test/integration/http-routes.test.ts': [
    'test/support/http/routes-suite.ts',
    'test/support/http/names-suite.ts',
  ],
};

const rows = [...page.matchAll(/^\| ([A-K][0-9]{2}) \| (.+) \|$/gm)].map(([, id = '', where = '']) => ({
  id,
  where,
}));

function namesCase(path: string, id: string): boolean {
  return [path, ...(SUITES[path] ?? [])].some((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    return [...text.matchAll(/\bcases? ((?:[A-K][0-9]{2}(?:, | and )?)+)/g)].some(([, ids = '']) =>
      ids.includes(id),
    );
  });
}

test('the table has each case once, and every case is tested or waits', () => {
  const ids = rows.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].sort());
  expect(ids.length).toBeGreaterThan(90);
  for (const { id, where } of rows) expect(/`|waits for/.test(where), id).toBe(true);
});

test('every test the table names is there, and the first one names its case', () => {
  for (const { id, where } of rows) {
    const paths = [...where.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path = '']) => path);
    for (const path of paths) {
      const isThere = existsSync(join(ROOT, `${path}.test.ts`)) || existsSync(join(ROOT, path));
      expect(isThere, `${id}: ${path}`).toBe(true);
    }
    const [first] = paths;
    if (first === undefined || / as [A-K]|waits for|demo`|kill-9`|`src\//.test(where.split(',')[0] ?? ''))
      continue;
    expect(namesCase(`${first}.test.ts`, id), `${id}: ${first} does not name it`).toBe(true);
  }
});
