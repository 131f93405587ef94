/**
 * A TCP proxy on loopback whose faults a test switches: the way to outcomes that stay unknown, to partitions of one direction, to slow and
 * half-open connections. Faults hold for connections that are there and for those that come; `source` tells clients of one listener apart.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { DROP, type Flow, FlowPipe, PASS } from './faulty-flow.ts';

export interface LinkFault {
  /** From the client to the server. */
  readonly requests: Flow;
  readonly replies: Flow;
}

export const NO_FAULT: LinkFault = { requests: PASS, replies: PASS };

export interface ProxyOptions {
  /** Name of whoever connects; left out: all are one. */
  readonly source?: (socket: Socket) => string;
}

interface Connection {
  readonly source: string;
  readonly client: Socket;
  readonly server: Socket;
  readonly requests: FlowPipe;
  readonly replies: FlowPipe;
  isHalfOpen: boolean;
}

export class FaultyProxy {
  readonly endpoint: string;
  readonly port: number;
  readonly #server: Server;
  readonly #options: ProxyOptions;
  readonly #faults = new Map<string, LinkFault>();
  readonly #connections = new Set<Connection>();
  readonly #hindered = new Map<string, number>();

  private constructor(server: Server, port: number, options: ProxyOptions) {
    this.#server = server;
    this.#options = options;
    this.port = port;
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  /** `target`: a URL or `host:port`. */
  static async start(target: string, options: ProxyOptions = {}): Promise<FaultyProxy> {
    const { hostname, port } = new URL(target.includes('://') ? target : `tcp://${target}`);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port is free');
    const proxy = new FaultyProxy(server, address.port, options);
    server.on('connection', (client) => proxy.#join(client, connect(Number(port), hostname)));
    return proxy;
  }

  /** Keeps the answers back: what was asked for is done, and nobody hears of it. */
  set dropReplies(isOn: boolean) {
    this.set(isOn ? { requests: PASS, replies: DROP } : NO_FAULT);
  }

  /** Bytes of answers that were kept back: proof that the fault was there. */
  get droppedBytes(): number {
    return this.hinderedBytes();
  }

  /** Without `source`: for all. */
  set(fault: LinkFault, source = ''): void {
    if (source === '') this.#faults.clear();
    this.#faults.set(source, fault);
    for (const { source: from, requests, replies } of [...this.#connections]) {
      if (source !== '' && from !== source) continue;
      requests.set(fault.requests);
      replies.set(fault.replies);
    }
  }

  /** The server's ends break, the clients' stay open and are never answered, until `cut`. Returns how many there were. */
  halfOpen(source = ''): number {
    const hit = this.#of(source).filter(({ isHalfOpen }) => !isHalfOpen);
    for (const connection of hit) {
      connection.isHalfOpen = true;
      connection.server.destroy();
    }
    return hit.length;
  }

  /** Ends every connection there is. Returns how many there were. */
  cut(source = ''): number {
    const hit = this.#of(source);
    for (const { client, server } of hit) for (const socket of [client, server]) socket.destroy();
    return hit.length;
  }

  /** Bytes so far that a fault has held, slowed or dropped. */
  hinderedBytes(source = ''): number {
    const ended = [...this.#hindered].filter(([from]) => source === '' || from === source);
    const open = this.#of(source).map(
      ({ requests, replies }) => requests.hinderedBytes + replies.hinderedBytes,
    );
    return [...ended.map(([, bytes]) => bytes), ...open].reduce((sum, bytes) => sum + bytes, 0);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #of(source: string): Connection[] {
    return [...this.#connections].filter(({ source: from }) => source === '' || from === source);
  }

  #join(client: Socket, server: Socket): void {
    const source = this.#options.source?.(client) ?? '';
    const fault = this.#faults.get(source) ?? this.#faults.get('') ?? NO_FAULT;
    for (const socket of [client, server]) {
      socket.setNoDelay();
      socket.on('error', () => socket.destroy());
    }
    const connection: Connection = {
      source,
      client,
      server,
      requests: new FlowPipe(client, server, fault.requests),
      replies: new FlowPipe(server, client, fault.replies),
      isHalfOpen: false,
    };
    // A half-open connection has lost its server and does not say so.
    server.prependListener('close', () => {
      if (connection.isHalfOpen) connection.replies.set(DROP);
    });
    this.#connections.add(connection);
    const forget = (): void => {
      if (!client.destroyed || !server.destroyed || !this.#connections.delete(connection)) return;
      const { requests, replies } = connection;
      const before = this.#hindered.get(source) ?? 0;
      this.#hindered.set(source, before + requests.hinderedBytes + replies.hinderedBytes);
    };
    client.on('close', forget);
    server.on('close', forget);
  }
}
