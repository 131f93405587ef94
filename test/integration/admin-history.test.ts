/** The service History over a real socket: whole, in order, bounded. */
import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../src/api/entry.ts';
import { HistoryChecker } from '../../src/history/checker.ts';
import { adminServices, collect, Group } from '../support/admin-services.ts';
import { eventually } from '../support/dev/lock-api.ts';

const services = adminServices();

function read(from: number): Promise<HistoryEntry[]> {
  return collect(services.client.readHistory({ namespace: '', from, follow: false }));
}

async function follow(into: HistoryEntry[], from: number): Promise<void> {
  for await (const entry of services.client.readHistory({ namespace: '', from, follow: true }))
    into.push(entry);
}

test('gives every entry as the log itself gives it, and the checker finds nothing', async () => {
  const group = await Group.start('jobs');
  await services.serve(group);
  const session = await group.open();
  for (let i = 0; i < 50; i++) await group.lock(session, `lock-${i}`);
  const all = await read(0);
  expect(all).toEqual(await collect(group.replica.history(1)));
  expect(all[0]?.index).toBe(1);
  const checker = new HistoryChecker();
  for (const entry of all) checker.entry(entry);
  expect(checker.finish()).toMatchObject({ ok: true, counts: { grants: 50 } });
  expect(await read(40)).toEqual(all.filter(({ index }) => index >= 40));
  expect(await read(1_000)).toEqual([]);
});

test('begins where a trimmed log begins, and says so to whoever wants more', async () => {
  const group = await Group.start('jobs', 20_000);
  await services.serve(group);
  const session = await group.open();
  for (let i = 0; i < 500; i++) await group.lockAndRelease(session, `lock-${i}`);
  await eventually(async () => (await read(0))[0]?.index !== 1);
  const all = await read(0);
  const first = all[0]?.index ?? 0;
  expect(first).toBeGreaterThan(1);
  expect(all.map(({ index }) => index)).toEqual(all.map((_, i) => first + i));
  expect(all.at(-1)?.index).toBe(group.head);
  await expect(read(1)).rejects.toMatchObject({ code: status.OUT_OF_RANGE });
});

test('a follower misses nothing and gets nothing twice while the log grows', async () => {
  const group = await Group.start('jobs');
  await services.serve(group);
  const session = await group.open();
  for (let i = 0; i < 200; i++) await group.lockAndRelease(session, `before-${i}`);
  const entries: HistoryEntry[] = [];
  const following = follow(entries, 1);
  const isCutOff = expect(following).rejects.toMatchObject({ code: status.UNAVAILABLE });
  for (let i = 0; i < 200; i++) {
    await group.lockAndRelease(session, `after-${i}`);
    if (i % 50 === 0) await pause(5);
  }
  await eventually(() => entries.length >= group.head);
  expect(entries.map(({ index }) => index)).toEqual(Array.from({ length: group.head }, (_, i) => i + 1));
  expect(entries).toEqual(await collect(group.replica.history(1)));
  await services.server.close();
  await isCutOff;
});

test('a follower from a place ahead of the log waits for it; when its namespace goes, so does it', async () => {
  const group = await Group.start('jobs');
  await services.serve(group);
  const session = await group.open();
  const from = group.head + 3;
  const entries: HistoryEntry[] = [];
  const following = follow(entries, from);
  const isCutOff = expect(following).rejects.toMatchObject({
    code: status.UNAVAILABLE,
    details: 'jobs is not served any more',
  });
  for (let i = 0; i < 5; i++) await group.lockAndRelease(session, `lock-${i}`);
  await eventually(() => entries.length >= 3);
  expect(entries[0]?.index).toBe(from);
  services.groups = [];
  await isCutOff;
  await group.replica.stop();
});

test('a follower that does not read is cut off, and the lock server does not wait for it (rule S9)', async () => {
  const group = await Group.start('jobs');
  await services.serve(group);
  const session = await group.open();
  const reading = services.client.readHistory({ namespace: '', from: 1, follow: true });
  expect((await reading.next()).value?.index).toBe(1);
  // More than what is kept for a reader and what fits into the connection together.
  const padding = 'x'.repeat(400);
  for (let round = 0; round < 150; round++) {
    const names = Array.from({ length: 100 }, (_, i) => `${round}-${i}-${padding}`);
    await Promise.all(names.map((name) => group.lockAndRelease(session, name)));
  }
  const error = await collect(reading).catch((failed: unknown) => failed);
  expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  const from = Number(/read on from (\d+)$/.exec((error as { details: string }).details)?.[1]);
  expect((await read(from))[0]?.index).toBe(from);
}, 60_000);

test('a reader that goes away is forgotten', async () => {
  const group = await Group.start('jobs');
  await services.serve(group);
  const readOne = async (): Promise<boolean> => {
    for await (const { index } of services.client.readHistory({ namespace: '', from: 1, follow: true })) {
      return index === 1;
    }
    return false;
  };
  // More than may read or follow at once. The server hears that one has gone a moment later: until then it may refuse the next.
  for (let i = 0; i < 70; i++) await eventually(() => readOne().catch(() => false));
  expect((await read(1)).length).toBe(group.head);
});
