/**
 * Members of etcd are stopped and go on around changes of leader, ours and etcd's (case G15): one that comes back may answer from before its
 * stop. Nobody is shown the past, neither a new leader, which loads the log at a revision not below its own key's, nor a client.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { ETCDS, SERVERS } from '../support/group/group-bench.ts';
import { GroupScene } from '../support/group/group-scene.ts';
import { ReadWatch } from '../support/group/read-watch.ts';

const TTL_MS = 10_000;
const ROUNDS = 2;
/** Longer than what a call to etcd is given, and than etcd takes to elect another leader. */
const STOPPED_MS = 2_500;

let scene: GroupScene;
let watch: ReadWatch;

beforeAll(async () => {
  scene = await GroupScene.start({ ttlMs: TTL_MS });
  watch = await ReadWatch.start(scene.clients);
}, ETCD_START_MS_MAX);

afterAll(async () => {
  await watch?.end();
  await scene?.end();
}, 60_000);

/** The member that a lock server asks first. */
const besideOf = (server: string): string => ETCDS[SERVERS.indexOf(server)] as string;
const others = (name: string): string[] => SERVERS.filter((other) => other !== name);
const signal = (name: string, which: NodeJS.Signals): void => void scene.bench.group.signal(name, which);

async function etcdLeader(): Promise<string> {
  const { leader } = await scene.bench.etcd(ETCDS[0] as string).status();
  for (const name of ETCDS) if ((await scene.bench.etcd(name).status()).own === leader) return name;
  throw new Error('etcd has no leader');
}

async function handOver(from: string, to: string): Promise<void> {
  const admin = new AdminClient(scene.bench.adminSocket(from));
  try {
    await admin.handOver('', to.replace('server-', ''));
  } finally {
    admin.close();
  }
}

async function expectNothingPast(granted: Promise<number>, what: string): Promise<void> {
  console.log(`${what}: ${await granted} ms to the first grant`);
  await scene.expectIntact();
  expect(await watch.pastReads()).toEqual([]);
}

test(`a member is stopped, and goes on when the server beside it begins to lead, ${ROUNDS} times`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const leader = await scene.bench.leader();
    const successor = others(leader)[round % 2] as string;
    signal(besideOf(successor), 'SIGSTOP');
    await pause(STOPPED_MS);
    const sinceMs = performance.now();
    const handedOver = handOver(leader, successor);
    signal(besideOf(successor), 'SIGCONT');
    await handedOver;
    await expectNothingPast(scene.firstGrant(sinceMs), 'hand-over beside a member that goes on');
  }
}, 90_000);

test(`the leader of etcd is stopped while the leader of the locks dies, and goes on when another one leads, ${ROUNDS} times`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const leader = await scene.bench.leader();
    const member = await etcdLeader();
    signal(member, 'SIGSTOP');
    const killedMs = await scene.bench.kill(leader);
    await scene.bench.leader();
    signal(member, 'SIGCONT');
    await expectNothingPast(scene.firstGrant(killedMs), 'kill -9 while the leader of etcd is stopped');
    await scene.bench.group.start([leader]);
  }
}, 90_000);

test(`etcd changes its leader while a member is stopped and the leader of the locks stands still, ${ROUNDS} times`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const leader = await scene.bench.leader();
    const from = await etcdLeader();
    const [to, stopped] = ETCDS.filter((name) => name !== from) as [string, string];
    signal(stopped, 'SIGSTOP');
    const { own } = await scene.bench.etcd(to).status();
    await scene.bench.etcd(from).moveLeader(own);
    signal(leader, 'SIGSTOP');
    const granted = scene.firstGrant(performance.now());
    await pause(STOPPED_MS);
    // Both come back from the past at once, the one with what it holds, the other with what it believes.
    signal(stopped, 'SIGCONT');
    signal(leader, 'SIGCONT');
    await expectNothingPast(granted, 'a member and the leader stopped over a move of etcd');
  }
}, 90_000);
