/**
 * Rule L6: what this version has stored in etcd, keys and values as they lie there, is read by every later version. The recording holds
 * entries above a snapshot. `LEASEHOLD_WRITE_GOLDEN=1` records anew: only beside the old recording, when the format is meant to change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { State } from '../../src/core/index.ts';
import { openEtcdLog } from '../../src/log/etcd/etcd-log.ts';
import type { LockLog } from '../../src/log/port.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { Replica } from '../../src/server/member/replica.ts';
import { recover } from '../../src/server/snapshots/recovery.ts';
import { acquireCommand, namespaceConfig, openCommand } from '../support/core.ts';
import { ETCD_START_MS_MAX, TestEtcd } from '../support/etcd.ts';

const FILE = join(import.meta.dirname, 'golden', 'etcd-log-1.json');
const PREFIX = 'leasehold/';
const LOCKS = 12;
const runtime = createSystemRuntime({ logLevel: 'silent' });

interface Recording {
  /** Keys below the prefix as text, values in base64. The leader's key is none of the log's content: it hangs on a lease. */
  readonly stored: readonly (readonly [key: string, value: string])[];
  readonly index: number;
  readonly eventHash: string;
  readonly snapshotIndex: number;
  /** Who holds and who waits. */
  readonly locks: readonly string[];
}

let etcd: TestEtcd;

beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

const open = (): Promise<LockLog> =>
  openEtcdLog({ ...runtime, endpoints: [etcd.endpoint], prefix: PREFIX, leaseTtlSeconds: 2 });

/** In words of their own, so that a later version may write its snapshots otherwise. */
function locksOf({ locks }: State): string[] {
  return [...locks.values()].map(({ name, hold, queue }) => {
    const waiting = [...(queue ?? [])].map(({ record: { request } }) => request.key);
    return `${name}: ${hold?.token} of ${hold?.record.request.key}, behind it ${waiting.join(' ')}`;
  });
}

async function record(): Promise<void> {
  const replica = await Replica.start({
    runtime,
    log: await open(),
    serverId: 'server-a',
    config: namespaceConfig(),
    snapshotDueBytes: 3_000,
    onStopped: () => undefined,
  });
  await replica.submit(openCommand());
  for (let at = 1; at <= LOCKS; at++) {
    const name = `name-${Math.ceil(at / 2)}`;
    const purpose = 'why it is held '.repeat(20);
    await replica.submit(acquireCommand({ session: 1, key: `key-${at}`, name, purpose, waitMs: 60_000 }));
  }
  await replica.stop();
  const log = await open();
  const { state, snapshot } = await recover(log, runtime.logger);
  await log.close();
  const client = etcd.client();
  const [pairs] = await client.read([{ key: Buffer.from(PREFIX), range_end: Buffer.from('leasehold0') }]);
  client.close();
  const recording: Recording = {
    stored: (pairs ?? [])
      .filter(({ key }) => key.toString() !== `${PREFIX}leader`)
      .map(({ key, value }) => [key.toString(), value.toString('base64')] as const),
    index: state.index,
    eventHash: state.eventHash,
    snapshotIndex: snapshot?.index ?? 0,
    locks: locksOf(state),
  };
  writeFileSync(FILE, `${JSON.stringify(recording, null, 1)}\n`);
}

test('rule L6: a log recorded in format 1 is read to the same state, from its snapshot and the entries above', async () => {
  if (process.env.LEASEHOLD_WRITE_GOLDEN === '1') {
    await record();
    const cleared = etcd.client();
    await cleared.txn({
      success: [{ request_delete_range: { key: Buffer.from(PREFIX), range_end: Buffer.from('leasehold0') } }],
    });
    cleared.close();
  }
  const recording = JSON.parse(readFileSync(FILE, 'utf8')) as Recording;
  const client = etcd.client();
  for (const [key, value] of recording.stored) {
    const put = { key: Buffer.from(key), value: Buffer.from(value, 'base64') };
    await client.txn({ success: [{ request_put: put }] });
  }
  client.close();
  const log = await open();
  const { state, snapshot, head } = await recover(log, runtime.logger);
  expect(snapshot?.index).toBe(recording.snapshotIndex);
  expect(recording.snapshotIndex).toBeGreaterThan(0);
  expect(recording.snapshotIndex).toBeLessThan(recording.index);
  expect(head.index).toBe(recording.index);
  expect(state.eventHash).toBe(recording.eventHash);
  expect(locksOf(state)).toEqual(recording.locks);
  expect(state.holds).toBe(LOCKS / 2);
  expect(state.waits).toBe(LOCKS / 2);
  await log.close();
});
