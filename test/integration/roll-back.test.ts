/**
 * A log that is set back to an older copy, on real processes and real disks (rule S10): who comes back with a newer mark halts it, it stays
 * halted, and a new lineage is the way out.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { leasehold } from '../support/cli.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { ALIAS, ETCDS, GroupBench, SERVERS } from '../support/group/group-bench.ts';
import { GroupClients } from '../support/group/group-clients.ts';

/** Marks are given out once a second. */
const MARKED_MS = 1_500;
/** The longest TTL of the group, and so its quiet time: longer than servers take to start anew, short enough to be waited out. */
const GROUP_TTL_MS = 20_000;

async function withShortTtl({ folder }: GroupBench): Promise<void> {
  const path = join(folder, 'namespace.yaml');
  const manifest = parse(readFileSync(path, 'utf8'));
  const ttl = `${GROUP_TTL_MS / 1_000}s`;
  writeFileSync(path, stringify({ ...manifest, spec: { ...manifest.spec, lease: { ttl, maxTTL: ttl } } }));
}

test('leasehold dev on an older copy of its log halts, and begins anew with a new lineage', async (context) => {
  const own = new OwnDev(context);
  const lease = { ttl: '5s', minTTL: '5s', maxTTL: '5s' };
  const workspace = own.workspace({ name: 'jobs', lease });
  const first = await own.start(workspace);
  const api = own.api(first, 'jobs');
  await api.acquire('early');
  await first.stop();
  const log = join(workspace.data, 'test.jobs');
  const copy = join(workspace.data, 'copy');
  cpSync(log, copy, { recursive: true });

  const second = await own.start(workspace);
  const { body } = await own.api(second, 'jobs').acquire('late');
  const token = Number(body.token);
  await pause(MARKED_MS);
  await own.api(second, 'jobs').acquire('later');
  await second.stop();
  rmSync(log, { recursive: true });
  cpSync(copy, log, { recursive: true });
  rmSync(copy, { recursive: true });

  const back = own.spawn(workspace);
  expect((await back.exited).code).toBe(123);
  expect(back.stderr).toContain('the log of this lock group was rolled back (a client saw entry');
  const again = own.spawn(workspace);
  expect((await again.exited).code).toBe(123);
  expect(again.stderr).toContain('test/jobs is not served: the log of this lock group was rolled back');
  const command = /"leasehold (group new-lineage [^"]*)"/.exec(again.stderr)?.[1]?.split(' ') ?? [];

  const asked = await leasehold(command.filter((word) => word !== '--yes'));
  expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing was changed.') });
  const done = await leasehold([...command, '-o', 'json']);
  expect(done.code).toBe(0);
  const plan = JSON.parse(done.stdout);
  expect(plan).toMatchObject({ quietMs: 5_000, standing: { halted: { seenBy: 'client' } } });
  expect(plan.tokenFloor).toBeGreaterThan(token);

  const sinceMs = performance.now();
  const anew = await own.start(workspace);
  const late = own.api(anew, 'jobs');
  const refused = await late.acquire('late');
  expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(refused.body.message).toContain('a new lineage has begun');
  let granted = 0;
  await eventually(async () => {
    const answer = await late.acquire('late');
    granted = Number(answer.body.token ?? 0);
    return granted > 0;
  }, 20_000);
  // The clock of the group started within the start of this process.
  expect(performance.now() - sinceMs).toBeGreaterThan(5_000);
  expect(granted).toBeGreaterThan(plan.tokenFloor);
}, 90_000);

test(
  'cases G10 and G11: a group on real etcd whose members were all set back halts, and begins anew with a new lineage',
  async () => {
    const bench = await GroupBench.start({ prepare: withShortTtl });
    const clients = new GroupClients(bench, { ttlMs: GROUP_TTL_MS });
    try {
      const session = await clients.open(0, 'holder');
      await clients.acquire(0, session, 'early');
      const backup = join(bench.folder, 'backup');
      await bench.group.stop();
      for (const name of ETCDS) cpSync(join(bench.folder, name), join(backup, name), { recursive: true });
      const restart = async (): Promise<void> => {
        await bench.group.start(ETCDS);
        await bench.group.start(SERVERS);
      };
      await restart();
      await bench.leader();
      const other = await clients.open(1, 'other');
      const late = await clients.acquire(1, other, 'late');
      await pause(MARKED_MS);
      await clients.acquire(1, other, 'later');
      await pause(MARKED_MS);

      await bench.group.stop();
      for (const name of ETCDS) {
        rmSync(join(bench.folder, name), { recursive: true });
        cpSync(join(backup, name), join(bench.folder, name), { recursive: true });
      }
      await restart();
      const areHalted = async (): Promise<boolean> => {
        const all = await Promise.all(SERVERS.map((name) => bench.status(name)));
        return all.every((status) => status?.role === 'halted');
      };
      await eventually(areHalted, 30_000);
      const refusal = await clients.refusal(2, 'late');
      expect(refusal?.code).toBe('UNAVAILABLE');
      expect(refusal?.message).toContain('was rolled back');
      // Over a restart of all of them.
      for (const name of SERVERS) await bench.kill(name);
      await bench.group.start(SERVERS);
      await eventually(areHalted, 20_000);

      const done = await leasehold(['group', 'new-lineage', '--dir', bench.folder, '--yes', '-o', 'json']);
      const begunMs = performance.now();
      expect(done).toMatchObject({ code: 0, stderr: '' });
      const plan = JSON.parse(done.stdout);
      expect(plan).toMatchObject({ quietMs: GROUP_TTL_MS, standing: { halted: { seenBy: 'client' } } });
      expect(plan.tokenFloor).toBeGreaterThan(late.token);
      // They start anew by themselves.
      const leader = await bench.leader();
      const status = await bench.status(leader);
      expect(status?.position.lineage).toBe(plan.next);
      expect(status?.quietMs).toBeGreaterThan(GROUP_TTL_MS / 2);
      const early = await clients.refusal(0, 'late');
      expect(early?.code).toBe('UNAVAILABLE');
      expect(early?.message).toContain('a new lineage has begun');
      // Asks until it may be granted again.
      const anew = await clients.acquire(2, await clients.open(2, 'anew'), 'late');
      expect(performance.now() - begunMs).toBeGreaterThan(GROUP_TTL_MS);
      expect(anew.token).toBeGreaterThan(plan.tokenFloor);
    } catch (error) {
      throw new Error(`${bench.logs()}\n${ALIAS}`, { cause: error });
    } finally {
      await clients.end();
      await bench.end();
    }
  },
  ETCD_START_MS_MAX,
);
