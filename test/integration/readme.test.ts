/**
 * Every command that the README shows, run as it stands there, in a copy of the repository in which nothing is installed.
 * `npm test` is run for one folder only: whole, it would run this file again.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const SET_UP_MS = 240_000;
const clone = mkdtempSync(join(tmpdir(), 'leasehold-readme-'));
let server: ChildProcess;

/** Commands of the README's shell blocks, without their comments. */
function shownCommands(): string[] {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  return [...readme.matchAll(/^```sh\n(.*?)^```/gms)]
    .flatMap(([, block = '']) => block.split('\n'))
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '');
}

/** The environment of a shell, without what npm and vitest have added to it. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|VITEST|NODE_|LEASEHOLD)/.test(name));
  const path = (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
  return { ...Object.fromEntries(kept), PATH: path.join(':') };
}

function shell(command: string): string {
  return execFileSync('bash', ['-c', command], {
    cwd: clone,
    env: plainEnvironment(),
    encoding: 'utf8',
    timeout: SET_UP_MS,
  });
}

/** Starts a command that goes on, in a process group of its own; resolves when it has printed `until`. */
function start(command: string, until: string): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', command], { cwd: clone, env: plainEnvironment(), detached: true });
    let text = '';
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      if (text.includes(until)) resolve(child);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}:\n${text}`)));
  });
}

beforeAll(async () => {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  // A file that is deleted but still in git's index is named too.
  for (const file of files.split('\n').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
    cpSync(join(ROOT, file), join(clone, file));
  }
  expect(shownCommands()[0]).toBe('npm start');
  server = await start('npm start', 'Try it');
}, SET_UP_MS);

afterAll(async () => {
  if (server?.pid !== undefined) {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    process.kill(-server.pid, 'SIGTERM');
    await ended;
  }
  rmSync(clone, { recursive: true, force: true });
});

describe('the README in a fresh clone', () => {
  it('shows these commands and no others', () => {
    const commands = shownCommands();
    expect(commands.slice(0, 3)).toEqual(['npm start', 'npm test', 'npm run demo']);
    const isKnown = (command: string): boolean => /^(curl -s|npm run -s leasehold --) /.test(command);
    expect(commands.slice(3).every(isKnown)).toBe(true);
    expect(commands.length).toBeGreaterThan(5);
  });

  it('its curl commands work on what npm start serves', () => {
    const answers = shownCommands()
      .filter((command) => command.startsWith('curl '))
      .map((command) => JSON.parse(shell(command)) as Record<string, unknown>);
    expect(answers[0]).toMatchObject({ acquired: true, lease_ttl_ms: 60_000 });
    expect(answers[1]).toMatchObject({ name: 'payouts/merchant-1', token: answers[0]?.token, owner: 'me' });
    expect(answers[2]).toMatchObject({ locks: [{ name: 'payouts/merchant-1' }] });
    expect(answers[3]).toMatchObject({ ttl_s: 15, keepalive_every_s: 3 });
  });

  it(
    'its leasehold commands show what the curl commands did',
    () => {
      const printed = shownCommands()
        .filter((command) => command.startsWith('npm run -s leasehold '))
        .map(shell);
      expect(printed[0]).toMatch(/^jobs\/report under token \d+\n$/);
      expect(printed[1]).toMatch(/^payouts\/merchant-1 +held +me +\d+ /m);
      expect(printed[2]).toMatch(/^holder +me$/m);
      expect(printed).toHaveLength(3);
    },
    SET_UP_MS,
  );

  it(
    'npm test sets itself up and counts',
    () => {
      expect(shell('npm test -- src/api/duration.test.ts')).toMatch(/^\d+ passed, 0 failed$/m);
    },
    SET_UP_MS,
  );

  it(
    'npm run demo tells its story',
    () => {
      expect(shell('npm run demo')).toMatch(/exactly once/);
    },
    SET_UP_MS,
  );
});
