/** Commands that go to etcd themselves, while its nearest member is stopped: it takes connections and says nothing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { leasehold } from '../support/cli.ts';
import { ETCD_START_MS_MAX, TestEtcd } from '../support/etcd.ts';

/** It was 33 s. */
const ANSWERED_MS_MAX = 20_000;

test(
  'group new-lineage says which member it waited for, and asks the next',
  async () => {
    const etcd = await TestEtcd.start();
    const stopped = createServer(() => undefined);
    await new Promise<void>((listening) => stopped.listen(0, '127.0.0.1', listening));
    const silent = `http://127.0.0.1:${(stopped.address() as AddressInfo).port}`;
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-silent-'));
    const file = join(folder, 'server.yaml');
    const config = {
      serverId: 'a',
      namespace: resolve('config/samples/jobs.yaml'),
      etcd: { endpoints: [silent, etcd.endpoint] },
      listen: { clients: '127.0.0.1:1', relay: '127.0.0.1:2', health: '127.0.0.1:3' },
      peers: { a: '127.0.0.1:2' },
    };
    writeFileSync(file, JSON.stringify(config));
    try {
      const sinceMs = performance.now();
      const shown = await leasehold(['group', 'new-lineage', '--config', file]);
      expect(performance.now() - sinceMs).toBeLessThan(ANSWERED_MS_MAX);
      expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing was changed.') });
      expect(shown.stderr).toBe(`the etcd member ${silent} does not answer; asking the next one\n`);
    } finally {
      stopped.close();
      await etcd.stop();
      rmSync(folder, { recursive: true });
    }
  },
  ETCD_START_MS_MAX,
);
