/** gRPC servers at an address, and their end. */
import { Server, type ServerCredentials } from '@grpc/grpc-js';
import type { Timers } from '../../platform/runtime.ts';
import { UnavailableError } from '../errors.ts';

/** Calls still open by then are cut off. */
const CLOSE_WITHIN_MS = 500;
/** Of a client: the list of a session with very many locks is the largest that there is. */
const REQUEST_BYTES_MAX = 64 * 1024 * 1024;

export function createGrpcServer(): Server {
  return new Server({ 'grpc.max_receive_message_length': REQUEST_BYTES_MAX });
}

/** @throws UnavailableError the address cannot be had. */
export function bindGrpc(server: Server, address: string, credentials: ServerCredentials): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error) => {
      if (error === null) resolve();
      else reject(new UnavailableError(`${address} cannot be had: ${error.message}`, { cause: error }));
    });
  });
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
