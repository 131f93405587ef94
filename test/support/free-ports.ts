/** Ports of loopback that nobody has: for addresses that must be written down before anybody listens there. */
import { createServer } from 'node:net';

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** All different, since all are open at once before any is given back. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(
    servers.map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', done))),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
