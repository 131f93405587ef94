/**
 * The log on Debian's etcd 3.4, an adversary with known faults: what is promised of safety must hold there too. It runs where that etcd is
 * installed (`.ci/run` installs it): `node scripts/test.mjs --old-etcd`.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testContract } from '../../src/log/contract.fixture.ts';
import { openEtcdLog } from '../../src/log/etcd/etcd-log.ts';
import { Keys } from '../../src/log/etcd/keys.ts';
import { entryAfter, readAll, systemPorts } from '../../src/log/log.fixture.ts';
import type { LockLog, StoredEntry } from '../../src/log/port.ts';
import { systemClock } from '../../src/platform/system-runtime.ts';
import { TestEtcd } from '../support/etcd.ts';

const COMMAND = process.env.LEASEHOLD_OLD_ETCD ?? '/usr/bin/etcd';
const VERSION = /^etcd Version: 3\.4\./m;
const LEASE_TTL_SECONDS = 2;

let etcd: TestEtcd;
let prefixes = 0;

beforeAll(async () => {
  etcd = await TestEtcd.start({ command: COMMAND });
}, 60_000);

afterAll(() => etcd?.stop());

const open = (prefix: string): Promise<LockLog> =>
  openEtcdLog({
    endpoints: [etcd.endpoint],
    clock: systemClock,
    prefix,
    leaseTtlSeconds: LEASE_TTL_SECONDS,
    ...systemPorts(),
  });

test('this is the old one', () => {
  expect(execFileSync(COMMAND, ['--version'], { encoding: 'utf8' })).toMatch(VERSION);
});

testContract('etcd 3.4', () => {
  prefixes += 1;
  const prefix = `test-${prefixes}/`;
  return {
    open: () => open(prefix),
    damageChunk: async (manifest, number) => {
      const client = etcd.client();
      const key = new Keys(prefix).chunk(manifest.id, number);
      const [pairs] = await client.read([{ key }]);
      const value = pairs?.[0]?.value as Buffer;
      value[0] = (value[0] ?? 0) ^ 1;
      await client.txn({ success: [{ request_put: { key, value } }] });
      client.close();
    },
    remove: () => undefined,
  };
});

test('two servers take the log from each other while etcd is stopped again and again: nothing acknowledged is lost', async () => {
  const acknowledged: StoredEntry[] = [];
  const until = performance.now() + 20_000;
  const serve = async (serverId: string): Promise<void> => {
    const log = await open('rivals/');
    while (performance.now() < until) {
      try {
        const leadership = await log.campaign(serverId);
        for (let left = 60; left > 0 && performance.now() < until; left--) {
          const entry = entryAfter(await log.head(), { filler: `${serverId} ${left}` });
          if ((await log.append(leadership, entry)) !== 'committed') break;
          acknowledged.push(entry);
        }
        await log.resign(leadership);
      } catch {
        // Out for a moment, or overtaken; an append in doubt may not be followed by another entry on this handle (rule L2).
        await pause(50);
      }
    }
    await log.close();
  };
  const stopping = (async () => {
    while (performance.now() < until) {
      await pause(700);
      etcd.pause();
      await pause(300);
      etcd.resume();
    }
  })();
  await Promise.all([serve('server-a'), serve('server-b'), stopping]);
  const log = await open('rivals/');
  const stored = await readAll(log, 1);
  await log.close();
  const byIndex = new Map(stored.map(({ index, hash }) => [index, hash]));
  expect(acknowledged.length).toBeGreaterThan(50);
  expect(new Set(acknowledged.map(({ index }) => index)).size).toBe(acknowledged.length);
  expect(acknowledged.filter(({ index, hash }) => byIndex.get(index) !== hash)).toEqual([]);
}, 60_000);
