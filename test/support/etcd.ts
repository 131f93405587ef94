/** A real etcd for tests: one member on loopback with a folder of its own, started, paused and ended by the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ensureEtcd } from '../../scripts/etcd.mjs';
import type { Stored } from '../../src/log/engines.fixture.ts';
import { EtcdClient } from '../../src/log/etcd/client.ts';
import { openEtcdLog } from '../../src/log/etcd/etcd-log.ts';
import { Keys } from '../../src/log/etcd/keys.ts';
import { systemPorts, temporaryDirectory } from '../../src/log/log.fixture.ts';
import { systemClock } from '../../src/platform/system-runtime.ts';

/** Building it takes minutes on a fresh machine; the cache folder keeps it. */
export const ETCD_START_MS_MAX = 15 * 60_000;
const READY_MS_MAX = 30_000;

export class TestEtcd {
  readonly endpoint: string;
  readonly #child: ChildProcess;
  readonly #directory: { readonly path: string; remove(): void };

  private constructor(endpoint: string, child: ChildProcess, directory: { path: string; remove(): void }) {
    this.endpoint = endpoint;
    this.#child = child;
    this.#directory = directory;
  }

  /** `flags`: more of etcd's own. */
  static async start(flags: readonly string[] = []): Promise<TestEtcd> {
    const binary = await ensureEtcd();
    const directory = temporaryDirectory();
    const [client, peer] = [await freePort(), await freePort()];
    const endpoint = `http://127.0.0.1:${client}`;
    const peers = `http://127.0.0.1:${peer}`;
    const args = ['--name=m1', `--data-dir=${directory.path}/data`, '--log-level=error'];
    args.push(`--listen-client-urls=${endpoint}`, `--advertise-client-urls=${endpoint}`);
    args.push(`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`);
    args.push(`--initial-cluster=m1=${peers}`, ...flags);
    const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    const etcd = new TestEtcd(endpoint, child, directory);
    await etcd.#ready();
    return etcd;
  }

  client(options: { readonly callMs?: number } = {}): EtcdClient {
    return new EtcdClient({ endpoints: [this.endpoint], clock: systemClock, ...options });
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
    this.#directory.remove();
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + READY_MS_MAX;
    for (;;) {
      const health = await fetch(`${this.endpoint}/health`).catch(() => undefined);
      if (health?.ok === true) return;
      if (Date.now() > deadline || this.#child.exitCode !== null) throw new Error('etcd did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

let prefixes = 0;

/** A log of its own on this etcd, on which handles are opened. */
export function storedInEtcd(etcd: () => TestEtcd): Stored {
  prefixes += 1;
  const prefix = `test-${prefixes}/`;
  return {
    open: () =>
      openEtcdLog({
        endpoints: [etcd().endpoint],
        clock: systemClock,
        prefix,
        leaseTtlSeconds: 2,
        ...systemPorts(),
      }),
    damageChunk: async (manifest, number) => {
      const client = etcd().client();
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
