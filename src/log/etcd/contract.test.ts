/** The contract of the log over a real etcd. */
import { afterAll, beforeAll } from 'vitest';
import { ETCD_START_MS_MAX, TestEtcd } from '../../../test/support/etcd.ts';
import { systemClock } from '../../platform/system-runtime.ts';
import { testContract } from '../contract.fixture.ts';
import type { Stored } from '../engines.fixture.ts';
import { systemPorts } from '../log.fixture.ts';
import { openEtcdLog } from './etcd-log.ts';
import { Keys } from './keys.ts';

let etcd: TestEtcd;
let prefixes = 0;

beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

function storedInEtcd(): Stored {
  prefixes += 1;
  const prefix = `test-${prefixes}/`;
  return {
    open: () =>
      openEtcdLog({
        endpoints: [etcd.endpoint],
        clock: systemClock,
        prefix,
        leaseTtlSeconds: 2,
        ...systemPorts(),
      }),
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
}

testContract('etcd', storedInEtcd);
