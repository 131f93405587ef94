/**
 * One lock server process: a replica of its group, with the services it offers at its addresses. What it is wired of knows nothing of
 * files, addresses and signals.
 */
import type { RequestListener } from 'node:http';
import type { Server } from '@grpc/grpc-js';
import type { NamespaceConfig } from '../../api/config.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import { openEtcdLog } from '../../log/etcd/etcd-log.ts';
import type { LockLog } from '../../log/port.ts';
import { pause } from '../../platform/pause.ts';
import { labelled, type Runtime } from '../../platform/runtime.ts';
import { adminService } from '../../server/grpc/admin.ts';
import { type AdminServer, startAdminListener, startAdminServer } from '../../server/grpc/admin-server.ts';
import { HealthService } from '../../server/grpc/health.ts';
import { inspectService } from '../../server/grpc/inspect.ts';
import { lockService } from '../../server/grpc/lock-service.ts';
import { loadProtocol, type Protocol } from '../../server/grpc/proto.ts';
import { forPeers, type RelayService } from '../../server/grpc/relay-service.ts';
import type { Served } from '../../server/grpc/served.ts';
import { connectMethod, relayMethod } from '../../server/grpc/streams.ts';
import type { Member } from '../../server/member/member.ts';
import { createHealthApi, type HttpServer, listenHttp } from '../../sidecar/http/index.ts';
import { parseAddress } from '../config-file.ts';
import type { ServerConfig } from './config.ts';
import { bindGrpc, cannotBeHad, closeGrpc, createGrpcServer } from './listen.ts';
import { startReplica } from './replica.ts';
import { loadSecurity, type ServerSecurity } from './security.ts';

const LOCK_SERVICE = 'leasehold.v1.LockService';
const INSPECT = 'leasehold.v1.Inspect';
const ADMIN = 'leasehold.v1.Admin';
const HEALTH_SERVICE = 'grpc.health.v1.Health';
/** Pause between two tries to reach etcd at the start. */
const OPEN_RETRY_MS = 500;

export interface LockServerOptions {
  readonly config: ServerConfig;
  readonly namespace: NamespaceConfig;
  readonly runtime: Runtime;
  /** Resolves a path of the configuration. */
  readonly beside: (path: string) => string;
  /** It cannot go on; the process should say why and end. */
  readonly onHalted: (error: unknown) => void;
  /** A new lineage of its log has begun: it has to be stopped, and another one started in its place. */
  readonly onReplaced: () => void;
}

export interface LockServer {
  readonly member: Member;
  /** Hands over, if it leads, and ends all streams. */
  stop(): Promise<void>;
}

/** Rejects with UnavailableError when an address cannot be had, with UsageError when a file cannot. Waits for etcd as long as that takes. */
export async function startLockServer(options: LockServerOptions): Promise<LockServer> {
  const { config, namespace } = options;
  const group = `${namespace.namespace}/${namespace.name}`;
  const logger = labelled(options.runtime.logger, { namespace: group, server: config.serverId });
  const runtime = { ...options.runtime, logger };
  const protocol = loadProtocol();
  const security = loadSecurity(config, namespace, { runtime, beside: options.beside });
  const log = await openLog(config, security, runtime);
  const health = new HealthService([LOCK_SERVICE]);
  const replica = startReplica({
    ...{ config, namespace, group, runtime, protocol, security, log },
    onRolledBack: () => health.stopServing(),
    onReplaced: options.onReplaced,
    onHalted: options.onHalted,
  });
  const { member, relay, metrics, served, peers } = replica;
  const servers = {
    clients: clientServer(protocol, { runtime, member, health, security }),
    replicas: replicaServer(protocol, { relay, security, passedOn: { ...served, peers, isPassedOn: true } }),
  };
  let http: HttpServer | null = null;
  const admins: AdminServer[] = [];
  const stop = async (): Promise<void> => {
    health.close();
    for (const admin of admins) await admin.close();
    await replica.stop();
    security.close();
    await Promise.all([
      ...Object.values(servers).map((server) => closeGrpc(server, runtime.timers)),
      http?.close(),
    ]);
  };
  try {
    await listen(servers, config, security);
    await serveOperators(config, { security, runtime, served: { ...served, peers }, admins });
    http = await listenHttp({
      listener: statusOr(member, createHealthApi({ runtime, metrics, ready: () => member.halted === null })),
      ...parseAddress(config.listen.health),
      portSetting: 'listen.health',
      logger: runtime.logger,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { member, stop };
}

/** What applications' sidecars connect to. */
function clientServer(
  protocol: Protocol,
  {
    runtime,
    member,
    health,
    security,
  }: { runtime: Runtime; member: Member; health: HealthService; security: ServerSecurity },
): Server {
  const method = connectMethod(protocol);
  const server = createGrpcServer('clients');
  const { frontEnd } = member;
  server.addService(
    { Connect: method.definition },
    lockService({ runtime, method, frontEnd, identify: security.identify }),
  );
  server.addService(protocol.service(HEALTH_SERVICE), health.implementation);
  return server;
}

/** What the other replicas relay, pass on of operators' calls, and ask about this one. */
function replicaServer(
  protocol: Protocol,
  { relay, security, passedOn }: { relay: RelayService; security: ServerSecurity; passedOn: Served },
): Server {
  const server = createGrpcServer('replicas');
  const served = (): readonly Served[] => [passedOn];
  server.addService({ Relay: relayMethod(protocol).definition }, relay.implementation);
  for (const [name, service] of [
    [INSPECT, inspectService(served)],
    [ADMIN, adminService(served)],
  ] as const) {
    server.addService(protocol.service(name), forPeers(service, security.identifyPeer));
  }
  return server;
}

async function listen(
  { clients, replicas }: { readonly clients: Server; readonly replicas: Server },
  { listen }: ServerConfig,
  security: ServerSecurity,
): Promise<void> {
  await bindGrpc(replicas, { setting: 'listen.relay', address: listen.relay }, security.replicas);
  await bindGrpc(clients, { setting: 'listen.clients', address: listen.clients }, security.clients);
}

interface OperatorParts {
  readonly security: ServerSecurity;
  readonly runtime: Runtime;
  readonly served: Served;
  /** What was started is put here. */
  readonly admins: AdminServer[];
}

async function serveOperators(
  { admin, listen }: ServerConfig,
  { security, runtime, served, admins }: OperatorParts,
): Promise<void> {
  const { clock, timers, logger } = runtime;
  const parts = { served: () => [served], timers };
  if (admin.socket !== undefined) admins.push(await startAdminServer({ ...parts, socketPath: admin.socket }));
  const { admin: address } = listen;
  const { admin: credentials } = security;
  if (address === undefined || credentials === null) return;
  const started = startAdminListener({ ...parts, address, credentials, operators: admin, clock, logger });
  const place = { setting: 'listen.admin', address };
  admins.push(await started.catch((error: Error) => Promise.reject(cannotBeHad(place, error))));
}

async function openLog({ etcd }: ServerConfig, security: ServerSecurity, runtime: Runtime): Promise<LockLog> {
  for (;;) {
    try {
      return await openEtcdLog({ ...etcd, ...security.etcd, ...runtime });
    } catch (error) {
      if (!(error instanceof LogUnavailableError)) throw error;
      runtime.logger.warn({ error }, 'etcd does not answer yet');
    }
    await pause(runtime.timers, OPEN_RETRY_MS);
  }
}

/** `GET /status` for people and tools on this machine: who leads, what this replica knows. The rest is the health API's. */
function statusOr(member: Member, others: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url !== '/status') {
      others(request, response);
      return;
    }
    member
      .status()
      .then((status) => {
        // Its account of the group would be of the past.
        if (status.logIndex === null) throw new LogUnavailableError('the log does not answer');
        response.setHeader('content-type', 'application/json').end(JSON.stringify(status));
      })
      .catch((error: unknown) => {
        response.statusCode = 503;
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ code: 'UNAVAILABLE', message: String(error) }));
      });
  };
}
