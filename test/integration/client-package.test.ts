/**
 * The package as others get it: built, packed, unpacked into an empty project without any dependency, and used there with every
 * Node.js that is supported, by plain scripts and by the TypeScript compiler. The examples are run there too, several processes
 * at once against a real `leasehold dev`.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'node_modules/.bin');
const NODE_MAJOR_MIN = 20;
const BUILD_MS_MAX = 180_000;
const TEST_MS_MAX = 90_000;

const dev = shareDev({ name: 'jobs', lease: { ttl: '5s' } });
const project = mkdtempSync(join(tmpdir(), 'leasehold-package-'));

beforeAll(() => {
  const quiet = { cwd: ROOT, stdio: 'pipe', encoding: 'utf8' } as const;
  execFileSync(process.execPath, ['scripts/build.mjs'], quiet);
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', project], quiet);
  const installed = join(project, 'node_modules/leasehold');
  mkdirSync(installed, { recursive: true });
  const tarball = join(project, packed.trim().split('\n').at(-1) ?? '');
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', type: 'module' }));
  for (const example of globSync('*.mjs', { cwd: join(ROOT, 'examples') }))
    copyFileSync(join(ROOT, 'examples', example), join(project, example));
}, BUILD_MS_MAX);

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** The oldest Node.js that is supported, if this machine has one beside that of node_modules. */
function oldNode(): string | null {
  const folders = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'));
  for (const folder of folders) {
    const node = join(folder, 'node');
    if (!existsSync(node)) continue;
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' });
    if (version.startsWith(`v${NODE_MAJOR_MIN}.`)) return node;
  }
  return null;
}

const NODES = [process.execPath, oldNode()];

/** A script of the project, in a process of its own. */
class Script {
  output = '';
  readonly #process: ChildProcess;
  readonly closed: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;

  constructor(file: string, args: readonly string[] = [], node = process.execPath) {
    this.#process = spawn(node, [file, ...args], {
      cwd: project,
      env: { ...process.env, LEASEHOLD_URL: dev.process.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    onTestFinished(() => {
      this.kill('SIGKILL');
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.closed = once(this.#process, 'close').then(([code, signal]) => ({ code, signal }));
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async succeeds(): Promise<string> {
    const { code, signal } = await this.closed;
    if (code !== 0) throw new Error(`the script ended with ${code ?? signal}:\n${this.output}`);
    return this.output;
  }

  async says(text: string, limitMs = 15_000): Promise<void> {
    await eventually(() => this.output.includes(text), limitMs).catch((error: unknown) => {
      throw new Error(`it never said ${JSON.stringify(text)}:\n${this.output}`, { cause: error });
    });
  }
}

describe('in an empty project', () => {
  test.each(NODES)(
    'a plain script runs, and ends by itself, with %s',
    async (node) => {
      if (node === null) {
        console.log(`not run: there is no Node.js ${NODE_MAJOR_MIN} on PATH`);
        expect(NODES).toContain(process.execPath);
        return;
      }
      writeFileSync(
        join(project, 'script.mjs'),
        `import { createClient, LeaseholdError } from 'leasehold';
       process.on('unhandledRejection', (reason) => { console.log('UNHANDLED', reason); process.exit(1); });
       const client = createClient();
       const lock = await client.acquire('jobs/script', { waitMs: 20_000 });
       console.log(process.version, lock.held(), await client.tryLock('jobs/script'));
       await lock[Symbol.asyncDispose]();
       console.log(await client.withLock('jobs/script', {}, ({ token }) => token > lock.token));
       console.log(await client.withLocks(['jobs/b', 'jobs/a'], ({ tokens }) => [...tokens.keys()].join()));
       const error = await client.acquire('nowhere/a').catch((error) => error);
       console.log(error instanceof LeaseholdError, error.code);
       // Neither closed nor released: nothing keeps this script from ending.
       await client.acquire('jobs/forgotten-' + process.version, { waitMs: 0 });`,
      );
      const from = performance.now();
      const output = await new Script('script.mjs', [], node).succeeds();
      const lines = output
        .trim()
        .split('\n')
        .map((line) => line.replace(/^v(\d+)\S*/, '$1'));
      expect(lines.slice(1)).toEqual(['true', 'jobs/a,jobs/b', 'true NAMESPACE_NOT_FOUND']);
      expect(lines[0]).toMatch(node === process.execPath ? /^26 true null$/ : /^20 true null$/);
      expect(performance.now() - from).toBeLessThan(10_000);
    },
    TEST_MS_MAX,
  );

  test.each(NODES)(
    'the command line starts, and says what it cannot do, with %s',
    async (node) => {
      if (node === null) {
        console.log(`not run: there is no Node.js ${NODE_MAJOR_MIN} on PATH`);
        expect(NODES).toContain(process.execPath);
        return;
      }
      // With the packages that a real installation brings along, which the library needs none of.
      const home = mkdtempSync(join(tmpdir(), 'leasehold-package-cli-'));
      onTestFinished(() => rmSync(home, { recursive: true, force: true }));
      cpSync(join(project, 'node_modules/leasehold'), join(home, 'leasehold'), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'));
      const cli = (...args: readonly string[]) => {
        const { status, stdout, stderr } = spawnSync(node, ['leasehold/dist/cli/main.js', ...args], {
          cwd: home,
          env: { ...process.env, LEASEHOLD_URL: dev.process.url },
          encoding: 'utf8',
          timeout: TEST_MS_MAX,
        });
        return { status, stdout, stderr };
      };
      const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
      expect(cli('--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
      expect(cli('ls', '--help')).toMatchObject({ status: 0, stderr: '' });
      expect(cli('ls', 'jobs')).toMatchObject({ status: 0, stderr: '' });
      const ran = cli('run', 'jobs/cli', '--wait', '20s', '--', 'sh', '-c', 'echo "$LEASEHOLD_NAME"; exit 3');
      expect(ran).toMatchObject({ status: 3, stdout: 'jobs/cli\n' });
      expect(cli('inspect', '-d', dev.workspace.data)).toMatchObject({ status: 0, stderr: '' });
      const read = cli('history', 'read', '-n', 'jobs', '-d', dev.workspace.data);
      expect(read).toMatchObject({ status: 0, stderr: '' });
      writeFileSync(join(home, 'history.ndjson'), read.stdout);
      expect(cli('history', 'check', 'history.ndjson')).toMatchObject({ status: 0, stderr: '' });
      expect(cli('history', 'check', 'nofile')).toMatchObject({ status: 125 });
      const isOld = node !== process.execPath;
      for (const args of [
        ['dev', '-f', 'nowhere'],
        ['log', 'dump', dev.workspace.data],
        ['group', 'status'],
      ]) {
        const { status, stderr } = cli(...args);
        const why =
          /^this command needs Node\.js 22\.13 or newer \(26 is what we test with\); this is v20\.\d+\.\d+\n$/;
        if (isOld)
          expect({ status, isTold: why.test(stderr) }, stderr).toEqual({ status: 125, isTold: true });
        else expect(stderr).not.toMatch(why);
      }
    },
    TEST_MS_MAX,
  );

  test('it brings no script that would run, or be asked about, where it is installed', () => {
    const installed = join(project, 'node_modules/leasehold/package.json');
    const { scripts } = JSON.parse(readFileSync(installed, 'utf8')) as { scripts: Record<string, string> };
    const run = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare'];
    expect(Object.keys(scripts).filter((name) => run.includes(name))).toEqual([]);
  });

  test('it depends on nothing: no import leaves the package but for Node.js itself', () => {
    const installed = join(project, 'node_modules/leasehold/dist/client');
    const queue = [join(installed, 'index.js')];
    const seen = new Set<string>();
    for (const file of queue) {
      if (seen.has(file)) continue;
      seen.add(file);
      for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/\bfrom '([^']+)'/g)) {
        if (specifier.startsWith('.')) queue.push(join(file, '..', specifier));
        else expect(specifier, file).toMatch(/^node:/);
      }
    }
    expect(seen.size).toBeGreaterThan(10);
    expect([...seen].every((file) => /\/dist\/(client|api)\//.test(file))).toBe(true);
    expect(readdirSync(join(project, 'node_modules'))).toEqual(['leasehold']);
  });

  test(
    'its types resolve, say what is wrong, and fit the examples',
    () => {
      mkdirSync(join(project, 'types'), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules/@types/node'), join(project, 'types/node'));
      symlinkSync(join(ROOT, 'node_modules/undici-types'), join(project, 'types/undici-types'));
      const compile = (file: string): string => {
        const options = ['--noEmit', '--strict', '--checkJs', '--module', 'nodenext', '--target', 'es2024'];
        const libraries = ['--lib', 'es2024,esnext.disposable', '--typeRoots', 'types', '--types', 'node'];
        try {
          execFileSync(join(BIN, 'tsc'), [...options, ...libraries, file], {
            cwd: project,
            encoding: 'utf8',
            stdio: 'pipe',
          });
          return '';
        } catch (error) {
          return String((error as { stdout: string }).stdout);
        }
      };
      writeFileSync(
        join(project, 'good.ts'),
        `import { createClient, type ErrorCode, HeldError, LeaseholdError, type Lock, LockLostError } from 'leasehold';
       import * as fencing from 'leasehold/fencing';
       const client = createClient({ url: 'http://127.0.0.1:7070', keepalive: 'app', ttlMs: 15_000 });
       export const answer: number = await client.withLock('jobs/a', { waitMs: 1 }, async ({ token, signal }) => {
         signal.throwIfAborted();
         return token;
       });
       export async function block(): Promise<Lock> {
         await using lock = await client.acquire('jobs/a', { mode: 'shared', signal: AbortSignal.timeout(5) });
         return lock;
       }
       export const code = (error: unknown): ErrorCode | null => (error instanceof LeaseholdError ? error.code : null);
       export const how = (error: unknown) => (error instanceof LockLostError ? error.how : error instanceof HeldError);
       export const names = Object.keys(fencing);
       for await (const { name, holder } of client.list('jobs/')) console.log(name, holder?.heldForMs);`,
      );
      expect(compile('good.ts')).toBe('');
      writeFileSync(
        join(project, 'bad.ts'),
        `import { createClient } from 'leasehold';
       const client = createClient({ ttl: 15 });
       await client.withLock('jobs/a', { wait: '5s' }, ({ tokens }) => tokens);
       await client.withLocks('jobs/a', () => 1);
       const lock = await client.tryLock('jobs/a');
       await lock.release();`,
      );
      const told = compile('bad.ts');
      for (const wrong of [
        "'ttl' does not exist",
        "'wait' does not exist",
        "'tokens' does not exist",
        "'lock' is possibly 'null'",
      ])
        expect(told).toContain(wrong);
      for (const example of globSync('*.mjs', { cwd: join(ROOT, 'examples') })) {
        const complaints = compile(example)
          .split('\n')
          .filter((line) => !/implicitly has an 'any' type|TS7006|TS7031/.test(line));
        expect(complaints.join('\n').trim(), example).toBe('');
      }
    },
    TEST_MS_MAX,
  );
});

describe('the examples', () => {
  test(
    'cron job: of four machines one makes the report, the others skip it, and a late one finds it made',
    async () => {
      const runs = Array.from({ length: 4 }, () => new Script('cron-job.mjs', ['report.txt']));
      const outputs = await Promise.all(runs.map((run) => run.succeeds()));
      expect(outputs.filter((output) => output.startsWith('made under token'))).toHaveLength(1);
      expect(outputs.filter((output) => /^(skipped|made already)/.test(output))).toHaveLength(3);
      expect(readFileSync(join(project, 'report.txt'), 'utf8')).toBe('orders: 4211\n');
      expect(await new Script('cron-job.mjs', ['report.txt']).succeeds()).toBe('made already\n');
      expect(readdirSync(project).filter((file) => file.startsWith('report.txt'))).toEqual(['report.txt']);
    },
    TEST_MS_MAX,
  );

  test(
    'leader of a partition: hands over at SIGTERM, is replaced after a kill, and no two ever write at a time',
    async () => {
      const entries = (): { number: number; token: number; pid: number }[] =>
        existsSync(join(project, 'ledger.ndjson'))
          ? readFileSync(join(project, 'ledger.ndjson'), 'utf8')
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line))
          : [];
      const args = ['orders-7', 'ledger.ndjson'];
      const workers = [new Script('partition-leader.mjs', args), new Script('partition-leader.mjs', args)];
      const wroteSince = (number: number): Promise<number> =>
        eventually(() => entries().length > number + 3, 20_000);
      await wroteSince(0);
      const leaderOf = (): Script => workers.find(({ pid }) => pid === entries().at(-1)?.pid)!;
      const first = leaderOf();
      await dev.api().waiting('orders-7', 1);
      const handedOver = entries().length;
      first.kill('SIGTERM');
      expect(await first.succeeds()).toMatch(/leading under token \d+\nstopped\n$/);
      await wroteSince(handedOver);
      const second = leaderOf();
      expect(second).not.toBe(first);
      // One that stands still past its lease: another leads, and when it goes on it gives up before it writes.
      workers.push(new Script('partition-leader.mjs', args));
      await dev.api().waiting('orders-7', 1);
      second.kill('SIGSTOP');
      await eventually(() => entries().at(-1)?.pid === workers[2]!.pid, 20_000);
      second.kill('SIGCONT');
      await second.says('not leading any more');
      const third = workers[2]!;
      await wroteSince(entries().length);
      // One that is killed: its lock is free when its lease has ended.
      await dev.api().waiting('orders-7', 1);
      third.kill('SIGKILL');
      await eventually(() => entries().at(-1)?.pid === second.pid, 20_000);
      second.kill('SIGTERM');
      await second.succeeds();
      const all = entries();
      expect(all.map(({ number }) => number)).toEqual(all.map((_entry, index) => index + 1));
      expect(all.map(({ token }) => token)).toEqual(
        all.map(({ token }) => token).sort((left, right) => left - right),
      );
      expect(new Set(all.map(({ token }) => token)).size).toBe(4);
    },
    TEST_MS_MAX,
  );

  test(
    'cases K02, K05: of eight pods one migrates at a time; one is killed in the middle, and none fails to start',
    async () => {
      const pods = Array.from({ length: 8 }, () => new Script('schema-migration.mjs', ['schema.json']));
      await eventually(() => pods.some(({ output }) => output.includes('applied: create orders')), 30_000);
      const victim = pods.find(({ output }) => output.includes('applied: create orders'))!;
      victim.kill('SIGKILL');
      const others = pods.filter((pod) => pod !== victim);
      const outputs = await Promise.all(others.map((pod) => pod.succeeds()));
      for (const output of outputs) expect(output).toMatch(/serving with schema version 4\n$/);
      const { applied } = JSON.parse(readFileSync(join(project, 'schema.json'), 'utf8')) as {
        applied: { migration: string; token: number }[];
      };
      expect(applied.map(({ migration }) => migration)).toEqual([
        'create orders',
        'add orders.currency',
        'backfill orders.currency',
        'drop orders.legacy',
      ]);
      const [first, ...rest] = applied.map(({ token }) => token);
      expect(new Set(rest).size).toBe(1);
      expect(rest[0]).toBeGreaterThan(first!);
      expect(outputs.filter((output) => output.includes('applied:'))).toHaveLength(1);
    },
    TEST_MS_MAX,
  );
});
