/**
 * The door of a gRPC server that strangers can knock at: so many connections, and so many new ones a second. A handshake costs this process
 * 1 to 2 ms before anything is known of the caller; a thousand at once held the leader's loop so long that its leadership moved. Who is too
 * many is closed before the handshake, which costs next to nothing.
 */
import { createServer, type ListenOptions, type Socket } from 'node:net';
import type { Server, ServerCredentials } from '@grpc/grpc-js';
import type { Clock, Logger } from '../../platform/runtime.ts';
import { RateLimiter } from '../front-end/rate-limiter.ts';

const TELL_EVERY_MS = 60_000;

export interface DoorOptions {
  /** `host:port`, a host of IPv6 in brackets. */
  readonly address: string;
  readonly credentials: ServerCredentials;
  /** Open at once, those whose handshake is under way included. */
  readonly connectionsMax: number;
  /** New ones, with a burst of one second's worth. */
  readonly connectionsPerSecondMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Door {
  /** Nobody else comes in; whoever is in stays. */
  close(): void;
}

/** Rejects with the system's own error when the address cannot be had. */
export async function openDoor(server: Server, options: DoorOptions): Promise<Door> {
  const { credentials, connectionsMax, connectionsPerSecondMax, clock } = options;
  const injector = server.createConnectionInjector(credentials);
  const rate = new RateLimiter(clock.monotonicMs());
  const refused = new RefusalLog(options);
  const door = createServer((socket: Socket) => {
    const waitMs = rate.take(connectionsPerSecondMax, clock.monotonicMs());
    if (waitMs === 0) {
      injector.injectConnection(socket);
      return;
    }
    refused.add({
      reason: `${connectionsPerSecondMax} new connections a second`,
      peer: socket.remoteAddress,
    });
    socket.resetAndDestroy();
  });
  door.maxConnections = connectionsMax;
  door.on('drop', (peer) => {
    refused.add({ reason: `${connectionsMax} open connections`, peer: peer?.remoteAddress });
  });
  await new Promise<void>((resolve, reject) => {
    door.once('error', reject);
    door.listen(placeOf(options.address), () => {
      door.off('error', reject);
      // What can go wrong from here on is one connection that could not be accepted.
      door.on('error', (error) =>
        options.logger.warn({ error }, 'a connection of an operator could not be accepted'),
      );
      resolve();
    });
  });
  return { close: () => void door.close() };
}

function placeOf(address: string): ListenOptions {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}

/** Tells of the first one, and then once a minute how many there were. */
class RefusalLog {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #untold = 0;

  constructor({ clock, logger }: Pick<DoorOptions, 'clock' | 'logger'>) {
    this.#clock = clock;
    this.#logger = logger;
  }

  add({ reason, peer }: { readonly reason: string; readonly peer: string | undefined }): void {
    this.#untold++;
    const now = this.#clock.monotonicMs();
    if (now - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#logger.warn({ reason, peer, count: this.#untold }, 'connections of operators are refused');
    this.#toldAtMs = now;
    this.#untold = 0;
  }
}
