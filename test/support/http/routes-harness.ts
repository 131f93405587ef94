/** The HTTP API over a service under test, on a free port, with what the suites of the routes do over and over. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { createMetrics } from '../../../src/platform/prometheus.ts';
import type { Runtime } from '../../../src/platform/runtime.ts';
import { createHttpApi, type HttpServer, listenHttp } from '../../../src/sidecar/http/index.ts';
import type { SidecarService } from '../../../src/sidecar/service.ts';
import { HttpClient } from './client.ts';

interface ServiceUnderTest {
  readonly service: SidecarService;
  readonly runtime: Runtime;
  close(): Promise<void>;
}

export type MakeService = () => Promise<ServiceUnderTest>;

const SOON_MS = 5_000;
const POLL_MS = 5;

export class RoutesHarness {
  readonly client: HttpClient;
  readonly server: HttpServer;
  readonly alias: string;
  readonly #stop: () => Promise<void>;

  private constructor(server: HttpServer, alias: string, stop: () => Promise<void>) {
    this.server = server;
    this.client = new HttpClient(server.port);
    this.alias = alias;
    this.#stop = stop;
  }

  static async start(makeService: MakeService): Promise<RoutesHarness> {
    const { service, runtime, close } = await makeService();
    const api = createHttpApi({ service, runtime, metrics: createMetrics(), health: true });
    const { listener } = api;
    const server = await listenHttp({ listener, port: 0, portSetting: '--port', logger: runtime.logger });
    const [alias] = service.aliases();
    if (alias === undefined) throw new Error('the service under test serves no alias');
    return new RoutesHarness(server, alias, async () => {
      api.beginStop();
      await server.close();
      await close();
    });
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.#stop();
  }

  lockPath(rest: string, action = ''): string {
    return `/v1/locks/${encodeURIComponent(`${this.alias}/${rest}`)}${action}`;
  }

  async openSession(name = 'worker'): Promise<string> {
    const fields = { client: name, ttl_s: 15, keepalive: 'app' };
    const { status, body } = await this.client.post('/v1/sessions', fields);
    expect(status, JSON.stringify(body)).toBe(200);
    return String(body.session_id);
  }

  acquire(rest: string, fields: object) {
    return this.client.post(this.lockPath(rest, '/acquire'), fields);
  }

  /** Waits until so many wait for the lock. */
  async waitersOf(rest: string, count: number): Promise<void> {
    await eventually(async () => (await this.client.get(this.lockPath(rest))).body.waiters === count);
  }
}

/** Waits until `isSo`; fails when it takes longer than five seconds. */
export async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + SOON_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('it did not happen within five seconds');
    await pause(POLL_MS);
  }
}
