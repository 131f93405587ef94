/** gRPC servers at an address, and their end. */
import { Server, type ServerCredentials } from '@grpc/grpc-js';
import type { Timers } from '../../platform/runtime.ts';
import { bindQuietly } from '../../server/grpc/bind.ts';
import { ASKED_WHETHER_THERE, WITHOUT_ACCOUNTS } from '../../server/grpc/streams.ts';
import { UnavailableError } from '../errors.ts';

/** Calls still open by then are cut off. */
const CLOSE_WITHIN_MS = 500;
/**
 * One frame of a client: all that one sidecar still waits for, sent again at once. More would let a few streams of a stranger take the
 * memory of this process.
 */
const CLIENT_FRAME_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Calls of one connection at once. A sidecar has one stream, two while it proves anew who it is; without a bound one connection could open
 * thousands within a turn of the event loop, each of which costs more than a frame, before any had shown a token.
 */
const CLIENT_CALLS_MAX = 100;
/** One frame of another replica: what many clients sent. */
const REPLICA_FRAME_BYTES_MAX = 64 * 1024 * 1024;

export function createGrpcServer(callers: 'clients' | 'replicas', asked = ASKED_WHETHER_THERE): Server {
  const bytes = callers === 'clients' ? CLIENT_FRAME_BYTES_MAX : REPLICA_FRAME_BYTES_MAX;
  return new Server({
    ...WITHOUT_ACCOUNTS,
    'grpc.max_receive_message_length': bytes,
    ...(callers === 'clients' ? { ...asked, 'grpc.max_concurrent_streams': CLIENT_CALLS_MAX } : {}),
  });
}

/** An address to listen at, and the key of the configuration that says so. */
interface Place {
  readonly setting: string;
  readonly address: string;
}

/** @throws UnavailableError the address cannot be had. */
export function bindGrpc(server: Server, place: Place, credentials: ServerCredentials): Promise<void> {
  return bindQuietly(server, place.address, credentials).catch((error: Error) => {
    throw cannotBeHad(place, error);
  });
}

/** `cause`: gRPC's own error, which has the code of the system's only in its text. */
export function cannotBeHad({ setting, address }: Place, cause: Error): UnavailableError {
  const why = cause.message.includes('EADDRINUSE')
    ? 'is taken by another program. Stop that one, or choose another address'
    : `cannot be had: ${cause.message}`;
  return new UnavailableError(`${setting}: ${address} ${why}`, { cause });
}

export function closeGrpc(server: Server, timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = timers.after(CLOSE_WITHIN_MS, () => server.forceShutdown());
    server.tryShutdown(() => {
      cutOff.cancel();
      resolve();
    });
  });
}
