/**
 * The network between one client process and the servers of one group: streams whose frames travel for a while and keep
 * their order. What can go wrong: a cut (streams break, each side notices in its own time), and a stall of one direction or
 * both (nothing is lost, it comes late).
 */
import type { ClientFrame, ServerFrame } from '../../../src/api/wire.ts';
import type { ClientHandler, ClientStream, FrontEnd } from '../../../src/server/front-end.ts';
import type { Random } from '../../support/random.ts';
import { DEVELOPER } from './identity.ts';
import type { Life } from './process.ts';
import { US_PER_MS, type World } from './world.ts';

/** A front end that accepts streams, and the life of the process it belongs to. */
export interface Listener {
  readonly life: Life;
  readonly frontEnd: Pick<FrontEnd, 'connect'>;
}

/** Sees every frame where it is sent and where it arrives. `stream` is unique within the run. */
export interface FrameWatch {
  clientSent(stream: number, frame: ClientFrame): void;
  serverReceived(stream: number, frame: ClientFrame): void;
  serverSent(stream: number, frame: ServerFrame): void;
  clientReceived(stream: number, frame: ServerFrame): void;
  /** No frame of this stream arrives at the client any more. */
  ended(stream: number): void;
}

export type Direction = 'toServer' | 'toClient';

export interface LinkOptions {
  readonly name: string;
  readonly watch: FrameWatch;
  /** Where a new stream arrives; null: nobody listens. */
  readonly listener: () => Listener | null;
  readonly delayMs: { readonly from: number; readonly to: number };
}

/** Longest time after which the side of a broken stream notices, ms: a reset comes at once, a lost peer only by time-out. */
const NOTICE_MS_MAX = 20_000;
const REFUSAL_MS_MAX = 5;

let lastStream = 0;

export class Link {
  readonly world: World;
  readonly options: LinkOptions;
  readonly random: Random;
  readonly #streams = new Set<VirtualStream>();
  readonly #stalled: Record<Direction, boolean> = { toServer: false, toClient: false };
  #isCut = false;

  constructor(world: World, options: LinkOptions) {
    this.world = world;
    this.options = options;
    this.random = world.random(`link ${options.name}`);
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  isStalled(direction: Direction): boolean {
    return this.#stalled[direction];
  }

  /** The sidecar's way to the group; `life`: whose code calls it. */
  connect(life: Life, handler: ClientHandler): ClientStream {
    const stream = new VirtualStream(this, life, handler, ++lastStream);
    this.#streams.add(stream);
    return stream;
  }

  /** Streams break and none can be made until `mend`. `silently`: nobody is told, as when a cable is pulled. */
  cut({ silently }: { readonly silently: boolean }): void {
    this.#isCut = true;
    this.world.trace?.(`${this.options.name} is cut${silently ? ' silently' : ''}`);
    for (const stream of [...this.#streams]) stream.break({ silently });
  }

  mend(): void {
    this.#isCut = false;
    this.world.trace?.(`${this.options.name} is whole again`);
  }

  stall(direction: Direction): void {
    this.#stalled[direction] = true;
    this.world.trace?.(`${this.options.name} stalls ${direction}`);
  }

  unstall(direction: Direction): void {
    this.#stalled[direction] = false;
    this.world.trace?.(`${this.options.name} flows ${direction} again`);
    for (const stream of this.#streams) stream.flow(direction);
  }

  /** The client process, or a server process, is gone. */
  lifeEnded(life: Life): void {
    for (const stream of [...this.#streams]) {
      if (stream.clientLife === life || stream.serverLife === life) stream.break({ silently: false });
    }
  }

  forget(stream: VirtualStream): void {
    this.#streams.delete(stream);
  }

  drawDelayUs(): number {
    const { from, to } = this.options.delayMs;
    // Mostly near the short end, sometimes long.
    const share = this.random.int(1_000) / 1_000;
    return Math.ceil((from + (to - from) * share ** 4) * US_PER_MS);
  }

  drawNoticeMs(silently: boolean): number {
    if (silently) return this.random.between(1_000, NOTICE_MS_MAX);
    return this.random.chance(0.8) ? this.random.between(0, REFUSAL_MS_MAX) : this.random.between(0, 2_000);
  }
}

/** Frames on their way in one direction, in order. */
class Pipe {
  readonly #link: Link;
  readonly #direction: Direction;
  readonly #held: (() => void)[] = [];
  #lastUs = 0;

  constructor(link: Link, direction: Direction) {
    this.#link = link;
    this.#direction = direction;
  }

  send(arrive: () => void): void {
    const { world } = this.#link;
    this.#lastUs = Math.max(this.#lastUs + 1, world.nowUs + this.#link.drawDelayUs());
    world.at(this.#lastUs, () => {
      if (this.#held.length > 0 || this.#link.isStalled(this.#direction)) this.#held.push(arrive);
      else arrive();
    });
  }

  /** Lets go what a stall held up. */
  flow(): void {
    for (const arrive of this.#held.splice(0)) this.send(arrive);
  }
}

class VirtualStream implements ClientStream {
  readonly clientLife: Life;
  readonly #link: Link;
  readonly #handler: ClientHandler;
  readonly #number: number;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  #server: { readonly life: Life; readonly stream: ClientStream } | null = null;
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
    this.#toServer.send(() => this.#arriveAtServer());
  }

  get serverLife(): Life | null {
    return this.#server?.life ?? null;
  }

  send(frame: ClientFrame): void {
    if (this.clientLife.isOver) return;
    this.#link.options.watch.clientSent(this.#number, frame);
    this.#toServer.send(() => this.#atServer((stream) => {
      this.#link.options.watch.serverReceived(this.#number, frame);
      stream.send(frame);
    }));
  }

  close(): void {
    if (!this.#isClientOpen) return;
    this.#clientIsDone();
    this.#toServer.send(() => this.#closeAtServer());
  }

  flow(direction: Direction): void {
    if (direction === 'toServer') this.#toServer.flow();
    else this.#toClient.flow();
  }

  /** Nothing arrives any more on either side; each side notices in its own time. */
  break({ silently }: { readonly silently: boolean }): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#link.forget(this);
    const { world } = this.#link;
    world.afterMs(this.#link.drawNoticeMs(silently), () => this.#closeAtClient());
    const server = this.#server;
    if (server === null) return;
    world.afterMs(this.#link.drawNoticeMs(silently), () =>
      server.life.process.enter(server.life, 'message', () => server.stream.close()),
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
    life.process.enter(life, 'message', () => {
      if (this.#isBroken) return;
      const stream = frontEnd.connect(DEVELOPER, {
        onFrame: (frame) => this.#sendToClient(frame),
        onClose: () => this.#toClient.send(() => this.#closeAtClient()),
      });
      this.#server = { life, stream };
    });
  }

  #atServer(act: (stream: ClientStream) => void): void {
    if (this.#isBroken) return;
    const server = this.#server;
    // The stream may still wait for a paused server to accept it; what follows waits behind it.
    const life = server?.life ?? this.#link.options.listener()?.life;
    if (life === undefined) return;
    life.process.enter(life, 'message', () => {
      if (!this.#isBroken && this.#server !== null) act(this.#server.stream);
    });
  }

  #closeAtServer(): void {
    this.#atServer((stream) => {
      this.#isBroken = true;
      this.#link.forget(this);
      stream.close();
    });
  }

  #sendToClient(frame: ServerFrame): void {
    this.#link.options.watch.serverSent(this.#number, frame);
    this.#toClient.send(() => {
      if (this.#isBroken || !this.#isClientOpen) return;
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
}
