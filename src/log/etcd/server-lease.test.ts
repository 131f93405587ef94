/** The keepalives of a lock server's lease, over an etcd that counts streams. */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import { Campaign } from './campaign.ts';
import type { EtcdClient, KeepaliveStream } from './client.ts';
import { Keys } from './keys.ts';
import { ServerLease } from './server-lease.ts';

const TTL_SECONDS = 5;
const HOUR_MS = 3_600_000;

/** `answers`: whether keepalives are answered. */
function etcd(answers: () => boolean) {
  const counts = { opened: 0, open: 0, written: 0 };
  const open = (): Pick<KeepaliveStream, 'write' | 'cancel'> & {
    on(event: string, heard: () => void): void;
  } => {
    counts.opened++;
    counts.open++;
    let onData: () => void = () => undefined;
    return {
      write: () => {
        counts.written++;
        if (answers()) onData();
      },
      on: (event, listener) => {
        if (event === 'data') onData = listener;
      },
      cancel: () => void counts.open--,
    };
  };
  const client = {
    grantLease: () => Promise.resolve('7'),
    openKeepalives: () => Promise.resolve(open()),
    skipMember: () => undefined,
  };
  return { counts, client: client as unknown as EtcdClient };
}

test('case I09: an hour of renewals takes one stream', async () => {
  const runtime = new VirtualRuntime();
  const { counts, client } = etcd(() => true);
  const lease = await ServerLease.grant(client, runtime.timers, TTL_SECONDS);
  await runtime.pass(HOUR_MS);
  expect(counts.written).toBeGreaterThan(HOUR_MS / (TTL_SECONDS * 1_000));
  expect(counts).toMatchObject({ opened: 1, open: 1 });
  lease.close();
  expect(counts.open).toBe(0);
});

test('case I09: a stream that answers nothing is given up before the next is opened', async () => {
  const runtime = new VirtualRuntime();
  const { counts, client } = etcd(() => false);
  const lease = await ServerLease.grant(client, runtime.timers, TTL_SECONDS);
  for (let minute = 0; minute < 60; minute++) {
    await runtime.pass(60_000);
    expect(counts.open).toBeLessThanOrEqual(1);
  }
  expect(counts.opened).toBeGreaterThan(60);
  lease.close();
  expect(counts.open).toBe(0);
});

test('a lease that is granted while its campaign is closed is not kept alive', async () => {
  const runtime = new VirtualRuntime();
  const { counts, client } = etcd(() => true);
  const granted = Promise.withResolvers<string>();
  const closed = Object.assign(client, {
    grantLease: () => granted.promise,
    read: () => Promise.resolve([[], [], []]),
    txn: () => Promise.reject(new LogUnavailableError('the channel is closed')),
  });
  const campaign = new Campaign({
    ...{ client: closed, keys: new Keys('test/'), leaseTtlSeconds: TTL_SECONDS },
    ...{ timers: runtime.timers, random: runtime.random },
  });
  const winning = campaign.win('server-a').catch((error: unknown) => error);
  await runtime.pass(10);
  campaign.close();
  granted.resolve('7');
  expect(await runtime.until(winning, 1_000)).toBeInstanceOf(LogUnavailableError);
  await runtime.pass(HOUR_MS);
  expect(counts).toEqual({ opened: 0, open: 0, written: 0 });
});
