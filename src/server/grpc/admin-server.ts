/**
 * The services for operators and tools: Inspect, History, Admin, and gRPC's health. On a Unix socket, which the file system keeps to one
 * account; or at an address, for callers whose certificates name them (operators.ts). They are kept off HTTP and off the port of the
 * clients, because an application must not be able to break another one's lock.
 */
import { Server, type ServerCredentials } from '@grpc/grpc-js';
import type { Clock, Logger, Timers } from '../../platform/runtime.ts';
import { adminService } from './admin.ts';
import { openDoor } from './bounded-listener.ts';
import { untilCertificateEnds } from './certificate-end.ts';
import { HealthService } from './health.ts';
import { HistoryService } from './history.ts';
import { inspectService } from './inspect.ts';
import { admitOperators, type Operators } from './operators.ts';
import { loadProtocol } from './proto.ts';
import type { ServedNow } from './served.ts';
import { bindSocket } from './socket.ts';
import { ASKED_WHETHER_THERE } from './streams.ts';

/** Calls still open by then are cut off when the server stops. */
const CLOSE_WITHIN_MS = 500;
/** A configuration with all the consumers that a manifest may name. */
const REQUEST_BYTES_MAX = 2 * 1024 * 1024;
/** Of one connection from elsewhere: histories are followed for hours, other calls are short. */
const CALLS_OPEN_MAX = 100;
/** From elsewhere: people and tools, a connection each. More than can be in a handshake at once, so that silent strangers do not fill them all. */
const CONNECTIONS_MAX = 200;
const CONNECTIONS_PER_SECOND_MAX = 50;

const INSPECT = 'leasehold.v1.Inspect';
const HISTORY = 'leasehold.v1.History';
const ADMIN = 'leasehold.v1.Admin';
const HEALTH = 'grpc.health.v1.Health';

/** The services as they are added to a server. */
interface AdminServices {
  addTo(server: Server): void;
  close(): void;
}

function adminServices(served: ServedNow, timers: Timers, protocol = loadProtocol()): AdminServices {
  const history = new HistoryService(served, timers);
  const health = new HealthService([INSPECT, HISTORY, ADMIN]);
  return {
    addTo: (server) => {
      server.addService(protocol.service(INSPECT), inspectService(served));
      server.addService(protocol.service(HISTORY), history.implementation);
      server.addService(protocol.service(ADMIN), adminService(served));
      server.addService(protocol.service(HEALTH), health.implementation);
    },
    close: () => {
      health.close();
      history.close();
    },
  };
}

export interface AdminServerOptions {
  readonly socketPath: string;
  readonly served: ServedNow;
  readonly timers: Timers;
}

export interface AdminServer {
  close(): Promise<void>;
}

/** Rejects with a message for people when the socket cannot be had. */
export async function startAdminServer({
  socketPath,
  served,
  timers,
}: AdminServerOptions): Promise<AdminServer> {
  const services = adminServices(served, timers);
  const server = new Server({ 'grpc.max_receive_message_length': REQUEST_BYTES_MAX });
  services.addTo(server);
  const socket = await bindSocket(server, socketPath).catch((error: unknown) => {
    server.forceShutdown();
    throw error;
  });
  return {
    close: async () => {
      socket.remove();
      services.close();
      await shutDown(server, timers);
    },
  };
}

export interface AdminListenerOptions {
  /** `host:port`. */
  readonly address: string;
  /** They must ask for the certificates of those who call. */
  readonly credentials: ServerCredentials;
  /** Whose calls are served. */
  readonly operators: Operators;
  readonly served: ServedNow;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** Rejects with the system's own error when the address cannot be had. */
export async function startAdminListener(options: AdminListenerOptions): Promise<AdminServer> {
  const { address, credentials, operators, served, clock, timers, logger } = options;
  const services = adminServices(served, timers);
  const server = new Server({
    'grpc.max_receive_message_length': REQUEST_BYTES_MAX,
    'grpc.max_concurrent_streams': CALLS_OPEN_MAX,
    ...ASKED_WHETHER_THERE,
    interceptors: [untilCertificateEnds({ clock, timers }), admitOperators(operators, logger)],
  });
  services.addTo(server);
  const bounds = { connectionsMax: CONNECTIONS_MAX, connectionsPerSecondMax: CONNECTIONS_PER_SECOND_MAX };
  const door = await openDoor(server, { address, credentials, ...bounds, clock, logger }).catch(
    (error: unknown) => {
      server.forceShutdown();
      throw error;
    },
  );
  return {
    close: async () => {
      door.close();
      services.close();
      await shutDown(server, timers);
    },
  };
}

function shutDown(server: Server, timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = timers.after(CLOSE_WITHIN_MS, () => server.forceShutdown());
    server.tryShutdown(() => {
      cutOff.cancel();
      resolve();
    });
  });
}
