/** One sidecar process: the lock API on localhost, over the lock groups of its configuration. */
import { join } from 'node:path';
import { parseDuration } from '../../api/duration.ts';
import { lockDirectory } from '../../log/embedded/directory-lock.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createMetrics } from '../../platform/prometheus.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { loadProtocol } from '../../server/grpc/proto.ts';
import { type ConnectMethod, connectMethod } from '../../server/grpc/streams.ts';
import { grpcConnect } from '../../sidecar/grpc-connect.ts';
import { createHealthApi, createHttpApi, listenHttp } from '../../sidecar/http/index.ts';
import type { SidecarService } from '../../sidecar/service.ts';
import { ShardedService, shardAlias } from '../../sidecar/sharded-service.ts';
import { Sidecar } from '../../sidecar/sidecar.ts';
import { FileStateStore } from '../../sidecar/state-file.ts';
import { bucketsIn } from '../bucket-ranges.ts';
import { parseAddress } from '../config-file.ts';
import { usableFolder } from '../folders.ts';
import { groupsOf, type SidecarConfig } from './config.ts';
import { loadProof, type SidecarProof } from './proof.ts';

export interface SidecarServer {
  readonly url: string;
  /** Ends nothing: sessions go on in the next process, or expire. */
  stop(): Promise<void>;
}

/** `data`: its folder; `beside` resolves other paths. Rejects with a message for people when that, a file or a port cannot be had. */
export async function startSidecar(
  config: SidecarConfig,
  {
    runtime,
    data,
    beside,
  }: { readonly runtime: Runtime; readonly data: string; readonly beside: (path: string) => string },
): Promise<SidecarServer> {
  usableFolder('data', data);
  const lock = lockDirectory(data);
  const stops: (() => Promise<void> | void)[] = [() => lock.release()];
  const stop = async (): Promise<void> => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    const { ca, token } = config;
    const proof = loadProof(
      {
        ca: ca === undefined ? undefined : beside(ca),
        token: token === undefined ? undefined : beside(token),
      },
      runtime,
    );
    stops.push(() => proof.close());
    const store = new FileStateStore(join(data, 'sidecar.jsonl'));
    stops.push(() => store.close());
    if (store.damaged > 0) {
      const { damaged: count } = store;
      runtime.logger.warn({ count }, 'lines of the state file cannot be read; sessions they kept are over');
    }
    const sidecar = new Sidecar({ runtime, store });
    stops.push(() => sidecar.stop());
    const metrics = createMetrics({ processMetrics: true });
    const method = connectMethod(loadProtocol());
    for (const namespace of config.namespaces) {
      stops.push(...addNamespace(sidecar, namespace, { runtime, metrics, method, proof }));
    }
    proof.onToken(() => sidecar.renewProof());
    sidecar.restore();
    const url = await serveHttp(config, {
      runtime,
      service: shardedOver(sidecar, config, runtime),
      problems: () => sidecar.problems(),
      metrics,
      stops,
    });
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface NamespaceParts {
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  readonly method: ConnectMethod;
  readonly proof: SidecarProof;
}

/** Returns how to end the metrics of its groups. */
function addNamespace(
  sidecar: Sidecar,
  namespace: SidecarConfig['namespaces'][number],
  { runtime, metrics, method, proof }: NamespaceParts,
): (() => void)[] {
  const { ttl, maxHold } = namespace;
  const defaults = { ttlMs: parseDuration(ttl) ?? 0, maxHoldMs: parseDuration(maxHold) ?? 0 };
  return groupsOf(namespace).map(({ name, endpoints, serverName }) => {
    const alias = name === null ? namespace.alias : shardAlias(namespace.alias, name);
    const sidecarMetrics = metrics.sidecar(alias);
    sidecar.addNamespace({
      alias,
      connect: grpcConnect({
        method,
        runtime,
        endpoints,
        dial: (endpoint) => proof.dial(endpoint, serverName),
        metadata: proof.metadata,
      }),
      metrics: sidecarMetrics,
      defaults: () => defaults,
    });
    return sidecarMetrics.observe(() => sidecar.figures(alias));
  });
}

/** Namespaces of several groups look like one. */
function shardedOver(sidecar: Sidecar, { namespaces }: SidecarConfig, runtime: Runtime): SidecarService {
  const shards = namespaces.flatMap((namespace) =>
    groupsOf(namespace).flatMap(({ name, buckets }) =>
      name === null ? [] : [{ alias: namespace.alias, group: name, serves: bucketsIn(buckets) }],
    ),
  );
  return shards.length === 0 ? sidecar : new ShardedService(sidecar, runtime, shards);
}

interface HttpParts {
  readonly runtime: Runtime;
  readonly service: SidecarService;
  readonly problems: () => readonly string[];
  readonly metrics: Metrics;
  readonly stops: (() => Promise<void> | void)[];
}

async function serveHttp(
  { port, health }: SidecarConfig,
  { runtime, service, problems, metrics, stops }: HttpParts,
): Promise<string> {
  const { logger } = runtime;
  if (health !== undefined) {
    const probes = await listenHttp({
      listener: createHealthApi({ runtime, metrics, ready: () => true, problems }),
      ...parseAddress(health),
      portSetting: 'health',
      logger,
    });
    stops.push(() => probes.close());
  }
  const api = createHttpApi({ service, runtime, metrics, problems, health: health === undefined });
  const server = await listenHttp({ listener: api.listener, port, portSetting: 'port', logger });
  stops.push(() => {
    api.beginStop();
    return server.close();
  });
  return server.url;
}
