/**
 * The network between one client process and the servers of one group. Besides what can befall every line, what is connected now may
 * stand still while a new stream gets through.
 */
import type { ClientFrame, ClientHandler, ClientStream, ServerFrame } from '../../../src/api/wire.ts';
import type { FrontEnd } from '../../../src/server/front-end/front-end.ts';
import { Line, type LineOptions } from './line.ts';
import { type Direction, Pipe } from './pipe.ts';
import type { Life } from './process.ts';
import type { World } from './world.ts';

/** A front end that accepts streams, and the life of the process it belongs to. */
export interface Listener {
  readonly life: Life;
  readonly frontEnd: Pick<FrontEnd, 'connect'>;
}

/** Sees every frame where it is sent and where it arrives. `stream` is unique within the run. */
export interface FrameWatch {
  clientSent(stream: number, frame: ClientFrame): void;
  /** It lies in the server's socket; a stopped server has not read it yet. */
  serverReached(stream: number, frame: ClientFrame, server: Life): void;
  serverReceived(stream: number, frame: ClientFrame, server: Life): void;
  serverSent(stream: number, frame: ServerFrame): void;
  clientReceived(stream: number, frame: ServerFrame): void;
  /** No frame of this stream arrives at the client any more. */
  ended(stream: number): void;
}

/** Nobody looks. */
export const UNWATCHED: FrameWatch = {
  clientSent: () => undefined,
  serverReached: () => undefined,
  serverReceived: () => undefined,
  serverSent: () => undefined,
  clientReceived: () => undefined,
  ended: () => undefined,
};

export interface LinkOptions extends LineOptions {
  readonly watch: FrameWatch;
  /** Where a new stream arrives; null: nobody listens. */
  readonly listener: () => Listener | null;
  /** Shared by links whose streams must not have the same numbers; left out: this link's own. */
  readonly numbers?: { last: number };
}

/** One process serves the developer alone, as `leasehold dev` does: identities come with the cluster. */
const DEVELOPER = { account: 'dev/developer', podUid: '' };

export class Link extends Line<VirtualStream, LinkOptions> {
  readonly #numbers: { last: number };

  constructor(world: World, options: LinkOptions) {
    super(world, options, world.random(`link ${options.name}`));
    this.#numbers = options.numbers ?? { last: 0 };
  }

  /** The sidecar's way to the group; `life`: whose code calls it. */
  connect(life: Life, handler: ClientHandler): ClientStream {
    return this.add(new VirtualStream(this, life, handler, ++this.#numbers.last));
  }

  /** The same inside one process: nothing travels, nothing gets lost. */
  connectWithin({ frontEnd, life }: Listener, handler: ClientHandler): ClientStream {
    const { watch } = this.options;
    const number = ++this.#numbers.last;
    const stream = frontEnd.connect(DEVELOPER, {
      onFrame: (frame) => {
        watch.serverSent(number, frame);
        watch.clientReceived(number, frame);
        handler.onFrame(frame);
      },
      onClose: () => {
        watch.ended(number);
        handler.onClose();
      },
    });
    return {
      send: (frame) => {
        watch.clientSent(number, frame);
        watch.serverReached(number, frame, life);
        watch.serverReceived(number, frame, life);
        stream.send(frame);
      },
      close: () => {
        watch.ended(number);
        stream.close();
      },
    };
  }

  /** What is connected now stands still, while a new stream would get through. */
  stallConnected(direction: Direction): void {
    for (const stream of this.streams) stream.stall(direction);
    this.world.trace?.(`${this.options.name} stalls ${direction} where it is connected`);
  }
}

class VirtualStream implements ClientStream {
  readonly clientLife: Life;
  readonly #link: Link;
  readonly #handler: ClientHandler;
  readonly #number: number;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  #serverLife: Life | null = null;
  /** Null also while a paused server has not accepted it yet. */
  #atServer: ClientStream | null = null;
  /** What the client still hears of it. */
  #isClientOpen = true;
  #isBroken = false;

  constructor(link: Link, clientLife: Life, handler: ClientHandler, number: number) {
    this.#link = link;
    this.clientLife = clientLife;
    this.#handler = handler;
    this.#number = number;
    this.#toServer = new Pipe(link, 'toServer');
    this.#toClient = new Pipe(link, 'toClient');
    this.#toServer.carry(() => this.#arriveAtServer());
  }

  get serverLife(): Life | null {
    return this.#serverLife;
  }

  send(frame: ClientFrame): void {
    if (this.clientLife.isOver) return;
    const { watch } = this.#link.options;
    watch.clientSent(this.#number, frame);
    this.#toServer.carry(() => {
      if (!this.#isBroken && this.#serverLife !== null)
        watch.serverReached(this.#number, frame, this.#serverLife);
      this.#onServer((stream, life) => {
        watch.serverReceived(this.#number, frame, life);
        stream.send(frame);
      });
    });
  }

  close(): void {
    if (!this.#isClientOpen) return;
    this.#clientIsDone();
    this.#toServer.carry(() =>
      this.#onServer((stream) => {
        this.#end();
        stream.close();
      }),
    );
  }

  stall(direction: Direction): void {
    if (direction === 'toServer') this.#toServer.stall();
    else this.#toClient.stall();
  }

  flow(direction: Direction): void {
    if (direction === 'toServer') this.#toServer.flow();
    else this.#toClient.flow();
  }

  break({ silently }: { readonly silently: boolean }): void {
    if (this.#isBroken) return;
    this.#end();
    const { world } = this.#link;
    world.afterMs(this.#link.drawNoticeMs(silently), () => this.#closeAtClient());
    const life = this.#serverLife;
    if (life === null) return;
    world.afterMs(this.#link.drawNoticeMs(silently), () =>
      life.process.enter(life, 'message', () => this.#atServer?.close()),
    );
  }

  #arriveAtServer(): void {
    if (this.#isBroken) return;
    const listener = this.#link.isCut ? null : this.#link.options.listener();
    if (listener === null) {
      this.break({ silently: this.#link.isCut && this.#link.random.chance(0.3) });
      return;
    }
    const { life, frontEnd } = listener;
    this.#serverLife = life;
    life.process.enter(life, 'message', () => {
      if (this.#isBroken) return;
      this.#atServer = frontEnd.connect(DEVELOPER, {
        onFrame: (frame) => this.#sendToClient(frame),
        onClose: () =>
          this.#toClient.carry(() => {
            this.#end();
            this.#closeAtClient();
          }),
      });
    });
  }

  /** Behind what waits at the server, so also behind the stream's own arrival. */
  #onServer(act: (stream: ClientStream, life: Life) => void): void {
    const life = this.#serverLife;
    if (this.#isBroken || life === null) return;
    life.process.enter(life, 'message', () => {
      if (!this.#isBroken && this.#atServer !== null) act(this.#atServer, life);
    });
  }

  #sendToClient(frame: ServerFrame): void {
    this.#link.options.watch.serverSent(this.#number, frame);
    this.#toClient.carry(() => {
      if (this.#isBroken) return;
      this.clientLife.process.enter(this.clientLife, 'message', () => {
        if (!this.#isClientOpen) return;
        this.#link.options.watch.clientReceived(this.#number, frame);
        this.#handler.onFrame(frame);
      });
    });
  }

  #closeAtClient(): void {
    this.clientLife.process.enter(this.clientLife, 'message', () => {
      if (!this.#isClientOpen) return;
      this.#clientIsDone();
      this.#handler.onClose();
    });
  }

  #clientIsDone(): void {
    this.#isClientOpen = false;
    this.#link.options.watch.ended(this.#number);
  }

  #end(): void {
    this.#isBroken = true;
    this.#link.forget(this);
  }
}
