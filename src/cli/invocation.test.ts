/** Commands that are printed to be copied. */
import { expect, test } from 'vitest';
import { programName, shellWord } from './invocation.ts';

const PROGRAM = '/home/me/leasehold/src/cli/main.ts';

test.each([
  ['a script of a checkout', { script: 'leasehold', command: 'run-script' }, 'npm run -s leasehold --'],
  ['npx', { script: 'npx', command: 'exec' }, 'npx leasehold'],
  ['a checkout without npm', {}, 'node src/cli/main.ts'],
  ['from elsewhere', { folder: '/tmp' }, `node ${PROGRAM}`],
  ['below another script', { script: 'demo', command: 'run-script' }, 'node src/cli/main.ts'],
  ['an installed program', { program: '/usr/bin/leasehold' }, 'leasehold'],
])('%s', (_how, called, expected) => {
  expect(programName({ program: PROGRAM, folder: '/home/me/leasehold', ...called })).toBe(expected);
});

test('a word of a shell is quoted where it must be', () => {
  expect(shellWord('/tmp/a-b_c.d')).toBe('/tmp/a-b_c.d');
  expect(shellWord("it's a $HOME")).toBe("'it'\\''s a $HOME'");
});
