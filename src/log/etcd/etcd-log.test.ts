/** What only the etcd engine has: leases, several handles, lost answers, members that stand still. */
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ETCD_START_MS_MAX, TestEtcd } from '../../../test/support/etcd.ts';
import { type Flow, PASS } from '../../../test/support/faulty-flow.ts';
import { FaultyProxy, type LinkFault, NO_FAULT } from '../../../test/support/faulty-proxy.ts';
import { systemClock, systemTimers } from '../../platform/system-runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import { appendEntries, entryAfter, readAll, START, systemPorts } from '../log.fixture.ts';
import { CorruptLogError, type LockLog } from '../port.ts';
import { EtcdClient } from './client.ts';
import { openEtcdLog } from './etcd-log.ts';
import { ServerLease } from './server-lease.ts';

const LEASE_TTL_SECONDS = 2;
/** Longer than keepalives are apart, a quarter of the TTL. */
const LATE_MS = 800;

let etcd: TestEtcd;
let prefix: string;
let prefixes = 0;
const opened: LockLog[] = [];

beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

beforeEach(() => {
  prefixes += 1;
  prefix = `engine-${prefixes}/`;
});

afterEach(async () => {
  for (const log of opened.splice(0)) await log.close();
});

async function open(
  endpoints: readonly string[] = [etcd.endpoint],
  callMs = 2_000,
  leaseTtlSeconds = LEASE_TTL_SECONDS,
): Promise<LockLog> {
  const log = await openEtcdLog({
    endpoints,
    callMs,
    clock: systemClock,
    prefix,
    leaseTtlSeconds,
    ...systemPorts(),
  });
  opened.push(log);
  return log;
}

async function leaseIds(): Promise<readonly string[]> {
  const answer = await fetch(`${etcd.endpoint}/v3/lease/leases`, { method: 'POST', body: '{}' });
  const { leases = [] } = (await answer.json()) as { leases?: { ID: string }[] };
  return leases.map(({ ID }) => ID);
}

test('handles opened at once agree on the lineage', async () => {
  const logs = await Promise.all([open(), open(), open()]);
  const [first, ...others] = logs.map(({ lineage }) => lineage);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(others).toEqual([first, first]);
});

test('reads may be given up sooner than writes: a member that is silent does not hold up who opens the log', async () => {
  const silentMember = createServer(() => undefined);
  await new Promise<void>((resolve) => silentMember.listen(0, '127.0.0.1', resolve));
  const silent = `http://127.0.0.1:${(silentMember.address() as AddressInfo).port}`;
  const asked: string[] = [];
  const sinceMs = performance.now();
  const log = await openEtcdLog({
    endpoints: [silent, etcd.endpoint],
    callMs: 30_000,
    readMs: 300,
    onSilent: (endpoint) => asked.push(endpoint),
    clock: systemClock,
    prefix,
    ...systemPorts(),
  });
  opened.push(log);
  expect(asked).toEqual([silent]);
  expect((await log.standing()).lineage).toBe(log.lineage);
  expect(performance.now() - sinceMs).toBeLessThan(15_000);
  silentMember.close();
});

test('a try to open the log that fails leaves nothing behind that waits for other certificates', async () => {
  let listening = 0;
  const onCredentials = (): (() => void) => {
    listening++;
    return () => void listening--;
  };
  const nobody = ['http://127.0.0.1:1'];
  const options = { endpoints: nobody, onCredentials, clock: systemClock, prefix, ...systemPorts() };
  await expect(openEtcdLog(options)).rejects.toThrow(LogUnavailableError);
  expect(listening).toBe(0);
  opened.push(await openEtcdLog({ ...options, endpoints: [etcd.endpoint] }));
  expect(listening).toBe(1);
});

test('a second server waits until the first one resigns', async () => {
  const [a, b] = [await open(), await open()];
  const first = await a.campaign('server-a');
  let won = false;
  const winning = b.campaign('server-b').then((leadership) => {
    won = true;
    return leadership;
  });
  await appendEntries(a, first, 20);
  expect(won).toBe(false);
  await a.resign(first);
  const second = await winning;
  expect(second.epoch).toBe(first.epoch + 1);
  const next = entryAfter(await b.head());
  expect(await a.append(first, next)).toBe('deposed');
  expect(await b.append(second, next)).toBe('committed');
});

test('who is named as successor wins, and the others hold back for a moment only', async () => {
  const logs = await Promise.all([open(), open(), open()]);
  const [a, b, c] = logs as [LockLog, LockLog, LockLog];
  for (const successor of ['server-c', 'server-b', 'server-c', 'nobody']) {
    const first = await a.campaign('server-a');
    const winners: string[] = [];
    const campaigns = [
      b.campaign('server-b').then((leadership) => ({ log: b, leadership })),
      c.campaign('server-c').then((leadership) => ({ log: c, leadership })),
    ];
    for (const campaign of campaigns) {
      void campaign.then(({ leadership }) => winners.push(leadership.serverId));
    }
    // Both look by now, and see that it is taken.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await a.resign(first, successor);
    const { log, leadership } = await Promise.race(campaigns);
    if (successor !== 'nobody') expect(leadership.serverId).toBe(successor);
    await log.resign(leadership);
    const second = await Promise.all(campaigns).then((all) => all.find((one) => one.log !== log));
    expect(winners).toHaveLength(2);
    await second?.log.resign(second.leadership);
  }
}, 30_000);

test('a leader that dies is followed when its lease has run out, not before', async () => {
  const [a, b] = [await open(), await open()];
  const first = await a.campaign('server-a');
  const [entry] = await appendEntries(a, first, 1);
  const diedMs = performance.now();
  await a.close();
  const second = await b.campaign('server-b');
  const waitedMs = performance.now() - diedMs;
  expect(waitedMs).toBeGreaterThan((LEASE_TTL_SECONDS * 1_000) / 2);
  expect(waitedMs).toBeLessThan(20_000);
  expect(await readAll(b, 1)).toEqual([entry]);
  expect(await b.append(second, entryAfter(entry!))).toBe('committed');
}, 30_000);

test('a leader that lives keeps its lease for longer than a TTL', async () => {
  const [a, b] = [await open(), await open()];
  const first = await a.campaign('server-a');
  let won = false;
  b.campaign('server-b').then(
    () => {
      won = true;
    },
    () => undefined,
  );
  await new Promise((resolve) => setTimeout(resolve, LEASE_TTL_SECONDS * 3_000));
  expect(won).toBe(false);
  expect(await a.append(first, entryAfter(START))).toBe('committed');
}, 30_000);

test('there is one lease per handle that campaigned, however much is written (case I08)', async () => {
  const before = (await leaseIds()).length;
  const log = await open();
  for (let round = 0; round < 5; round += 1) {
    const leadership = await log.campaign('server-a');
    await appendEntries(log, leadership, 10);
  }
  expect((await leaseIds()).length).toBe(before + 1);
});

test('an entry whose answer was lost is there once, and its outcome is found out (rule L2)', async () => {
  const proxy = await FaultyProxy.start(etcd.endpoint);
  const log = await open([proxy.endpoint], 300);
  const leadership = await log.campaign('server-a');
  let position = START as { index: number; hash: string };
  for (let round = 0; round < 5; round += 1) {
    const entry = entryAfter(position);
    proxy.dropReplies = true;
    const appending = log.append(leadership, entry);
    // Long enough for etcd to commit it, shorter than its deadline.
    await new Promise((resolve) => setTimeout(resolve, 150));
    proxy.dropReplies = false;
    proxy.cut();
    expect(await appending).toBe('committed');
    position = entry;
  }
  expect(proxy.droppedBytes).toBeGreaterThan(0);
  const direct = await open();
  expect((await readAll(direct, 1)).map(({ hash }) => hash)).toHaveLength(5);
  await proxy.stop();
}, 30_000);

test('where every answer is late the log goes on, as fast as the answers come', async () => {
  const lateMs = 550;
  const proxy = await FaultyProxy.start(etcd.endpoint);
  const log = await open([proxy.endpoint], 1_000, 5);
  const leadership = await log.campaign('server-a');
  let position = START as { index: number; hash: string };
  proxy.set({ requests: PASS, replies: { kind: 'delay', ms: lateMs, jitterMs: 0 } });
  const tookMs: number[] = [];
  for (let round = 0; round < 12; round++) {
    const sinceMs = systemClock.monotonicMs();
    const entry = entryAfter(position);
    // Its caller keeps at it.
    while ((await log.append(leadership, entry).catch(() => 'unknown')) === 'unknown');
    tookMs.push(systemClock.monotonicMs() - sinceMs);
    position = entry;
  }
  proxy.set(NO_FAULT);
  // The first one finds out how late; no later one may cost that again.
  expect(Math.max(...tookMs.slice(1))).toBeLessThan(3 * lateMs);
  expect((await readAll(log, 1)).at(-1)?.hash).toBe(position.hash);
  await proxy.stop();
}, 60_000);

test('a lease lives on where questions or answers take longer than its keepalives are apart', async () => {
  const livesOn = async (fault: LinkFault): Promise<boolean> => {
    const proxy = await FaultyProxy.start(etcd.endpoint);
    const client = new EtcdClient({ endpoints: [proxy.endpoint], clock: systemClock, timers: systemTimers });
    const lease = await ServerLease.grant(client, systemTimers, LEASE_TTL_SECONDS);
    proxy.set(fault);
    await new Promise((resolve) => setTimeout(resolve, 2.5 * LEASE_TTL_SECONDS * 1_000));
    const ids = await leaseIds();
    lease.close();
    client.close();
    await proxy.stop();
    return ids.includes(lease.id);
  };
  const late: Flow = { kind: 'delay', ms: LATE_MS, jitterMs: 0 };
  const faults = [
    { requests: PASS, replies: late },
    { requests: late, replies: PASS },
  ];
  expect(await Promise.all(faults.map(livesOn))).toEqual([true, true]);
}, 30_000);

test('while etcd stands still an append has no outcome; afterwards it has the one that is true', async () => {
  const log = await open([etcd.endpoint], 200);
  const leadership = await log.campaign('server-a');
  const entry = entryAfter(START);
  etcd.pause();
  try {
    await expect(log.append(leadership, entry)).rejects.toThrow(LogUnavailableError);
    await expect(log.append(leadership, entryAfter(entry))).rejects.toThrow(RangeError);
  } finally {
    etcd.resume();
  }
  expect(await log.append(leadership, entry)).toBe('committed');
  expect((await readAll(log, 1)).map(({ hash }) => hash)).toEqual([entry.hash]);
}, 30_000);

test('a server whose lease is lost while it waits campaigns with a new one (case G17)', async () => {
  const [a, b, c] = [await open(), await open(), await open()];
  const first = await a.campaign('server-a');
  const winning = [b.campaign('server-b'), c.campaign('server-c')];
  const before = await leaseIds();
  await a.resign(first);
  const second = await Promise.race(winning);
  for (const id of (await leaseIds()).filter((lease) => !before.includes(lease))) {
    await fetch(`${etcd.endpoint}/v3/lease/revoke`, { method: 'POST', body: JSON.stringify({ ID: id }) });
  }
  const [third, fourth] = await Promise.all(winning);
  expect([third?.epoch, fourth?.epoch].sort()).toEqual([second.epoch, second.epoch + 1]);
  const [last, log] = third!.epoch > fourth!.epoch ? [third!, b] : [fourth!, c];
  expect(await log.append(last, entryAfter(START))).toBe('committed');
}, 30_000);

test('a key leader without a lease is reported, not waited for (case H11)', async () => {
  const client = etcd.client();
  await client.txn({
    success: [{ request_put: { key: Buffer.from(`${prefix}leader`), value: Buffer.from('{}') } }],
  });
  client.close();
  await expect((await open()).campaign('server-a')).rejects.toThrow(CorruptLogError);
});

test('with a member dead, calls go to another one', async () => {
  const log = await open(['http://127.0.0.1:1', etcd.endpoint]);
  const leadership = await log.campaign('server-a');
  expect(await log.append(leadership, entryAfter(START))).toBe('committed');
});

test('a member that dies in the middle costs a try, not the log', async () => {
  const proxy = await FaultyProxy.start(etcd.endpoint);
  const log = await open([proxy.endpoint, etcd.endpoint], 500);
  const leadership = await log.campaign('server-a');
  const [entry] = await appendEntries(log, leadership, 1);
  await proxy.stop();
  expect(await log.append(leadership, entryAfter(entry!))).toBe('committed');
  expect((await readAll(log, 1)).map(({ index }) => index)).toEqual([1, 2]);
});

test('an answer from before the last one is no answer (case G15)', async () => {
  // Stands for a member that was stopped and goes on: it knows less than this client has seen.
  const behind = await TestEtcd.start();
  const client = new EtcdClient({
    endpoints: [etcd.endpoint, behind.endpoint],
    clock: systemClock,
    timers: systemTimers,
  });
  try {
    const key = Buffer.from(`${prefix}key`);
    await client.txn({ success: [{ request_put: { key, value: Buffer.from('new') } }] });
    client.skipMember();
    await expect(client.read([{ key }])).rejects.toThrow(LogUnavailableError);
    // And the next call goes elsewhere again.
    const [pairs] = await client.read([{ key }]);
    expect(pairs?.[0]?.value.toString()).toBe('new');
  } finally {
    client.close();
    await behind.stop();
  }
});
