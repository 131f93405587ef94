/** Shared locks, semaphores and re-entrant locks through the client library, against a real `leasehold dev`. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { type Client, createClient, HeldError } from '../../src/client/index.ts';
import { OwnDev } from '../support/dev/own-dev.ts';

const TEST_MS_MAX = 60_000;
const PERMITS = 3;

const MANIFEST = `
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: modes, namespace: test}
spec:
  safety: {class: Efficiency}
  lease: {ttl: 5s}
  modes: [Exclusive, Shared, Semaphore]
  semaphores: [{pattern: "exports/*", permits: ${PERMITS}}]
`;

async function clients(context: TestContext, count: number): Promise<Client[]> {
  const own = new OwnDev(context);
  const workspace = own.workspace();
  workspace.writeText('modes.yaml', MANIFEST);
  const { url } = await own.start(workspace);
  return Array.from({ length: count }, (_, index) => {
    const client = createClient({ url, client: `client-${index}` });
    onTestFinished(() => client.close());
    return client;
  });
}

test(
  'readers share, writers do not; who is in and who waits can be seen',
  async (context) => {
    const [first, second, writer] = await clients(context, 3);
    const shared = { mode: 'shared' } as const;
    await first!.withLock('modes/table', shared, async ({ token }) => {
      await second!.withLock('modes/table', shared, async (other) => {
        expect(other.token).toBeGreaterThan(token);
        const { mode, holders, holderCount } = await first!.describe('modes/table');
        expect({ mode, holderCount }).toEqual({ mode: 'shared', holderCount: 2 });
        expect(holders.map((holder) => holder.client)).toEqual(['client-0', 'client-1']);
        expect(await writer!.tryLock('modes/table')).toBeNull();
      });
    });
    expect((await writer!.tryLock('modes/table'))?.held()).toBe(true);
  },
  TEST_MS_MAX,
);

test(
  'case F10: of a semaphore no more permits are held than there are, also by one client',
  async (context) => {
    const [client] = await clients(context, 1);
    let inside = 0;
    let most = 0;
    const options = { mode: 'semaphore', waitMs: 30_000 } as const;
    const runs = Array.from({ length: 20 }, () =>
      client!.withLock('modes/exports/pdf', options, async () => {
        inside++;
        most = Math.max(most, inside);
        await pause(10);
        inside--;
      }),
    );
    await Promise.all(runs);
    expect(most).toBe(PERMITS);
    await client!.withLock('modes/exports/pdf', { mode: 'semaphore', permits: 2 }, async () => {
      const two = client!.acquire('modes/exports/pdf', { mode: 'semaphore', permits: 2 });
      await expect(two).rejects.toBeInstanceOf(HeldError);
      await (await client!.acquire('modes/exports/pdf', { mode: 'semaphore' })).release();
    });
    expect((await client!.describe('modes/exports/pdf')).holderCount).toBe(0);
  },
  TEST_MS_MAX,
);

test(
  're-entrant holds of one client have one token, and the lock is free with the last of them',
  async (context) => {
    const [client, other] = await clients(context, 2);
    const options = { reentrant: true, owner: 'batch-7' };
    await client!.withLock('modes/a', options, async (outer) => {
      await client!.withLock('modes/a', options, (inner) => expect(inner.token).toBe(outer.token));
      expect(outer.held()).toBe(true);
      expect(await other!.tryLock('modes/a')).toBeNull();
      // Case C06: nobody joins by being the same client alone.
      await expect(client!.acquire('modes/a')).rejects.toBeInstanceOf(HeldError);
      await expect(client!.acquire('modes/a', { ...options, owner: 'batch-8' })).rejects.toBeInstanceOf(
        HeldError,
      );
    });
    expect((await other!.tryLock('modes/a'))?.held()).toBe(true);
  },
  TEST_MS_MAX,
);
