/**
 * Each planted bug still applies: its text stands exactly once in its file. Whoever changes that file learns it here, in
 * every run of the tests; that the simulator finds each of them, the long run shows.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { changesOf } from './bug.ts';
import { PLANTED_BUGS } from './bugs.ts';

const CHANGES = PLANTED_BUGS.flatMap((bug) =>
  changesOf(bug).map((change) => ({ ...change, name: bug.name })),
);

it.each(CHANGES)('applies: $name', ({ file, from, to }) => {
  const source = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
  expect(source.split(from).length - 1, `places in ${file} with ${JSON.stringify(from)}`).toBe(1);
  expect(to).not.toBe(from);
});

it('no bug changes one file twice: only the second change would be made', () => {
  for (const bug of PLANTED_BUGS) expect(bug.also?.file, bug.name).not.toBe(bug.file);
});
