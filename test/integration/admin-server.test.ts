/**
 * The admin services over a real socket, in front of lock servers in this process: what a separate process could be brought to
 * only with much luck or load (a trimmed log, a slow reader, a namespace that goes).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, credentials, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HistoryEntry } from '../../src/api/entry.ts';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { HistoryChecker } from '../../src/history/checker.ts';
import { sameValue } from '../../src/history/replay.ts';
import { MemoryLog } from '../../src/log/memory-log.ts';
import { MemoryStore } from '../../src/log/memory-store.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { type AdminServer, startAdminServer } from '../../src/server/grpc/admin-server.ts';
import { loadProtocol, type Message } from '../../src/server/grpc/proto.ts';
import { ADMIN_SOCKET, socketTarget } from '../../src/server/grpc/socket.ts';
import { CODE_TRAILER } from '../../src/server/grpc/status.ts';
import { Replica } from '../../src/server/replica.ts';
import { acquireCommand, namespaceConfig, openCommand } from '../support/core.ts';
import { eventually } from '../support/dev/lock-api.ts';

const runtime = createSystemRuntime({ logLevel: 'error' });
const protocol = loadProtocol();

interface Group {
  readonly alias: string;
  readonly replica: Replica;
}

async function startGroup(alias: string, snapshotDueBytes?: number): Promise<Group> {
  const replica = await Replica.start({
    runtime,
    log: new MemoryLog(new MemoryStore(`lineage-of-${alias}`)),
    serverId: 'test',
    config: namespaceConfig({ namespace: 'test', name: alias }),
    onStopped: (reason) => expect.unreachable(`stopped: ${reason.kind}`),
    ...(snapshotDueBytes === undefined ? {} : { snapshotDueBytes }),
  });
  return { alias, replica };
}

async function openSession({ replica }: Group): Promise<number> {
  const opened = await replica.submit(openCommand());
  if (opened.type !== 'opened') throw new Error(`no session: ${opened.type}`);
  return opened.session;
}

async function acquire({ replica }: Group, session: number, name: string): Promise<number> {
  const granted = await replica.submit(acquireCommand({ session, key: name, name, acks: [] }));
  if (granted.type !== 'granted') throw new Error(`not granted: ${granted.type}`);
  return granted.token;
}

async function collect(entries: AsyncIterable<HistoryEntry>): Promise<HistoryEntry[]> {
  const all: HistoryEntry[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}

let folder = '';
let groups: Group[] = [];
let server: AdminServer | null = null;
let client: AdminClient;

async function serve(...served: readonly Group[]): Promise<void> {
  groups = [...served];
  const socketPath = join(folder, ADMIN_SOCKET);
  server = await startAdminServer({ socketPath, served: () => groups, timers: runtime.timers });
  client = new AdminClient(socketPath);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-admin-'));
});

afterEach(async () => {
  client.close();
  await server?.close();
  for (const { replica } of groups) await replica.stop();
  rmSync(folder, { recursive: true });
});

describe('which namespace is meant', () => {
  test('the only one may stay unnamed; of several one must be named; an unknown one is answered with those served', async () => {
    await serve(await startGroup('one'));
    expect((await client.getLock({ namespace: '', name: 'a' })).name).toBe('a');
    groups.push(await startGroup('two'));
    await expect(client.getLock({ namespace: '', name: 'a' })).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: 'name a namespace; served here: one, two',
    });
    await expect(client.status('three')).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: 'no namespace three; served here: one, two',
    });
    expect((await client.status('')).map(({ namespace }) => namespace)).toEqual(['one', 'two']);
    expect((await client.status('two'))[0]?.config).toEqual(
      namespaceConfig({ namespace: 'test', name: 'two' }),
    );
  });
});

describe('inspecting', () => {
  test('shows figures and locks as they are', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const [holder, waiter] = [await openSession(group), await openSession(group)];
    const token = await acquire(group, holder, 'nightly');
    await group.replica.submit(
      acquireCommand({ session: waiter, key: 'k', name: 'nightly', waitMs: 60_000 }),
    );
    const [figures] = await client.status('');
    expect(figures).toMatchObject({
      leading: true,
      sessions: 2,
      held: 1,
      waiting: 1,
      names: 1,
      longestQueue: 1,
    });
    expect(figures?.lastToken).toBe(token);
    expect(figures?.position).toEqual(group.replica.status().position);
    const lock = await client.getLock({ namespace: 'jobs', name: 'nightly' });
    expect(lock).toMatchObject({ waiterCount: 1, quarantined: false, holders: [{ session: holder, token }] });
    expect(lock.waiters).toMatchObject([{ session: waiter, mode: 'exclusive' }]);
    expect(await client.listLocks({ namespace: '', prefix: 'n', after: '', limit: 0 })).toMatchObject({
      locks: [{ name: 'nightly' }],
      more: false,
    });
    expect((await client.listLocks({ namespace: '', prefix: 'x', after: '', limit: 5 })).locks).toEqual([]);
  });

  test('refuses what cannot be a name or a limit', async () => {
    await serve(await startGroup('jobs'));
    const invalid = { code: status.INVALID_ARGUMENT };
    await expect(client.getLock({ namespace: '', name: '' })).rejects.toMatchObject(invalid);
    await expect(client.getLock({ namespace: '', name: 'x'.repeat(513) })).rejects.toMatchObject(invalid);
    const list = { namespace: '', prefix: '', after: '', limit: 1_001 };
    await expect(client.listLocks(list)).rejects.toMatchObject(invalid);
    await expect(client.listLocks({ ...list, limit: 2 ** 60 })).rejects.toMatchObject(invalid);
  });
});

describe('commands of administrators', () => {
  test('a quarantined name is granted to nobody until it is put back', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const session = await openSession(group);
    await client.quarantine({ namespace: 'jobs', name: 'nightly', reason: 'looks odd' });
    const refused = await group.replica.submit(acquireCommand({ session, key: 'k1', name: 'nightly' }));
    expect(refused).toMatchObject({ type: 'refused', code: 'QUARANTINED' });
    expect((await client.getLock({ namespace: '', name: 'nightly' })).quarantined).toBe(true);
    await client.unquarantine({ namespace: 'jobs', name: 'nightly', by: 'alice' });
    expect(await acquire(group, session, 'nightly')).toBeGreaterThan(0);
    await expect(
      client.unquarantine({ namespace: 'jobs', name: 'nightly', by: 'alice' }),
    ).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'the name is not quarantined',
    });
  });

  test('what goes on record must be there and fit', async () => {
    await serve(await startGroup('jobs'));
    const good = { namespace: '', name: 'nightly', token: 1, now: false, reason: 'stuck', by: 'alice' };
    const bad = [
      { ...good, token: 0 },
      { ...good, token: 2 ** 53 },
      { ...good, name: '' },
      { ...good, reason: '' },
      { ...good, reason: 'é'.repeat(513) },
      { ...good, by: '' },
      { ...good, by: 'x'.repeat(257) },
    ];
    for (const request of bad) {
      await expect(client.breakLock(request)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    }
    const error = await client.breakLock(good).catch((failed: unknown) => failed);
    expect(error).toMatchObject({ code: status.FAILED_PRECONDITION });
    const { metadata } = error as { metadata: { get(name: string): unknown[] } };
    expect(metadata.get(CODE_TRAILER)).toEqual(['NOT_HELD']);
  });

  test('configuration is the business of the manifests', async () => {
    await serve(await startGroup('jobs'));
    const answer = await call('leasehold.v1.Admin', 'Configure', { namespace: 'jobs', version: 9 });
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION });
    expect(String((answer as { details: string }).details)).toContain('manifest');
  });
});

/** One unary call without the client; resolves with the error, too. */
function call(service: string, name: string, request: object): Promise<unknown> {
  const method = protocol.service(service)[name];
  if (method === undefined) throw new Error(`no ${name}`);
  const raw = new Client(socketTarget(join(folder, ADMIN_SOCKET)), credentials.createInsecure());
  return new Promise((resolve) => {
    raw.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      (error, answer) => {
        raw.close();
        resolve(error ?? answer);
      },
    );
  });
}

describe('reading the history', () => {
  test('gives every entry, as the log itself gives it, and the checker finds nothing', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const session = await openSession(group);
    for (let i = 0; i < 50; i++) await acquire(group, session, `lock-${i}`);
    const read = await collect(client.readHistory({ namespace: '', from: 0, follow: false }));
    const expected = await collect(group.replica.history(1));
    expect(sameValue(read, expected)).toBe(true);
    expect(read[0]?.index).toBe(1);
    const checker = new HistoryChecker();
    for (const entry of read) checker.entry(entry);
    expect(checker.finish()).toMatchObject({ ok: true, counts: { grants: 50 } });
    const later = await collect(client.readHistory({ namespace: '', from: 40, follow: false }));
    expect(later).toEqual(read.filter(({ index }) => index >= 40));
    expect(await collect(client.readHistory({ namespace: '', from: 1_000, follow: false }))).toEqual([]);
  });

  test('begins where a trimmed log begins, and says so to whoever wants more', async () => {
    const group = await startGroup('jobs', 20_000);
    await serve(group);
    const session = await openSession(group);
    for (let i = 0; i < 1_000; i++) await acquire(group, session, `lock-${i % 200}-${i}`);
    await eventually(async () => (await oldest())?.index !== 1);
    const read = await collect(client.readHistory({ namespace: '', from: 0, follow: false }));
    const first = read[0]?.index ?? 0;
    expect(first).toBeGreaterThan(1);
    expect(read.map(({ index }) => index)).toEqual(read.map((_, i) => first + i));
    await expect(
      collect(client.readHistory({ namespace: '', from: 1, follow: false })),
    ).rejects.toMatchObject({
      code: status.OUT_OF_RANGE,
    });
  });

  async function oldest(): Promise<HistoryEntry | undefined> {
    for await (const entry of client.readHistory({ namespace: '', from: 0, follow: false })) return entry;
    return undefined;
  }

  test('a follower misses nothing and gets nothing twice while the log grows', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const session = await openSession(group);
    const read: HistoryEntry[] = [];
    const following = follow(read, 1);
    for (let i = 0; i < 300; i++) {
      await acquire(group, session, `lock-${i}`);
      if (i % 50 === 0) await pause(5);
    }
    const { index } = group.replica.status().position;
    await eventually(() => read.length >= index);
    expect(read.map((entry) => entry.index)).toEqual(Array.from({ length: index }, (_, i) => i + 1));
    expect(sameValue(read, await collect(group.replica.history(1)))).toBe(true);
    await server?.close();
    await expect(following).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  test('a follower from a place ahead of the log waits for it', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const session = await openSession(group);
    const from = group.replica.status().position.index + 3;
    const read: HistoryEntry[] = [];
    const following = follow(read, from);
    await pause(100);
    for (let i = 0; i < 5; i++) await acquire(group, session, `lock-${i}`);
    await eventually(() => read.length >= 3);
    expect(read[0]?.index).toBe(from);
    groups = [];
    await expect(following).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await group.replica.stop();
  });

  async function follow(into: HistoryEntry[], from: number): Promise<void> {
    for await (const entry of client.readHistory({ namespace: '', from, follow: true })) into.push(entry);
  }

  test('a follower that does not read is cut off, and the lock server does not wait for it', async () => {
    const group = await startGroup('jobs');
    await serve(group);
    const session = await openSession(group);
    const reading = client.readHistory({ namespace: '', from: 1, follow: true });
    expect((await reading.next()).value?.index).toBe(1);
    // One quarantine with many waiters makes many events: enough of them overflow what is kept for a reader.
    const name = 'x'.repeat(512);
    const waits = Array.from({ length: 255 }, (_, i) =>
      acquireCommand({ session, key: `wait-${i}`, name, waitMs: 60_000 }),
    );
    let events = 0;
    const unwatch = group.replica.watch((entry) => {
      events += entry.events.length;
    });
    await client.quarantine({ namespace: '', name: 'other', reason: 'r' });
    for (let round = 0; events < 60_000; round++) {
      await Promise.all(
        waits.map((wait) =>
          group.replica.submit({ ...wait, key: `${round}-${wait.key}`, name: `${round}-${'x'.repeat(480)}` }),
        ),
      );
      const keys = waits.map(({ key }) => `${round}-${key}`);
      await Promise.all(
        keys.map((key) => group.replica.submit({ type: 'cancel', session, attach: 1, key, acks: [] })),
      );
    }
    unwatch();
    const error = await collect(reading).catch((failed: unknown) => failed);
    expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect((error as { details: string }).details).toMatch(/read on from \d+$/);
  }, 60_000);
});

describe('health', () => {
  test('is asked as gRPC probes ask it', async () => {
    await serve(await startGroup('jobs'));
    expect(await call('grpc.health.v1.Health', 'Check', {})).toEqual({ status: 'SERVING' });
    expect(await call('grpc.health.v1.Health', 'Check', { service: 'leasehold.v1.Admin' })).toEqual({
      status: 'SERVING',
    });
    expect(await call('grpc.health.v1.Health', 'Check', { service: 'nope' })).toMatchObject({
      code: status.NOT_FOUND,
    });
  });

  test('tells those who watch when the server stops', async () => {
    await serve(await startGroup('jobs'));
    const method = protocol.service('grpc.health.v1.Health')['Watch'];
    if (method === undefined) throw new Error('no Watch');
    const raw = new Client(socketTarget(join(folder, ADMIN_SOCKET)), credentials.createInsecure());
    const deserialize = method.responseDeserialize as (bytes: Buffer) => Message;
    const seen: unknown[] = [];
    const watching = raw.makeServerStreamRequest(method.path, method.requestSerialize, deserialize, {
      service: '',
    });
    watching.on('data', (answer: Message) => seen.push(answer.status));
    const ended = new Promise((resolve) => watching.once('end', resolve));
    await eventually(() => seen.length === 1);
    await server?.close();
    await ended;
    expect(seen).toEqual(['SERVING', 'NOT_SERVING']);
    raw.close();
  });
});
