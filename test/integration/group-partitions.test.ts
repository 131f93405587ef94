/**
 * A group whose connections all go through faulty proxies: answers that are lost after the commit, lines that are cut in one direction, slow,
 * or dead without saying so. Sessions of live clients, grants and the order of waiters survive each of them (rules L2, S1, S4, S7, S8).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { DROP, type Flow, HOLD, PASS } from '../support/faulty-flow.ts';
import type { LinkFault } from '../support/faulty-proxy.ts';
import { SERVERS } from '../support/group/group-bench.ts';
import { GroupScene } from '../support/group/group-scene.ts';

const TTL_MS = 8_000;
const CUT: LinkFault = { requests: HOLD, replies: HOLD };
/** Far above what is measured; the figure itself is printed. */
const GRANT_MS_MAX = 8_000;

let scene: GroupScene;

beforeAll(async () => {
  scene = await GroupScene.start({ ttlMs: TTL_MS, isProxied: true });
}, ETCD_START_MS_MAX);

afterAll(() => scene?.end(), 60_000);
afterEach(() => scene.bench.net.heal());

const placeOf = (server: string): number => SERVERS.indexOf(server);
const sidecarOn = (server: string): string => `sidecar-${placeOf(server) + 1}`;
const others = (server: string): string[] => SERVERS.filter((name) => name !== server);
const report = (what: string, ms: number): void => console.log(`${what}: ${ms} ms to the first grant`);

async function leading(): Promise<string> {
  await scene.clients.spread();
  return scene.bench.leader();
}

/** What the fault has hindered shows that it was there. */
function expectFired(from: string, to: string): void {
  expect(
    scene.bench.net.hindered(from, to),
    `${from} to ${to} carried nothing while it was faulty`,
  ).toBeGreaterThan(0);
}

test('answers of etcd are lost after the commit: the leader sends the same again, and nothing happens twice', async () => {
  const leader = await leading();
  for (const dropMs of [150, 300, 600]) {
    scene.bench.net.fault(leader, 'etcd-*', { requests: PASS, replies: DROP });
    const sinceMs = performance.now();
    await pause(dropMs);
    scene.bench.net.heal(leader, 'etcd-*');
    report(`answers of etcd to the leader lost for ${dropMs} ms`, await scene.firstGrant(sinceMs));
    expectFired(leader, 'etcd-*');
    await scene.expectIntact();
  }
}, 60_000);

test('the leader is cut off from etcd, not from its clients: another one leads, and the old one says nothing more', async () => {
  const leader = await leading();
  scene.bench.net.fault(leader, 'etcd-*', CUT);
  const sinceMs = performance.now();
  const tookMs = await scene.firstGrant(sinceMs, others(leader).map(placeOf));
  report('leader cut from etcd', tookMs);
  expect(tookMs).toBeLessThan(GRANT_MS_MAX);
  // Clients of the one that is cut off go elsewhere (rule S8), while it is cut off.
  await scene.firstGrant(sinceMs);
  scene.bench.net.heal();
  expectFired(leader, 'etcd-*');
  await expect
    .poll(async () => (await scene.bench.status(leader))?.role, { timeout: 10_000 })
    .toBe('following');
  await scene.expectIntact();
}, 60_000);

test('the leader is cut off from the other servers, not from etcd: it leads on, their clients come to it', async () => {
  const leader = await leading();
  const epoch = (await scene.bench.status(leader))?.position.epoch;
  for (const server of others(leader)) scene.bench.net.fault(server, leader, CUT);
  const sinceMs = performance.now();
  report('leader cut from the other servers', await scene.firstGrant(sinceMs));
  await pause(1_500);
  // Entries come, so nobody suspects it (rule S7).
  expect((await scene.bench.status(leader))?.position.epoch).toBe(epoch);
  scene.bench.net.heal();
  expectFired('server-*', leader);
  await scene.expectIntact();
}, 60_000);

test('a sidecar is cut off from one front end only: it goes through another', async () => {
  const leader = await leading();
  const [server] = others(leader) as [string];
  const connects = [...scene.clients.connects];
  scene.bench.net.fault(sidecarOn(server), server, CUT);
  const sinceMs = performance.now();
  report('sidecar cut from its front end', await scene.firstGrant(sinceMs, [placeOf(server)]));
  scene.bench.net.heal();
  expectFired(sidecarOn(server), server);
  await scene.expectIntact();
  for (const at of SERVERS.keys()) {
    const before = connects[at] as number;
    expect(scene.clients.connects[at]).toBe(at === placeOf(server) ? before + 1 : before);
  }
}, 60_000);

test('a front end is cut off from the leader only: its clients go through another', async () => {
  const leader = await leading();
  const [server] = others(leader) as [string];
  scene.bench.net.fault(server, leader, CUT);
  const sinceMs = performance.now();
  report('front end cut from the leader', await scene.firstGrant(sinceMs, [placeOf(server)]));
  expect(await scene.bench.leader()).toBe(leader);
  scene.bench.net.heal();
  expectFired(server, leader);
  await scene.expectIntact();
}, 60_000);

const slowly: readonly (readonly [string, Flow])[] = [
  ['late by 100 to 200 ms', { kind: 'delay', ms: 100, jitterMs: 100 }],
  ['at 20 kB a second', { kind: 'drip', bytesPerSecond: 20_000 }],
];

test.each(slowly)(
  'what the leader and etcd say to each other comes %s: slow, and nothing else',
  async (how, flow) => {
    const leader = await leading();
    scene.bench.net.fault(leader, 'etcd-*', { requests: flow, replies: flow });
    const sinceMs = performance.now();
    report(`leader and etcd ${how}`, await scene.firstGrant(sinceMs));
    await pause(2_000);
    scene.bench.net.heal();
    expectFired(leader, 'etcd-*');
    await scene.expectIntact();
  },
  60_000,
);

test('connections between the leader and etcd are half-open: its calls are given up and sent anew', async () => {
  const leader = await leading();
  expect(scene.bench.net.halfOpen(leader, 'etcd-*')).toBeGreaterThan(0);
  const sinceMs = performance.now();
  report('half-open connections of the leader to etcd', await scene.firstGrant(sinceMs));
  scene.bench.net.cut(leader, 'etcd-*');
  await scene.expectIntact();
}, 60_000);

test.each([
  ['requests', { requests: HOLD, replies: PASS }],
  ['answers', { requests: PASS, replies: HOLD }],
] as const)(
  'only %s between a sidecar and its front end are cut: it goes through another',
  async (_, fault) => {
    const leader = await leading();
    const [server] = others(leader) as [string];
    scene.bench.net.fault(sidecarOn(server), server, fault);
    const sinceMs = performance.now();
    report(`${_} of a sidecar cut`, await scene.firstGrant(sinceMs, [placeOf(server)]));
    scene.bench.net.heal();
    expectFired(sidecarOn(server), server);
    await scene.expectIntact();
  },
  60_000,
);
