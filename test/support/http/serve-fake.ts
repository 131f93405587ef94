/** The HTTP API over a `FakeSidecar` on a free port, with what tests look at. */
import type { Metrics } from '../../../src/platform/metrics.ts';
import { createMetrics } from '../../../src/platform/prometheus.ts';
import type { Logger, Runtime } from '../../../src/platform/runtime.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import {
  createHttpApi,
  type HttpApi,
  type HttpApiOptions,
  type HttpServer,
  listenHttp,
} from '../../../src/sidecar/http/index.ts';
import { HttpClient } from './client.ts';
import { FakeSidecar } from './fake-sidecar.ts';

export interface ServedFake {
  readonly fake: FakeSidecar;
  readonly api: HttpApi;
  readonly server: HttpServer;
  readonly client: HttpClient;
  readonly metrics: Metrics;
  /** Messages logged as errors. */
  readonly logged: string[];
  close(): Promise<void>;
}

export async function serveFake(options: Partial<HttpApiOptions> = {}): Promise<ServedFake> {
  const logged: string[] = [];
  const runtime: Runtime = {
    ...createSystemRuntime({ logLevel: 'silent' }),
    logger: collecting(logged),
    ...options.runtime,
  };
  const fake = new FakeSidecar(runtime);
  const metrics = createMetrics();
  const api = createHttpApi({ service: fake, metrics, health: true, ...options, runtime });
  const server = await listenHttp({
    listener: api.listener,
    port: 0,
    portSetting: '--port',
    logger: runtime.logger,
  });
  const client = new HttpClient(server.port);
  return {
    fake,
    api,
    server,
    client,
    metrics,
    logged,
    async close() {
      client.close();
      await server.close();
    },
  };
}

function collecting(logged: string[]): Logger {
  const ignore = () => undefined;
  return { debug: ignore, info: ignore, warn: ignore, error: (_fields, message) => logged.push(message) };
}
