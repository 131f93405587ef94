/** Two lock servers on one etcd: the second takes over when the first is gone, and nothing that was granted is lost. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CommandResult } from '../../src/api/entry.ts';
import { openEtcdLog } from '../../src/log/etcd/etcd-log.ts';
import type { LockLog } from '../../src/log/port.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import type { StopReason } from '../../src/server/leader/leader-options.ts';
import { Replica } from '../../src/server/member/replica.ts';
import { acquireCommand, namespaceConfig, openCommand } from '../support/core.ts';
import { ETCD_START_MS_MAX, TestEtcd } from '../support/etcd.ts';

const LEASE_TTL_SECONDS = 2;
const runtime = createSystemRuntime({ logLevel: 'silent' });

let etcd: TestEtcd;

beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);

afterAll(() => etcd?.stop());

interface Server {
  readonly log: LockLog;
  readonly replica: Promise<Replica>;
  /** Why it stopped by itself. */
  readonly stopped: Promise<StopReason>;
}

async function startServer(serverId: string): Promise<Server> {
  const log = await openEtcdLog({
    endpoints: [etcd.endpoint],
    leaseTtlSeconds: LEASE_TTL_SECONDS,
    ...runtime,
  });
  const { promise: stopped, resolve: onStopped } = Promise.withResolvers<StopReason>();
  const config = namespaceConfig();
  const replica = Replica.start({ runtime, log, serverId, config, beatWhenIdle: true, onStopped });
  return { log, replica, stopped };
}

function tokenOf(result: CommandResult): number {
  if (result.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(result)}`);
  return result.token;
}

test('a standby takes over a dead leader with every grant it gave', async () => {
  const a = await startServer('server-a');
  const first = await a.replica;
  const opened = await first.submit(openCommand());
  if (opened.type !== 'opened') throw new Error('no session');
  const tokens: number[] = [];
  for (let at = 0; at < 50; at += 1) {
    tokens.push(
      tokenOf(
        await first.submit(
          acquireCommand({ session: opened.session, name: `lock-${at}`, key: `lock-${at}` }),
        ),
      ),
    );
  }

  const b = await startServer('server-b');
  // The first server is cut off from its log, without a word: as if its machine were gone.
  await a.log.close();
  const second = await b.replica;
  expect(second.status()).toMatchObject({ leading: true, held: 50 });
  expect((await a.stopped).kind).toBe('failed');

  for (const [at, token] of tokens.entries()) {
    const read = await second.read({ type: 'getLock', name: `lock-${at}` });
    expect(read).toMatchObject({ lock: { holders: [{ token, session: opened.session }] } });
  }
  const fresh = await second.submit(openCommand());
  if (fresh.type !== 'opened') throw new Error('no session');
  expect(fresh.session).toBeGreaterThan(opened.session);
  expect(
    await second.submit(acquireCommand({ session: fresh.session, name: 'lock-0', key: 'lock-0' })),
  ).toMatchObject({ type: 'refused', code: 'HELD' });
  expect(
    tokenOf(await second.submit(acquireCommand({ session: fresh.session, name: 'another', key: 'another' }))),
  ).toBeGreaterThan(Math.max(...tokens));
  await second.stop();
}, 60_000);

test('a leader that comes back from a pause longer than its lease publishes nothing more', async () => {
  const a = await startServer('server-c');
  const first = await a.replica;
  const b = await startServer('server-d');
  const client = etcd.client();
  const [leaders] = await client.read([{ key: Buffer.from('leasehold/leader') }]);
  await client.revokeLease(leaders?.[0]?.lease ?? '');
  client.close();
  const second = await b.replica;
  expect(second.status().leading).toBe(true);
  await expect(first.submit(openCommand())).rejects.toThrow();
  expect(await a.stopped).toEqual({ kind: 'deposed' });
  await a.log.close();
  await second.stop();
}, 60_000);
