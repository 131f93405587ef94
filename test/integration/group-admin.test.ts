/** What operators ask a lock group, through its leader and through a follower: the answers are the same. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { leasehold } from '../support/cli.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { ALIAS, GroupBench, SERVERS } from '../support/group/group-bench.ts';
import { GroupClients } from '../support/group/group-clients.ts';

let bench: GroupBench;
let clients: GroupClients;
const admins: AdminClient[] = [];

beforeAll(async () => {
  bench = await GroupBench.start();
  clients = new GroupClients(bench);
}, ETCD_START_MS_MAX);

afterAll(async () => {
  for (const admin of admins) admin.close();
  await clients?.end();
  await bench?.end();
}, 60_000);

async function serverThat(does: 'lead' | 'follow'): Promise<string> {
  const leader = await bench.leader();
  return does === 'lead' ? leader : (SERVERS.find((name) => name !== leader) as string);
}

function adminOf(server: string): AdminClient {
  const admin = new AdminClient(bench.adminSocket(server));
  admins.push(admin);
  return admin;
}

const cli = (server: string, ...args: readonly string[]) =>
  leasehold([...args, '--admin-socket', bench.adminSocket(server)]);

describe.each(['lead', 'follow'] as const)('through a server that does %s', (does) => {
  test('locks are read with certainty, and figures are its own', async () => {
    const server = await serverThat(does);
    const admin = adminOf(server);
    const session = await clients.open(0, `reader-${does}`);
    const name = `read-${does}`;
    const { token } = await clients.acquire(0, session, name);
    const lock = await admin.getLock({ namespace: '', name });
    expect(lock.holders).toMatchObject([{ session: Number(lock.holders[0]?.session), token }]);
    const list = await admin.listLocks({ namespace: ALIAS, prefix: name, after: '', limit: 0 });
    expect(list.locks.map((found) => found.name)).toEqual([name]);
    const [status] = await admin.status('');
    expect(status).toMatchObject({
      namespace: ALIAS,
      serverId: server.replace('server-', ''),
      role: does === 'lead' ? 'leading' : 'following',
      leading: does === 'lead',
      connected: true,
      leader: (await bench.leader()).replace('server-', ''),
    });
    expect(status?.config?.name).toBe(ALIAS);
    await clients.release(0, session, { name, token });
    expect((await admin.getLock({ namespace: '', name })).holders).toEqual([]);
  });

  test('break, quarantine and unquarantine', async () => {
    const server = await serverThat(does);
    const admin = adminOf(server);
    const session = await clients.open(0, `broken-${does}`);
    const name = `break-${does}`;
    const { token } = await clients.acquire(0, session, name);
    const wrong = await cli(
      server,
      'break',
      `${ALIAS}/${name}`,
      '--token',
      `${token - 1}`,
      '--reason',
      'test',
    );
    expect(wrong.stderr).toContain(`under token ${token}`);
    expect(wrong.code).toBe(122);
    const broken = await cli(
      server,
      'break',
      `${ALIAS}/${name}`,
      '--token',
      `${token}`,
      '--reason',
      'x',
      '--now',
    );
    expect({ code: broken.code, stderr: broken.stderr }).toEqual({ code: 0, stderr: '' });
    expect((await admin.getLock({ namespace: '', name })).holders).toEqual([]);
    await admin.quarantine({ namespace: '', name, reason: 'test' });
    expect((await admin.getLock({ namespace: '', name })).quarantined).toBe(true);
    const back = await cli(server, 'unquarantine', `${ALIAS}/${name}`, '--by', 'tester');
    expect({ code: back.code, stderr: back.stderr }).toEqual({ code: 0, stderr: '' });
    const again = await cli(server, 'unquarantine', `${ALIAS}/${name}`);
    expect(again.code).toBe(125);
    expect(again.stderr).toContain('not quarantined');
  }, 30_000);

  test('the history is that of the log, followed live', async () => {
    const server = await serverThat(does);
    const admin = adminOf(server);
    const session = await clients.open(0, `history-${does}`);
    const over = new AbortController();
    const indexes: number[] = [];
    const seen = Promise.withResolvers<void>();
    const name = `history-${does}`;
    const following = (async () => {
      for await (const entry of admin.readHistory({ namespace: '', from: 1, follow: true }, over.signal)) {
        indexes.push(entry.index);
        if (entry.events.some((event) => event.type === 'released' && event.name === name)) seen.resolve();
      }
    })().catch(() => undefined);
    const { token } = await clients.acquire(0, session, name);
    await clients.release(0, session, { name, token });
    await seen.promise;
    over.abort();
    await following;
    expect(indexes).toEqual(indexes.map((_, at) => at + 1));
    const checked = await leasehold(['history', 'check', '-'], (await cli(server, 'history', 'read')).stdout);
    expect(checked.stdout).toContain('every promise was kept');
  }, 30_000);
});

test('who follows through a change of the leader misses nothing', async () => {
  const follower = await serverThat('follow');
  const admin = adminOf(follower);
  const over = new AbortController();
  const indexes: number[] = [];
  const following = (async () => {
    for await (const entry of admin.readHistory({ namespace: '', from: 1, follow: true }, over.signal)) {
      indexes.push(entry.index);
    }
  })().catch(() => undefined);
  const leader = await bench.leader();
  await bench.kill(leader);
  await expect
    .poll(async () => (await admin.status(''))[0]?.leader, { timeout: 15_000 })
    .not.toBe(leader.replace('server-', ''));
  await bench.leader();
  const session = await clients.open(0, 'after');
  await clients.acquire(0, session, 'after');
  const [
    {
      position: { index },
    } = { position: { index: 0 } },
  ] = await admin.status('');
  await expect.poll(() => indexes.at(-1), { timeout: 10_000 }).toBeGreaterThanOrEqual(index);
  over.abort();
  await following;
  expect(indexes).toEqual(indexes.map((_, at) => at + 1));
  await bench.group.start([leader]);
}, 60_000);

describe.each(['lead', 'follow'] as const)('by verbs through a server that does %s', (does) => {
  test('members: one line for each replica, and all could lead', async () => {
    const server = await serverThat(does);
    await expect.poll(async () => (await cli(server, 'group', 'members')).code, { timeout: 20_000 }).toBe(0);
    const { stdout } = await cli(server, 'group', 'members', '-o', 'json');
    const { members } = JSON.parse(stdout) as { members: { serverId: string; role: string; lag: number }[] };
    expect(members.map(({ serverId }) => serverId)).toEqual(['a', 'b', 'c']);
    expect(members.filter(({ role }) => role === 'leading')).toHaveLength(1);
    expect(members.filter(({ role }) => role === 'following')).toHaveLength(2);
    const shown = (await cli(server, 'group', 'members')).stdout;
    expect(shown).toMatch(/^SERVER +ROLE +EPOCH +INDEX +LAG +CONNECTED/);
  }, 40_000);

  test('a snapshot is made now, and says where', async () => {
    const server = await serverThat(does);
    const admin = adminOf(server);
    const [before] = await admin.status('');
    const made = await admin.snapshot('');
    expect(made.index).toBeGreaterThan((before?.position.index ?? 0) - 1_000);
    expect(made.bytes).toBeGreaterThan(0);
    const { stdout, code } = await cli(server, 'group', 'snapshot');
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^a snapshot of the state at entry/),
    });
  }, 40_000);
});

test('hand over under load, to a server that is named, and to any: nothing is lost', async () => {
  await clients.keep(10);
  await clients.passHot(4);
  await clients.spread();
  const times: number[] = [];
  for (let round = 0; round < 6; round++) {
    const leader = await bench.leader();
    const followers = SERVERS.filter((name) => name !== leader).map((name) => name.replace('server-', ''));
    const admin = adminOf(round % 2 === 0 ? leader : (SERVERS.find((name) => name !== leader) as string));
    await expect
      .poll(async () => (await admin.members('')).members.every(({ problem }) => problem === ''), {
        timeout: 20_000,
      })
      .toBe(true);
    const to = round < 4 ? (followers[round % 2] as string) : '';
    const answer = await admin.handOver('', to);
    expect(answer.from).toBe(leader.replace('server-', ''));
    if (to !== '') expect(answer.to).toBe(to);
    expect(followers).toContain(answer.to);
    times.push(answer.tookMs);
    expect(await bench.leader()).toBe(`server-${answer.to}`);
    const before = clients.hotGrants;
    await expect.poll(() => clients.hotGrants, { timeout: 10_000 }).toBeGreaterThan(before + 5);
  }
  console.log(`hand over, from the call until the next one had won: ${times.join(', ')} ms`);
  expect(await clients.lost()).toEqual([]);
  expect(clients.complaints).toEqual([]);
  expect(Math.max(...times)).toBeLessThan(3_000);
}, 120_000);

test('nothing is handed over to who leads already, to a stranger, or to one that is down', async () => {
  const leader = await bench.leader();
  const admin = adminOf(leader);
  await expect(admin.handOver('', leader.replace('server-', ''))).rejects.toThrow('leads already');
  await expect(admin.handOver('', 'z')).rejects.toThrow('z is no other replica');
  const follower = SERVERS.find((name) => name !== leader) as string;
  await bench.kill(follower);
  await expect(admin.handOver('', follower.replace('server-', ''))).rejects.toThrow(
    'nobody could take over at once',
  );
  const { code, stdout } = await cli(leader, 'group', 'members');
  expect(code).toBe(1);
  expect(stdout).toMatch(/unreachable/);
  expect(await bench.leader()).toBe(leader);
  await bench.group.start([follower]);
}, 60_000);

test('a follower that is asked while the leader lies dead waits for its successor, and blames no socket', async () => {
  const leader = await bench.leader();
  const follower = SERVERS.find((name) => name !== leader) as string;
  await bench.kill(leader);
  const { code, stdout, stderr } = await cli(follower, 'group', 'snapshot');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^a snapshot of the state at entry \d+/);
  await bench.group.start([leader]);
}, 60_000);

test('without an exporter there is no audit cursor; one that was left behind is shown, and given up', async () => {
  const leader = await bench.leader();
  const follower = await serverThat('follow');
  const admin = adminOf(follower);
  expect(await admin.audit('')).toMatchObject({
    hasCursor: false,
    cursor: 0,
    sink: '',
    serverId: leader.slice(-1),
  });
  expect((await cli(follower, 'group', 'audit')).stdout).toMatch(/does not export; there is no audit cursor/);
  expect((await cli(follower, 'group', 'audit', '--forget')).stdout).toBe('there was no audit cursor\n');
  // As one leaves it that exported five entries.
  await bench.etcd('etcd-a').put(`${bench.group.plan.etcdPrefix}audit-cursor`, '5');
  const { logIndex, lagBytes } = await admin.audit('');
  expect(logIndex).toBeGreaterThan(5);
  expect(lagBytes).toBeGreaterThan(0);
  const shown = await cli(leader, 'group', 'audit', '-o', 'json');
  expect(JSON.parse(shown.stdout)).toMatchObject({ hasCursor: true, cursor: 5, sink: '' });
  // With the flags that were given: copied without them it would go to another group, or to none.
  const hint = (await cli(leader, 'group', 'audit')).stdout;
  expect(hint).toMatch(/if there is to be none any more: node src\/cli\/main\.ts group audit .*--forget\n$/);
  expect(hint).toContain(`--admin-socket ${bench.adminSocket(leader)} `);
  const given = await cli(follower, 'group', 'audit', '--forget');
  expect({ code: given.code, stdout: given.stdout }).toEqual({ code: 0, stdout: 'given up, at entry 5\n' });
  expect(await admin.audit('')).toMatchObject({ hasCursor: false });
});

test('a configuration comes from the file, and Configure says so', async () => {
  const admin = adminOf(await serverThat('follow'));
  await expect(admin.configure('', 2, null)).rejects.toThrow(/comes from its manifest/);
});
