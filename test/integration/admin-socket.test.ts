/** The admin socket through the lives of `leasehold dev`: killed, started twice, in a folder too deep. */
import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { parseHistoryLine } from '../../src/history/read.ts';
import { ADMIN_SOCKET } from '../../src/server/grpc/socket.ts';
import { leasehold } from '../support/cli.ts';
import { DevProcess } from '../support/dev/dev-process.ts';
import { LockApi } from '../support/dev/lock-api.ts';
import { Workspace } from '../support/dev/workspace.ts';

const EXIT_UNAVAILABLE = 123;
const EXIT_USAGE = 125;
/** Several processes one after the other, on a machine that is busy with other tests. */
const TEST_MS_MAX = 90_000;

const workspaces: Workspace[] = [];
const processes: DevProcess[] = [];

function workspace(alias: string): Workspace {
  const made = new Workspace();
  made.write({ name: alias });
  workspaces.push(made);
  return made;
}

async function start({ manifests, data }: Pick<Workspace, 'manifests' | 'data'>): Promise<DevProcess> {
  const dev = DevProcess.spawn({ manifests: [manifests], data });
  processes.push(dev);
  await dev.serving();
  return dev;
}

async function servedBy({ data }: Workspace): Promise<string[]> {
  const client = new AdminClient(join(data, ADMIN_SOCKET));
  try {
    return (await client.status('')).map(({ namespace, position }) => `${namespace} epoch ${position.epoch}`);
  } finally {
    client.close();
  }
}

beforeEach(() => {
  workspaces.length = 0;
  processes.length = 0;
});

afterEach(async () => {
  for (const dev of processes) await dev.kill();
  for (const made of workspaces) made.remove();
});

test(
  'what a killed process leaves behind is told apart from a server, and replaced by the next one',
  async () => {
    const home = workspace('jobs');
    const first = await start(home);
    expect(await servedBy(home)).toEqual(['jobs epoch 1']);
    const follow = ['history', 'read', '-d', home.data, '--follow'];
    const followed = await leasehold(follow, '', () => void first.kill());
    expect(followed.code).toBe(EXIT_UNAVAILABLE);
    expect(parseHistoryLine(followed.stdout.split('\n')[0] ?? '', 1).index).toBe(1);
    await first.kill();
    expect(lstatSync(join(home.data, ADMIN_SOCKET)).isSocket()).toBe(true);
    const asked = await leasehold(['inspect', '-d', home.data]);
    expect(asked).toMatchObject({ code: EXIT_UNAVAILABLE, stdout: '' });
    expect(asked.stderr).toContain(`nobody serves ${home.data}`);
    const second = await start(home);
    expect(await servedBy(home)).toEqual(['jobs epoch 2']);
    expect(await second.stop()).toEqual({ code: 0, signal: null });
    const left = readdirSync(home.data).filter((name) => name.startsWith('.') || name === ADMIN_SOCKET);
    expect(left).toEqual([]);
  },
  TEST_MS_MAX,
);

test(
  'two processes with folders of their own have sockets of their own',
  async () => {
    const [left, right] = [workspace('left'), workspace('right')];
    await Promise.all([start(left), start(right)]);
    expect(await servedBy(left)).toEqual(['left epoch 1']);
    expect(await servedBy(right)).toEqual(['right epoch 1']);
  },
  TEST_MS_MAX,
);

test(
  'a second process on one data folder is refused, also with other namespaces, and harms nothing',
  async () => {
    const [home, other] = [workspace('jobs'), workspace('other')];
    const first = await start(home);
    const intruder = DevProcess.spawn({ manifests: [other.manifests], data: home.data });
    processes.push(intruder);
    expect(await intruder.exited).toEqual({ code: EXIT_UNAVAILABLE, signal: null });
    expect(intruder.stderr).toContain(`in use by process ${first.pid}`);
    expect(intruder.stderr).toContain('(--data)');
    expect(await servedBy(home)).toEqual(['jobs epoch 1']);
    // The first one's own files are still its own: what it writes now is there in its next life.
    const before = new LockApi(first.port, 'jobs');
    const held = await before.lock('nightly', { session_id: await before.open() });
    before.end();
    await first.kill();
    const after = new LockApi((await start(home)).port, 'jobs');
    // A keepalive would be answered before the group has confirmed the session; renew waits for that.
    expect((await after.renew(held)).body).toMatchObject({ token: held.token });
    expect(await after.isHeld(held)).toBe(true);
    after.end();
  },
  TEST_MS_MAX,
);

test('a data folder whose path is too long for a socket is refused with the limit', async () => {
  const { manifests, root } = workspace('jobs');
  const data = join(root, 'd'.repeat(110));
  const dev = DevProcess.spawn({ manifests: [manifests], data });
  processes.push(dev);
  expect(await dev.exited).toEqual({ code: EXIT_UNAVAILABLE, signal: null });
  expect(dev.stderr).toMatch(/admin socket has \d+ bytes and a system call takes 10[37].*shorter path/);
});

test(
  'a data folder that is a file is refused in one line',
  async () => {
    const { manifests, root } = workspace('jobs');
    const file = join(root, 'file');
    writeFileSync(file, 'kept');
    for (const data of [file, join(file, 'below')]) {
      const dev = DevProcess.spawn({ manifests: [manifests], data });
      processes.push(dev);
      expect(await dev.exited).toEqual({ code: EXIT_USAGE, signal: null });
      expect(dev.stderr).toMatch(/^--data: .* cannot be made or written to: a file is in its place/);
    }
    expect(readFileSync(file, 'utf8')).toBe('kept');
  },
  TEST_MS_MAX,
);
