/** The contract of the log over a real etcd. */
import { afterAll, beforeAll } from 'vitest';
import { ETCD_START_MS_MAX, storedInEtcd, TestEtcd } from '../../../test/support/etcd.ts';
import { testContract } from '../contract.fixture.ts';

let etcd: TestEtcd;

beforeAll(async () => {
  etcd = await TestEtcd.start(['--unsafe-no-fsync']);
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

testContract('etcd', () => storedInEtcd(() => etcd));
