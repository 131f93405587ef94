/** With -o json every command tells its failures as JSON on standard output, one line each, and in words on standard error. */
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { leasehold } from '../support/cli.ts';

const NOWHERE = ['--url', 'http://127.0.0.1:1'];
const NO_FOLDER = ['-d', '/nonexistent/leasehold'];
const GRANT = ['--session', 's-1', '--token', '1'];

/** Each command that has -o json, in a way that cannot succeed. */
const FAILING: Readonly<Record<string, readonly string[]>> = {
  acquire: ['x/y', ...NOWHERE],
  renew: ['x/y', ...GRANT, ...NOWHERE],
  release: ['x/y', ...GRANT, ...NOWHERE],
  ls: NOWHERE,
  describe: ['x/y', ...NOWHERE],
  break: ['x/y', '--token', '1', '--reason', 'x', ...NO_FOLDER],
  unquarantine: ['x/y', ...NO_FOLDER],
  tail: NO_FOLDER,
  inspect: NO_FOLDER,
  'history check': ['/nonexistent/leasehold'],
  'log dump': ['/nonexistent/leasehold'],
  dev: ['-f', '/nonexistent/leasehold'],
  'group up': ['--dir', '/dev/null/x'],
  'group status': ['--dir', '/nonexistent/leasehold'],
  'group down': ['--dir', '/nonexistent/leasehold'],
  'group new-lineage': ['--data', '/nonexistent/leasehold'],
  'group configure': ['-f', '/nonexistent/leasehold'],
  'group audit': NO_FOLDER,
  'group members': NO_FOLDER,
  'group hand-over': NO_FOLDER,
  'group snapshot': NO_FOLDER,
};

function withJson(command: Command, path: string): string[] {
  const own = command.options.some(
    ({ long, argChoices }) => long === '--output' && argChoices?.includes('json'),
  );
  return [
    ...(own ? [path] : []),
    ...command.commands.flatMap((sub) => withJson(sub, `${path} ${sub.name()}`.trim())),
  ];
}

const COMMANDS = withJson(createProgram(), '');

test('every command that has -o json is tried here', () => {
  expect(Object.keys(FAILING).sort()).toEqual(COMMANDS.toSorted());
});

test.each(COMMANDS)(
  '%s: what fails, and a wrong option',
  async (name) => {
    const words = name.split(' ');
    const failing = [...words, ...(FAILING[name] ?? [])];
    const [failed, misused] = await Promise.all([
      leasehold([...failing, '-o', 'json']),
      leasehold([...failing, '--output=json', '--no-such-option']),
    ]);
    for (const { code, stdout, stderr } of [failed, misused]) {
      expect([123, 125]).toContain(code);
      expect(stdout.trimEnd().split('\n')).toHaveLength(1);
      const told = JSON.parse(stdout) as { code: string; message: string };
      expect(told.code).toBe(code === 125 ? 'INVALID' : 'UNAVAILABLE');
      expect(told.message.length).toBeGreaterThan(10);
      expect(stderr).not.toBe('');
    }
    expect(misused.code).toBe(125);
  },
  30_000,
);

test('what is behind -- is no option of ours', async () => {
  const { stdout } = await leasehold(['run', '--no-such-option', 'x/y', '--', 'ls', '-o', 'json']);
  expect(stdout).toBe('');
});
