/**
 * A whole group on Debian's etcd 3.4 under load, with kills and pauses of lock servers and of etcd members, leaders of both among them. Safety
 * must hold on it as on any other; whether it goes on is printed and not demanded, since 3.4 has faults that stop it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ETCDS, SERVERS } from '../support/group/group-bench.ts';
import { GroupScene } from '../support/group/group-scene.ts';
import { ReadWatch } from '../support/group/read-watch.ts';

const COMMAND = process.env.LEASEHOLD_OLD_ETCD ?? '/usr/bin/etcd';
const TTL_MS = 15_000;
const DURATION_MS = 50_000;
const STOPPED_MS = 2_500;
/** The leader has been found, and the fault has begun, by then. */
const SETTLE_MS = 200;
/** After each fault there is so much time to go on. */
const RECOVERY_MS = 4_000;
const GRANTS_MIN = 100;

let scene: GroupScene;
let watch: ReadWatch;

beforeAll(async () => {
  scene = await GroupScene.start({
    ttlMs: TTL_MS,
    etcd: COMMAND,
    prepare: async (bench) => {
      // 3.4 does not know it.
      for (const name of ETCDS) {
        bench.replan(name, (planned) => ({
          ...planned,
          args: planned.args.filter((arg) => !arg.startsWith('--feature-gates')),
        }));
      }
    },
  });
  watch = await ReadWatch.start(scene.clients);
}, 120_000);

afterAll(async () => {
  await watch?.end();
  await scene?.end();
}, 60_000);

async function etcdLeader(): Promise<string> {
  for (const name of ETCDS) {
    const status = await scene.bench
      .etcd(name)
      .status()
      .catch(() => null);
    if (status !== null && status.leader === status.own) return name;
  }
  return ETCDS[0] as string;
}

/** The one that leads; a follower, if nobody says so. */
async function lockLeader(): Promise<string> {
  for (const name of SERVERS) if ((await scene.bench.status(name))?.role === 'leading') return name;
  return SERVERS[0] as string;
}

async function killed(name: string): Promise<void> {
  await scene.bench.kill(name);
  await pause(500);
  await scene.bench.group.start([name]);
}

async function stopped(name: string): Promise<void> {
  scene.bench.group.signal(name, 'SIGSTOP');
  await pause(STOPPED_MS);
  scene.bench.group.signal(name, 'SIGCONT');
}

const etcdFollower = async (): Promise<string> => {
  const leader = await etcdLeader();
  return ETCDS.find((name) => name !== leader) as string;
};

const faults: readonly (readonly [string, () => Promise<void>])[] = [
  ['kill -9 of the leader of the locks', async () => killed(await lockLeader())],
  ['kill -9 of the leader of etcd', async () => killed(await etcdLeader())],
  ['the leader of etcd stands still', async () => stopped(await etcdLeader())],
  ['the leader of the locks stands still', async () => stopped(await lockLeader())],
  ['kill -9 of another etcd member', async () => killed(await etcdFollower())],
  ['another etcd member stands still', async () => stopped(await etcdFollower())],
  [
    'kill -9 of both leaders',
    async () => {
      await Promise.all([killed(await lockLeader()), killed(await etcdLeader())]);
    },
  ],
];

test('leaders and members of etcd 3.4 are killed and stopped under load: no promise of safety is broken', async () => {
  const untilMs = performance.now() + DURATION_MS;
  for (let round = 0; performance.now() < untilMs || round < faults.length; round++) {
    const [what, happen] = faults[round % faults.length] as (typeof faults)[number];
    const sinceMs = performance.now();
    const granted = Promise.race([
      pause(SETTLE_MS).then(() => scene.firstGrant(sinceMs)),
      pause(STOPPED_MS + RECOVERY_MS, null),
    ]);
    const [ms] = await Promise.all([granted, happen()]);
    console.log(
      ms === null
        ? `${what}: nothing was granted within ${STOPPED_MS + RECOVERY_MS} ms`
        : `${what}: ${ms} ms to the first grant`,
    );
  }
  console.log(
    `${scene.clients.told.length} grants told; what clients saw: ${JSON.stringify(scene.clients.complaints)}`,
  );
  await watch.end();
  expect(watch.past.filter((read) => read.includes('was shown'))).toEqual([]);
  await scene.expectPromisesKept();
  // A run without load proves nothing.
  expect(scene.clients.told.length).toBeGreaterThan(GRANTS_MIN);
}, 240_000);
