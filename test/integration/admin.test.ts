/** The admin socket of a real `leasehold dev`: what `break` does to holders and waiters, and what history says of it. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { LockEvent } from '../../src/api/entry.ts';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { parseHistoryLine } from '../../src/history/read.ts';
import { ADMIN_SOCKET } from '../../src/server/grpc/socket.ts';
import { leasehold } from '../support/cli.ts';
import type { Held } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

const TTL_MS = 5_000;
const LOCK_DELAY_MS = 1_000;
const WAIT_MS = 20_000;

const dev = shareDev({ name: 'jobs', lease: { lockDelay: '1s' } }, { name: 'quiet' });
let admin: AdminClient;

beforeAll(() => {
  admin = new AdminClient(join(dev.workspace.data, ADMIN_SOCKET));
});
afterAll(() => admin.close());

function breakLock({ name, token }: Held, now: boolean): Promise<void> {
  return admin.breakLock({ namespace: 'jobs', name, token, now, reason: 'it hangs', by: 'alice' });
}

/** A holder that is kept alive, and a waiter behind it. */
async function heldAndWaited(name: string) {
  const api = dev.api();
  const holder = await api.open({ client: 'holder', ttl_s: TTL_MS / 1000 });
  const waiter = await api.open({ client: 'waiter', ttl_s: TTL_MS / 1000 });
  const keeping = [api.keepAlive(holder), api.keepAlive(waiter)];
  const held = await api.lock(name, { session_id: holder });
  const waiting = api.lock(name, { session_id: waiter, wait_ms: WAIT_MS });
  await api.waiting(name, 1);
  const end = (): string[] => {
    for (const { stop } of keeping) stop();
    return keeping.flatMap(({ refused }) => refused);
  };
  return { api, held, waiting, end };
}

interface Placed {
  readonly index: number;
  /** Group time: what leases and delays are measured in. */
  readonly at: number;
  readonly event: LockEvent;
}

/** By type, in their order. */
async function eventsOf(name: string) {
  const placed: Placed[] = [];
  for await (const { index, at, events } of admin.readHistory({
    namespace: 'jobs',
    from: 0,
    follow: false,
  })) {
    for (const event of events) if ('name' in event && event.name === name) placed.push({ index, at, event });
  }
  const of = (type: LockEvent['type']): Placed => {
    const found = placed.findLast(({ event }) => event.type === type);
    if (found === undefined) throw new Error(`${name} was never ${type}`);
    return found;
  };
  return { types: placed.map(({ event }) => event.type), of };
}

describe.concurrent('break', () => {
  test('a holder that gives up at once: the next one waits for the lock-delay only (rule C9)', async ({
    expect,
  }) => {
    const { api, held, waiting, end } = await heldAndWaited('given-up');
    await breakLock(held, false);
    expect(await api.isHeld(held)).toBe(true);
    expect((await api.release(held)).body).toEqual({ released: true });
    expect((await waiting).token).toBeGreaterThan(held.token);
    const { types, of } = await eventsOf('given-up');
    const expected = ['granted', 'queued', 'broken', 'revoking', 'released', 'delayed', 'granted'];
    expect(types).toEqual(expected);
    expect(of('broken').event).toMatchObject({
      token: held.token,
      now: false,
      reason: 'it hangs',
      by: 'alice',
    });
    expect(of('granted').at - of('released').at).toBeGreaterThanOrEqual(LOCK_DELAY_MS);
    expect(of('granted').at - of('broken').at).toBeLessThan(TTL_MS + LOCK_DELAY_MS);
    expect(end()).toEqual([]);
  });

  test('a holder that goes on: the next one waits for its TTL and the lock-delay, however often it says that it lives', async ({
    expect,
  }) => {
    const { api, held, waiting, end } = await heldAndWaited('goes-on');
    await breakLock(held, false);
    await waiting;
    expect(await api.isHeld(held)).toBe(false);
    const { types, of } = await eventsOf('goes-on');
    expect(types).toEqual(['granted', 'queued', 'broken', 'revoking', 'revoked', 'delayed', 'granted']);
    expect(of('revoked').at - of('broken').at).toBeGreaterThanOrEqual(TTL_MS);
    expect(of('granted').at - of('revoked').at).toBeGreaterThanOrEqual(LOCK_DELAY_MS);
    expect(end()).toEqual([]);
  });

  test('now: the next one is granted at once, the holder is told lost, and the record says unsafe', async ({
    expect,
  }) => {
    const { api, held, waiting, end } = await heldAndWaited('at-once');
    const stream = await api.stream(held.session);
    await breakLock(held, true);
    await waiting;
    expect(await stream.has('lost')).toMatchObject({ token: held.token });
    expect(await api.isHeld(held)).toBe(false);
    const { types, of } = await eventsOf('at-once');
    expect(types).toEqual(['granted', 'queued', 'broken', 'revoked', 'granted']);
    expect(of('revoked').event).toMatchObject({ token: held.token, cause: 'break', unsafe: true });
    expect(of('granted').index).toBe(of('broken').index);
    stream.close();
    expect(end()).toEqual([]);
  });

  test('is refused, and changes nothing, when the holder has changed or gone', async ({ expect }) => {
    const api = dev.api();
    const session = await api.open();
    const keeping = api.keepAlive(session);
    const first = await api.lock('changed', { session_id: session });
    await api.release(first);
    await expect(breakLock(first, true)).rejects.toMatchObject({ code: status.FAILED_PRECONDITION });
    const second = await api.lock('changed', { session_id: session });
    await expect(breakLock(first, true)).rejects.toMatchObject({
      code: status.FAILED_PRECONDITION,
      details: expect.stringContaining('higher token'),
    });
    await expect(breakLock({ ...first, name: 'never-locked' }, false)).rejects.toMatchObject({
      code: status.FAILED_PRECONDITION,
    });
    expect(await api.tokenOf('changed')).toBe(second.token);
    expect(await api.isHeld(second)).toBe(true);
    expect((await eventsOf('changed')).types).toEqual(['granted', 'released', 'granted']);
    keeping.stop();
  });

  test('is no route of the HTTP API', async ({ expect }) => {
    const api = dev.api();
    const held = await api.lock('over-http');
    for (const action of ['/break', ':break', '/quarantine', '/unquarantine']) {
      const body = { token: held.token, now: true, reason: 'r', by: 'b' };
      const answer = await api.client.post(api.path('over-http', action), body);
      expect([404, 405], action).toContain(answer.status);
    }
    expect(await api.isHeld(held)).toBe(true);
  });
});

test('the socket is for the account of the process alone', ({ expect }) => {
  const { mode } = statSync(join(dev.workspace.data, ADMIN_SOCKET));
  expect(mode & 0o777).toBe(0o600);
  expect(statSync(dev.workspace.data).mode & 0o777).toBe(0o700);
});

test('history read and log dump --events tell the same, and history check finds nothing wrong', async ({
  expect,
}) => {
  const api = dev.api();
  await Promise.all(
    Array.from({ length: 10 }, async (_, i) => {
      const held = await api.lock('busy', { wait_ms: WAIT_MS, owner: `worker-${i}` });
      await api.release(held);
    }),
  );
  const { data } = dev.workspace;
  const dumped = await leasehold(['log', 'dump', data, '-n', 'jobs', '--events', '-o', 'json']);
  expect(dumped).toMatchObject({ code: 0, stderr: '' });
  const read = await leasehold(['history', 'read', '-d', data, '-n', 'jobs']);
  expect(read).toMatchObject({ code: 0, stderr: '' });
  const [dumpedLines, readLines] = [dumped, read].map(({ stdout }) => stdout.trimEnd().split('\n'));
  const parsed = (readLines ?? []).map((line, i) => parseHistoryLine(line, i + 1));
  expect(parsed.length).toBeGreaterThanOrEqual(20);
  // The log went on growing between the two.
  const common = (dumpedLines ?? []).map((line, i) => parseHistoryLine(line, i + 1));
  expect(parsed.slice(0, common.length)).toEqual(common);
  const checked = await leasehold(['history', 'check', '-', '-o', 'json'], read.stdout);
  expect(checked).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(checked.stdout)).toMatchObject({
    ok: true,
    counts: { entries: parsed.length, violations: 0 },
  });
});
