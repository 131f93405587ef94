/** `leasehold group up`, `status` and `down`, as a person uses them; and the sidecar process that comes with them. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureEtcd } from '../../scripts/etcd.mjs';
import { LocalGroup } from '../../src/cli/group/local-group.ts';
import { lockDirectory } from '../../src/log/embedded/directory-lock.ts';
import { leasehold } from '../support/cli.ts';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';

const folder = mkdtempSync(join(tmpdir(), 'leasehold-group-cli-'));
/** Eight processes start, in three steps, beside other tests; `up` itself gives each of them 60 s. */
const UP_MS_MAX = 100_000;
const PROCESSES = ['etcd-a', 'etcd-b', 'etcd-c', 'issuer', 'server-a', 'server-b', 'server-c', 'sidecar'];

const cli = (...args: readonly string[]) => leasehold(['group', ...args, '--dir', folder]);

const up = () => leasehold(['group', 'up', '--dir', folder], '', undefined, UP_MS_MAX);

beforeAll(async () => {
  await ensureEtcd();
}, ETCD_START_MS_MAX);

afterAll(async () => {
  await LocalGroup.find(folder)?.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

function found(): LocalGroup {
  const group = LocalGroup.find(folder);
  if (group === null) throw new Error('there is no group');
  return group;
}

test('without a group there is nothing to show or to end', async () => {
  for (const verb of ['status', 'down']) {
    const { code, stderr } = await cli(verb);
    expect(code).toBe(125);
    expect(stderr).toContain('group up --dir');
  }
});

test('a folder that cannot be used is refused at once, by name and reason, and nothing is left in it', async () => {
  const startedMs = performance.now();
  const proc = await leasehold(['group', 'up', '--dir', '/proc/leasehold', '-o', 'json']);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  expect(proc.code).toBe(125);
  expect(JSON.parse(proc.stdout)).toMatchObject({ code: 'INVALID', field: '--dir' });
  expect(proc.stderr).toMatch(/^--dir: \/proc\/leasehold cannot be made or written to: /);
  const foreign = join(folder, 'foreign');
  mkdirSync(foreign);
  writeFileSync(join(foreign, 'namespace.yaml'), 'precious');
  const among = await leasehold(['group', 'up', '--dir', foreign]);
  expect(among).toMatchObject({
    code: 125,
    stderr: expect.stringContaining('holds other files (namespace.yaml)'),
  });
  expect(readdirSync(foreign)).toEqual(['namespace.yaml']);
  rmSync(foreign, { recursive: true });
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const inPlace = await leasehold(['group', 'up', '--dir', file]);
  expect(inPlace).toMatchObject({ code: 125, stderr: expect.stringContaining('a file is in its place') });
  rmSync(file);
}, 40_000);

test('one command makes it, the next ones show it, mend it and end it', async () => {
  const made = await up();
  expect(made).toMatchObject({ stderr: '', code: 0 });
  for (const name of PROCESSES) expect(made.stdout).toContain(name);
  // What is printed works where it was printed.
  const tried = /^ {2}(node .* group status .*?) +#/m.exec(made.stdout)?.[1] as string;
  const copied = spawnSync(tried, { shell: true, cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' });
  expect(copied.stdout).toMatch(/^PROCESS +PID/);
  const group = found();
  const api = new LockApi(Number(new URL(group.plan.apiUrl).port), 'locks');
  // Longer than the commands between two calls take on a busy machine.
  const session = await api.open({ ttl_s: 60 });
  const held = await api.lock('one', { session_id: session });

  const status = await cli('status');
  expect(status.stdout).toMatch(/server-[abc] +[0-9]+ +leading/);
  const leader = /(server-[abc]) +[0-9]+ +leading/.exec(status.stdout)?.[1] as string;
  group.signal(leader, 'SIGKILL');
  await group.ended(leader, 5_000);
  const next = await api.lock('two', { session_id: session, wait_ms: 30_000 });
  expect(next.token).toBeGreaterThan(held.token);
  // A restart of the sidecar: same session, same grants, same tokens (rule A4).
  group.signal('sidecar', 'SIGKILL');
  await group.ended('sidecar', 5_000);
  const again = await up();
  expect(again).toMatchObject({ stderr: '', code: 0 });
  expect(again.stdout).toContain(`Started: ${leader}, sidecar.`);
  expect((await api.keepalive(session)).status).toBe(200);
  await eventually(() => api.isHeld(held), 30_000);
  expect(await api.tokenOf('one')).toBe(held.token);
  expect((await api.release(held)).status).toBe(200);
  api.end();

  // What a group is made of stays, and a flag that says otherwise is not passed over in silence.
  expect((await cli('up', '--filename', join(folder, 'namespace.yaml'))).code).toBe(0);
  for (const flag of [['--insecure'], ['--filename', 'config/samples/jobs.yaml']]) {
    const { code, stderr } = await cli('up', ...flag);
    expect(code).toBe(125);
    expect(stderr).toContain(`${flag[0]}: the group in ${folder} `);
  }

  const pids = PROCESSES.map((name) => found().pidOf(name));
  expect(pids.every((pid) => pid !== null)).toBe(true);
  const down = await cli('down');
  expect(down.code).toBe(0);
  expect(PROCESSES.filter((name) => found().pidOf(name) !== null)).toEqual([]);
  expect((await cli('down')).stdout).toContain('Nothing ran');
  const shown = JSON.parse((await cli('status', '-o', 'json')).stdout) as {
    processes: { pid: number | null }[];
  };
  expect(shown.processes.map(({ pid }) => pid)).toEqual(PROCESSES.map(() => null));
  const gone = await cli('status');
  expect(gone.stdout.match(/ended/g)).toHaveLength(PROCESSES.length);
}, 300_000);

test('while one works in the folder, others are refused with its process, and change nothing', async () => {
  const lock = lockDirectory(folder);
  try {
    for (const refused of [await up(), await cli('down')]) {
      expect(refused).toMatchObject({ code: 123, stdout: '' });
      expect(refused.stderr).toBe(
        `another "up" or "down" works in ${folder} (process ${process.pid}); try again when it is done\n`,
      );
    }
  } finally {
    lock.release();
  }
  expect(PROCESSES.filter((name) => found().pidOf(name) !== null)).toEqual([]);
}, 60_000);

test('of two that start it at once one may be refused, and no process is forgotten', async () => {
  const both = await Promise.all([up(), up()]);
  const refusals = both.filter(({ code }) => code !== 0);
  expect(refusals.length).toBeLessThanOrEqual(1);
  for (const { code, stderr } of refusals) {
    expect(stderr).toMatch(/^another "up" or "down" works in .*\n$/);
    expect(code).toBe(123);
  }
  for (const name of PROCESSES) expect(found().pidOf(name)).not.toBeNull();
}, 120_000);

test('a process that cannot start is named, with the reason; once that is mended "up" starts it', async () => {
  const group = found();
  const port = Number(new URL(group.plan.apiUrl).port);
  group.signal('sidecar', 'SIGKILL');
  await group.ended('sidecar', 5_000);
  const stranger = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  await once(stranger, 'listening');
  const { code, stderr } = await up();
  stranger.close();
  await once(stranger, 'close');
  expect(stderr).toMatch(/^sidecar has ended: .*taken by another program.*; see .*sidecar.log\n$/);
  expect(stderr).toContain(String(port));
  expect(code).toBe(123);
  expect((await up()).stdout).toContain('Started: sidecar.');
}, 250_000);
