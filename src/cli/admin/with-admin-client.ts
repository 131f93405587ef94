/** A connection to the admin socket in a data folder, for one command. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { ADMIN_SOCKET } from '../../server/grpc/socket.ts';
import { AdminClient } from '../admin-client.ts';
import { UnavailableError } from '../errors.ts';

/** Throws UnavailableError when nobody serves the folder. */
export async function withAdminClient<T>(
  data: string,
  work: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const path = join(data, ADMIN_SOCKET);
  const nobody = `nobody serves ${data}: start one with "leasehold dev -d ${data} -f ...", or name its folder with --data`;
  if (!existsSync(path)) throw new UnavailableError(`no ${path}; ${nobody}`);
  const client = new AdminClient(path);
  try {
    return await work(client);
  } catch (error) {
    const isRefused = error instanceof Error && 'code' in error && error.code === status.UNAVAILABLE;
    if (isRefused && /ECONNREFUSED|ENOENT/.test(error.message)) {
      throw new UnavailableError(nobody, { cause: error });
    }
    throw error;
  } finally {
    client.close();
  }
}
