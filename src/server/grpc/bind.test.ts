/** An address that cannot be had is told once, by the program. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test, vi } from 'vitest';
import { bindQuietly } from './bind.ts';

test('an address that is taken is an error, and no line of the library on standard error', async () => {
  const written = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => written.mockRestore());
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  const binding = bindQuietly(server, address, ServerCredentials.createInsecure());
  await expect(binding).rejects.toThrow('EADDRINUSE');
  expect(written.mock.calls).toEqual([]);
});
