/**
 * A TCP proxy on loopback whose faults a test switches: the way to outcomes that stay unknown. What has been accepted from a
 * client goes on to the server; `dropReplies` keeps the answers back, and `cut` ends every connection there is.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class FaultyProxy {
  readonly endpoint: string;
  dropReplies = false;
  /** Bytes of answers that were kept back: proof that the fault was there. */
  droppedBytes = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  static async start(target: string): Promise<FaultyProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port is free');
    const proxy = new FaultyProxy(server, address.port);
    server.on('connection', (client) => proxy.#join(client, connect(Number(port), hostname)));
    return proxy;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #join(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => {
      if (this.dropReplies) this.droppedBytes += bytes.length;
      else client.write(bytes);
    });
  }
}
