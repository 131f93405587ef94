/** One real etcd with an empty data folder, on free ports of loopback. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureEtcd } from '../../../scripts/etcd.mjs';
import { ServerProcess } from './servers.ts';

const START_MS_MAX = 20_000;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export class Etcd {
  readonly endpoint: string;
  readonly #folder: string;
  readonly #server: ServerProcess;

  private constructor(endpoint: string, folder: string, server: ServerProcess) {
    this.endpoint = endpoint;
    this.#folder = folder;
    this.#server = server;
  }

  static async start(): Promise<Etcd> {
    const command = await ensureEtcd();
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-etcd-'));
    const [client, peer] = await Promise.all([freePort(), freePort()]);
    const endpoint = `http://127.0.0.1:${client}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    const args = [
      '--name',
      'e',
      '--data-dir',
      join(folder, 'data'),
      '--log-level',
      'error',
      '--unsafe-no-fsync',
    ];
    args.push('--listen-client-urls', endpoint, '--advertise-client-urls', endpoint);
    args.push('--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl);
    args.push('--initial-cluster', `e=${peerUrl}`);
    const server = new ServerProcess({ command, args, cwd: folder, stopSignal: 'SIGTERM' });
    await server.until(async () => (await fetch(`${endpoint}/health`)).ok, START_MS_MAX);
    return new Etcd(endpoint, folder, server);
  }

  /** The value of a key, null if it is missing. */
  async get(key: string): Promise<string | null> {
    const response = await fetch(`${this.endpoint}/v3/kv/range`, {
      method: 'POST',
      body: JSON.stringify({ key: Buffer.from(key).toString('base64') }),
    });
    const answer = (await response.json()) as { kvs?: { value?: string }[] };
    const value = answer.kvs?.[0]?.value;
    return answer.kvs === undefined ? null : Buffer.from(value ?? '', 'base64').toString('utf8');
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
