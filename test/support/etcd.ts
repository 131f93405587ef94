/** A real etcd for tests: one member on loopback with an empty folder of its own, started, paused and ended by the test. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureEtcd } from '../../scripts/etcd.mjs';
import { EtcdClient } from '../../src/log/etcd/client.ts';
import { systemClock, systemTimers } from '../../src/platform/system-runtime.ts';
import { ServerProcess } from './server-process.ts';

/** Building it takes minutes on a fresh machine; the cache folder keeps it. */
export const ETCD_START_MS_MAX = 15 * 60_000;
const READY_MS_MAX = 30_000;

export interface TestEtcdOptions {
  readonly flags?: readonly string[];
  readonly command?: string;
}

export class TestEtcd {
  readonly endpoint: string;
  readonly #folder: string;
  readonly #server: ServerProcess;

  private constructor(endpoint: string, folder: string, server: ServerProcess) {
    this.endpoint = endpoint;
    this.#folder = folder;
    this.#server = server;
  }

  /** `command`: another etcd than the one that is built here. */
  static async start({ flags = [], command: other }: TestEtcdOptions = {}): Promise<TestEtcd> {
    const command = other ?? (await ensureEtcd());
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-etcd-'));
    const endpoint = await freeUrl();
    const peers = await freeUrl();
    // Nothing here loses power, so nothing is synced.
    const args = [
      '--name=m1',
      `--data-dir=${join(folder, 'data')}`,
      '--log-level=error',
      '--unsafe-no-fsync',
    ];
    args.push(`--listen-client-urls=${endpoint}`, `--advertise-client-urls=${endpoint}`);
    args.push(`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`);
    args.push(`--initial-cluster=m1=${peers}`);
    args.push(...flags);
    const server = new ServerProcess({ command, args, cwd: folder, stopSignal: 'SIGKILL' });
    await server.until(async () => (await fetch(`${endpoint}/health`)).ok, READY_MS_MAX);
    return new TestEtcd(endpoint, folder, server);
  }

  /** To be closed by the test. */
  client(): EtcdClient {
    return new EtcdClient({ endpoints: [this.endpoint], clock: systemClock, timers: systemTimers });
  }

  /** The value of a key, null if it is missing. */
  async get(key: string): Promise<string | null> {
    const client = this.client();
    const [pairs] = await client.read([{ key: Buffer.from(key) }]);
    client.close();
    return pairs?.[0]?.value.toString() ?? null;
  }

  pause(): void {
    this.#server.standStill();
  }

  resume(): void {
    this.#server.signal('SIGCONT');
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function freeUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return `http://127.0.0.1:${address.port}`;
}
