/** Binding a gRPC server to its address. */
import type { Server, ServerCredentials } from '@grpc/grpc-js';
import { quietGrpcLog } from '../../platform/grpc-log.ts';

/** Rejects with the library's own error when the address cannot be had; nothing is written about it. */
export function bindQuietly(server: Server, address: string, credentials: ServerCredentials): Promise<void> {
  quietGrpcLog();
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error) => (error === null ? resolve() : reject(error)));
  });
}
