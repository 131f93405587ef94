/**
 * The physical limit of a group: the transaction of an append, and nothing else. Two comparisons and two puts, 200 bytes, one
 * at a time, by the same client.
 */
import { Buffer } from 'node:buffer';
import { EtcdClient } from '../src/log/etcd/client.ts';
import { hasValue, isAbsent, kvsOf, put } from '../src/log/etcd/transactions.ts';
import { systemClock, systemTimers } from '../src/platform/system-runtime.ts';
import { closedLoop, type Summary } from './measure.ts';

const ENTRY_BYTES = 200;
const FENCE = Buffer.from('bench/leader');
const HEAD = Buffer.from('bench/head');

export async function fencedPut(etcdEndpoints: readonly string[], seconds: number): Promise<Summary> {
  const client = new EtcdClient({ endpoints: etcdEndpoints, clock: systemClock, timers: systemTimers });
  try {
    await client.txn({ compare: [isAbsent(FENCE)], success: [put(FENCE, Buffer.from('bench'))] });
    const { responses } = await client.txn({
      success: [put(HEAD, Buffer.from('0')), { request_range: { key: FENCE } }],
    });
    const fence = kvsOf(responses[1])[0]?.create_revision ?? '';
    const entry = Buffer.alloc(ENTRY_BYTES, 1);
    return await closedLoop({ workers: 1, seconds }, async (_worker, turn) => {
      const { succeeded } = await client.txn({
        compare: [
          { key: FENCE, target: 'Create', result: 'Equal', create_revision: fence },
          hasValue(HEAD, String(turn)),
        ],
        success: [put(Buffer.from(`bench/log/${turn}`), entry), put(HEAD, Buffer.from(String(turn + 1)))],
        failure: [{ request_range: { key: FENCE } }, { request_range: { key: HEAD } }],
      });
      if (!succeeded) throw new Error('a fenced put has failed');
    });
  } finally {
    client.close();
  }
}
