/** Decisions are cited by number, from code and from other pages: each number is given once, without gaps, and stands in its own title. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const FOLDER = join(import.meta.dirname, '../docs/adr');

test('each decision has a number of its own', () => {
  const files = readdirSync(FOLDER).sort();
  const numbers = files.map((file) => Number(file.slice(0, 4)));
  expect(numbers).toEqual(files.map((_, at) => at + 1));
  for (const [at, file] of files.entries()) {
    expect(readFileSync(join(FOLDER, file), 'utf8'), file).toMatch(new RegExp(`^# ${at + 1}\\. `));
  }
});
