/**
 * Members of etcd that hold different data (case G16): etcd's own alarm CORRUPT is heeded and told, and a member whose data were changed while
 * it was down is found, named and not asked any more, though nobody has raised an alarm.
 */
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { SERVERS } from '../support/group/group-bench.ts';
import { GroupScene } from '../support/group/group-scene.ts';
import { replaceMember } from '../support/group/replace-member.ts';
import { flag } from '../support/group/rewire.ts';

const TTL_MS = 15_000;
const NOTICED_MS_MAX = 10_000;
/** Well below what applications believe without a commit. */
const ALARM_MS = 3_000;
/** Something that is found in a data file, and nowhere else in it. */
const VALUE = 'what-all-members-hold-0123456789';
const CHANGED = 'what-one-member-has-instead-0000';
/** etcd writes what it has applied to its data file within 100 ms. */
const WRITTEN_MS = 500;
/** Longer than from one look at the members to the next. */
const DOWN_MS = 2_500;

let scene: GroupScene;

beforeAll(async () => {
  scene = await GroupScene.start({ ttlMs: TTL_MS });
}, ETCD_START_MS_MAX);

afterAll(async () => {
  await scene?.end();
}, 60_000);

const endpointOf = (name: string): string => flag(scene.bench.planned(name).args, 'listen-client-urls');

/** What the group's leader says is wrong with its storage. */
async function problem(): Promise<string | null> {
  const leader = await scene.bench.leader();
  return (await scene.bench.status(leader))?.storageProblem ?? null;
}

const problemSoon = () => expect.poll(problem, { timeout: NOTICED_MS_MAX });

async function corruptGauge(): Promise<number> {
  const { healthUrl } = scene.bench.planned(await scene.bench.leader());
  const text = await (await fetch(new URL('/metrics', healthUrl))).text();
  return Number(/^leasehold_storage_corrupt_members\{.*\} (\d+)$/m.exec(text)?.[1]);
}

/** What a new acquire is refused with. */
async function refusal(): Promise<string> {
  const refused = await scene.clients.refusal(0, 'anything-free');
  expect(refused?.code).toBe('UNAVAILABLE');
  return refused?.message ?? '';
}

async function groupStatus(): Promise<string> {
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [
    main,
    'group',
    'status',
    '--dir',
    scene.bench.folder,
  ]);
  return stdout;
}

test('etcd raises the alarm CORRUPT: acquires are refused with the reason, nothing is lost, and it ends with the alarm', async () => {
  const corrupt = endpointOf('etcd-b');
  await scene.bench.etcd('etcd-b').raiseCorrupt();
  const raisedMs = performance.now();
  await problemSoon().toContain(corrupt);
  const sinceMs = Math.round(performance.now() - raisedMs);
  await expect.poll(refusal, { timeout: NOTICED_MS_MAX }).toContain('alarm CORRUPT');
  expect(await refusal()).toContain(corrupt);
  expect(await corruptGauge()).toBe(1);
  expect(await groupStatus()).toContain('alarm CORRUPT');
  // Every replica says so, whoever is asked.
  for (const server of SERVERS) {
    await expect
      .poll(async () => (await scene.bench.status(server))?.storageProblem, { timeout: NOTICED_MS_MAX })
      .toContain(corrupt);
  }
  const epoch = (await scene.bench.status(await scene.bench.leader()))?.position.epoch;
  await pause(Math.max(0, ALARM_MS - sinceMs));
  await scene.bench.etcd('etcd-a').disarm();
  await problemSoon().toBeNull();
  const tookMs = await scene.firstGrant(performance.now());
  console.log(`the alarm was noticed after ${sinceMs} ms; ${tookMs} ms to a grant after it was cleared`);
  expect((await scene.bench.status(await scene.bench.leader()))?.position.epoch).toBe(epoch);
  await scene.expectIntact();
}, 60_000);

test('one member was changed while it was down: it is named and not asked, what is held is kept and given back, and a new member ends it', async () => {
  const changed = 'etcd-c';
  await scene.bench.etcd('etcd-a').put('beside-the-group', VALUE);
  await pause(WRITTEN_MS);
  await scene.bench.kill(changed);
  change(changed);
  // Nobody changes a file so fast that no look at the members misses this one.
  await pause(DOWN_MS);
  await scene.bench.group.start([changed]);
  await problemSoon().toContain(endpointOf(changed));
  await expect.poll(refusal, { timeout: NOTICED_MS_MAX }).toContain('other data than the rest');
  expect(await corruptGauge()).toBe(1);
  expect(await groupStatus()).toContain(endpointOf(changed));
  // What is held is kept, given back and handed on: a majority agrees.
  expect(await scene.clients.lost()).toEqual([]);
  const [kept] = scene.clients.kept.splice(0, 1);
  if (kept === undefined) throw new Error('nothing is kept');
  await scene.clients.release(kept.sidecar, kept.sessionId, kept.grant);
  // Another leader finds it too.
  const epoch = (await scene.bench.status(await scene.bench.leader()))?.position.epoch ?? 0;
  const leader = await scene.bench.leader();
  await scene.bench.kill(leader);
  await expect
    .poll(async () => (await scene.bench.status(await scene.bench.leader()))?.position.epoch)
    .toBeGreaterThan(epoch);
  await scene.bench.group.start([leader]);
  await problemSoon().toContain(endpointOf(changed));
  // Without it the others are a majority that agrees.
  await scene.bench.kill(changed);
  await problemSoon().toBeNull();
  await scene.firstGrant(performance.now());
  await replaceMember(scene.bench, changed, (folder) => rmSync(folder, { recursive: true }));
  await scene.firstGrant(performance.now());
  expect(await problem()).toBeNull();
  await scene.expectIntact();
}, 120_000);

/** In the file that holds what a member has applied; bbolt has no sums over its data. */
function change(member: string): void {
  const path = join(scene.bench.folder, member, 'member', 'snap', 'db');
  const data = readFileSync(path);
  let count = 0;
  for (let at = data.indexOf(VALUE); at !== -1; at = data.indexOf(VALUE, at)) {
    at += data.write(CHANGED, at);
    count++;
  }
  expect(count).toBeGreaterThan(0);
  writeFileSync(path, data);
}
