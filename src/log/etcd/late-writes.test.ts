/** Writes that etcd carries out long after whoever sent them was told that nobody answers (rule L2). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ETCD_START_MS_MAX, TestEtcd } from '../../../test/support/etcd.ts';
import { systemClock } from '../../platform/system-runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import { appendEntries, chunk, readAll, systemPorts, takeSnapshot } from '../log.fixture.ts';
import type { EtcdClient } from './client.ts';
import { openEtcdLog } from './etcd-log.ts';
import { Keys } from './keys.ts';
import { EtcdSnapshots } from './snapshot-store.ts';
import { EtcdTrim } from './trim.ts';

const PREFIX = 'late/';
let etcd: TestEtcd;

beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

/** The next write is not answered, and reaches etcd only when the returned function is called. */
function holdNextWrite(client: EtcdClient): () => Promise<boolean> {
  const txn = client.txn.bind(client);
  const held: (() => Promise<boolean>)[] = [];
  client.txn = (request, withinMs) => {
    if (request.compare === undefined || held.length > 0) return txn(request, withinMs);
    held.push(() => txn(request).then(({ succeeded }) => succeeded));
    return Promise.reject(new LogUnavailableError('no answer'));
  };
  return () => held[0]!();
}

test('a trim that comes after later ones does not set the beginning of the log back', async () => {
  const log = await openEtcdLog({
    endpoints: [etcd.endpoint],
    clock: systemClock,
    prefix: PREFIX,
    leaseTtlSeconds: 60,
    ...systemPorts(),
  });
  const leadership = await log.campaign('server-a');
  const entries = await appendEntries(log, leadership, 12);
  for (const at of [9, 11]) await takeSnapshot(log, leadership, entries[at]!, [chunk('a')]);
  const client = etcd.client();
  const keys = new Keys(PREFIX);
  const trim = new EtcdTrim(client, keys, new EtcdSnapshots(client, keys));
  const land = holdNextWrite(client);
  await expect(trim.step(leadership, 4)).rejects.toThrow(LogUnavailableError);
  for (const upTo of [4, 8]) expect(await trim.step(leadership, upTo)).toBe(false);
  expect(await land()).toBe(false);
  expect(await readAll(log, 9)).toEqual(entries.slice(8));
  await expect(readAll(log, 8)).rejects.toMatchObject({ below: 8 });
  client.close();
  await log.close();
});
