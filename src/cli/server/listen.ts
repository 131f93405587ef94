/** gRPC servers at an address, and their end. */
import { Server, type ServerCredentials } from '@grpc/grpc-js';
import type { Timers } from '../../platform/runtime.ts';
import { WITHOUT_ACCOUNTS } from '../../server/grpc/streams.ts';
import { UnavailableError } from '../errors.ts';

/** Calls still open by then are cut off. */
const CLOSE_WITHIN_MS = 500;
/**
 * One frame of a client: all that one sidecar still waits for, sent again at once. More would let a few streams of a stranger take the
 * memory of this process.
 */
const CLIENT_FRAME_BYTES_MAX = 16 * 1024 * 1024;
/** One frame of another replica: what many clients sent. */
const REPLICA_FRAME_BYTES_MAX = 64 * 1024 * 1024;

export function createGrpcServer(callers: 'clients' | 'replicas'): Server {
  const bytes = callers === 'clients' ? CLIENT_FRAME_BYTES_MAX : REPLICA_FRAME_BYTES_MAX;
  return new Server({ ...WITHOUT_ACCOUNTS, 'grpc.max_receive_message_length': bytes });
}

/** @throws UnavailableError the address cannot be had. */
export function bindGrpc(server: Server, address: string, credentials: ServerCredentials): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error) => {
      if (error === null) resolve();
      else reject(cannotBeHad(address, error));
    });
  });
}

export function cannotBeHad(address: string, cause: Error): UnavailableError {
  return new UnavailableError(`${address} cannot be had: ${cause.message}`, { cause });
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
