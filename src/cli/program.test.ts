/** Every command teaches: a description, examples that name the command itself, and exit codes where they differ from 0. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { withHelpWords } from './help-words.ts';
import { createProgram } from './program.ts';

function leavesOf(command: Command, path: string): { readonly path: string; readonly command: Command }[] {
  if (command.commands.length === 0) return [{ path, command }];
  return command.commands.flatMap((sub) => leavesOf(sub, `${path} ${sub.name()}`));
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (more) => {
      text += more;
    },
  });
  command.outputHelp();
  return text;
}

describe('--help', () => {
  test.each(leavesOf(createProgram(), 'leasehold'))('$path', ({ path, command }) => {
    const help = helpOf(command);
    expect(command.description()).toMatch(/^[A-Z].*\.$/);
    expect(help).toMatch(new RegExp(`^Examples:\n(  .*\n)*?  .*\\b${path}\\b`, 'm'));
    for (const { description, long } of command.options) expect(description, long ?? '').not.toBe('');
    if (!/ (dev|completion)$/.test(path)) expect(help).toMatch(/^Exit codes: /m);
  });
});

test.each([
  [
    ['help', 'group', 'up'],
    ['group', 'up', '--help'],
  ],
  [
    ['help', 'run'],
    ['run', '--help'],
  ],
  [['help'], ['help']],
  [
    ['help', '--version'],
    ['help', '--version'],
  ],
  [
    ['run', 'help', '--', 'help', 'x'],
    ['run', 'help', '--', 'help', 'x'],
  ],
])('the words of %j mean %j', (said, meant) => {
  expect(withHelpWords(said)).toEqual(meant);
});

test('help shows the command below a command', () => {
  const help = (...words: string[]): string =>
    execFileSync(process.execPath, ['src/cli/main.ts', 'help', ...words], {
      cwd: join(import.meta.dirname, '../..'),
      encoding: 'utf8',
    });
  expect(help('group', 'up')).toMatch(/^Usage: leasehold group up /);
});

test('starting the program loads no lock server, no gRPC and no client: only what reads the flags', () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    const { createProgram } = await import('./src/cli/program.ts');
    createProgram();
    console.log(loaded.join('\\n'));`;
  const loaded = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
  });
  expect(loaded).toContain('src/cli/run/command.ts');
  expect(loaded).toContain('commander');
  for (const heavy of [
    'grpc',
    'pino',
    'zod',
    '/src/server/',
    '/src/sidecar/',
    '/src/core/',
    '/src/history/',
  ]) {
    expect(loaded, heavy).not.toContain(heavy);
  }
});
