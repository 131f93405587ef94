/**
 * The network between two replicas of a group, for the streams that the front end of one has to the leader in the other.
 * What happens at the leader's end is what the relay service does: a front end's newer stream
 * closes its older one, unread (rule S4), and who is accepted hears of the leader, every other time it ticks at least (rule S7).
 */
import type { LeaderFrame, RelayFrame } from '../../../src/api/wire.ts';
import type { LeaderStream, LeaderStreamHandler } from '../../../src/server/front-end/leader-link.ts';
import type { Leader } from '../../../src/server/leader/leader.ts';
import type { FrontEndLink } from '../../../src/server/leader/outbox.ts';
import { Line, type LineOptions } from './line.ts';
import { type Direction, Pipe } from './pipe.ts';
import type { Life } from './process.ts';
import type { World } from './world.ts';

const PING_MS = 200;

/** The replica that is called. */
export interface RelayPeer {
  readonly life: Life;
  /** Null: it does not lead. */
  readonly leader: () => Leader | null;
}

/** Sees what arrives at a leader and what it says, on streams of other replicas. */
export interface RelayWatch {
  accepted(stream: object, leader: Life): void;
  /** The leader has done with it. */
  left(stream: object): void;
  /** It lies in the socket. */
  reached(frame: RelayFrame): void;
  received(stream: object, frame: RelayFrame, leader: Life): void;
  sent(stream: object, frame: LeaderFrame): void;
}

export interface RelayLinkOptions extends LineOptions {
  readonly peer: () => RelayPeer | null;
  readonly watch: RelayWatch;
}

export class RelayLink extends Line<RelayStream, RelayLinkOptions> {
  /** Broken streams of which the leader has not been told yet. */
  readonly #unnoticed = new Set<RelayStream>();

  constructor(world: World, options: RelayLinkOptions) {
    super(world, options, world.random(`relay ${options.name}`));
  }

  dial(life: Life, handler: LeaderStreamHandler): LeaderStream {
    return this.add(new RelayStream(this, life, handler));
  }

  /** The replica at the other end leads no more. */
  deposed(life: Life): void {
    for (const stream of [...this.streams]) if (stream.serverLife === life) stream.refuse();
  }

  unnoticed(stream: RelayStream): void {
    this.#unnoticed.add(stream);
  }

  noticed(stream: RelayStream): void {
    this.#unnoticed.delete(stream);
  }

  /** A newer stream has arrived: older ones are closed, unread. */
  superseded(newer: RelayStream): void {
    for (const stream of [...this.#unnoticed]) stream.leave();
    for (const stream of [...this.streams]) if (stream !== newer && stream.isAccepted) stream.refuse();
  }
}

class RelayStream implements LeaderStream, FrontEndLink {
  readonly clientLife: Life;
  readonly #link: RelayLink;
  readonly #handler: LeaderStreamHandler;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  #serverLife: Life | null = null;
  #leader: Leader | null = null;
  #isClientOpen = true;
  #isBroken = false;
  #hasLeft = false;
  /** The leader has sent something since the last tick. */
  #hasSpoken = false;

  constructor(link: RelayLink, life: Life, handler: LeaderStreamHandler) {
    this.#link = link;
    this.clientLife = life;
    this.#handler = handler;
    this.#toServer = new Pipe(link, 'toServer');
    this.#toClient = new Pipe(link, 'toClient');
    this.#toServer.carry(() => this.#arrive());
  }

  get serverLife(): Life | null {
    return this.#serverLife;
  }

  get isAccepted(): boolean {
    return this.#leader !== null;
  }

  /** Of either end: a relay frame from the front end, a leader's frame from the leader. */
  send(frame: RelayFrame | LeaderFrame): void {
    if ('position' in frame) this.#sendToClient(frame);
    else this.#sendToServer(frame);
  }

  close(): void {
    if (!this.#isClientOpen) return;
    this.#isClientOpen = false;
    this.#toServer.carry(() => this.#onServer(() => this.#end()));
  }

  stall(direction: Direction): void {
    (direction === 'toServer' ? this.#toServer : this.#toClient).stall();
  }

  flow(direction: Direction): void {
    (direction === 'toServer' ? this.#toServer : this.#toClient).flow();
  }

  break({ silently }: { readonly silently: boolean }): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const { world } = this.#link;
    this.#link.forget(this);
    world.afterMs(this.#link.drawNoticeMs(silently), () => this.#closeAtClient(false));
    if (this.#leader !== null) this.#link.unnoticed(this);
    world.afterMs(this.#link.drawNoticeMs(silently), () => {
      const life = this.#serverLife;
      if (life !== null) life.process.enter(life, 'message', () => this.leave());
    });
  }

  /** The leader's end closes it and says why: the front end knows that the replica lives. */
  refuse(): void {
    if (this.#isBroken) return;
    this.#end();
    this.#toClient.carry(() => this.#closeAtClient(true));
  }

  #arrive(): void {
    if (this.#isBroken) return;
    const peer = this.#link.isCut ? null : this.#link.options.peer();
    if (peer === null) {
      this.break({ silently: this.#link.isCut && this.#link.random.chance(0.5) });
      return;
    }
    this.#serverLife = peer.life;
    peer.life.process.enter(peer.life, 'message', () => {
      if (this.#isBroken) return;
      const leader = peer.leader();
      if (leader === null) this.refuse();
      else this.#accept(leader, peer.life);
    });
  }

  #accept(leader: Leader, life: Life): void {
    this.#link.superseded(this);
    this.#leader = leader;
    this.#link.options.watch.accepted(this, life);
    leader.connect(this);
    const tick = (): void => {
      if (this.#isBroken) return;
      this.committed();
      this.#hasSpoken = false;
      life.runtime.timers.after(PING_MS, tick);
    };
    tick();
  }

  /** Says where the leader is, unless it has just said something. */
  committed(): void {
    if (this.#hasSpoken || this.#leader === null) return;
    this.#sendToClient({ position: this.#leader.position, groups: [] });
  }

  #sendToServer(frame: RelayFrame): void {
    if (this.clientLife.isOver || !this.#isClientOpen) return;
    const { watch } = this.#link.options;
    this.#toServer.carry(() => {
      if (!this.#isBroken && this.#leader !== null) watch.reached(frame);
      this.#onServer((leader, life) => {
        watch.received(this, frame, life);
        leader.receive(this, frame);
      });
    });
  }

  #sendToClient(frame: LeaderFrame): void {
    if (this.#isBroken) return;
    this.#hasSpoken = true;
    this.#link.options.watch.sent(this, frame);
    this.#toClient.carry(() => {
      if (this.#isBroken) return;
      this.clientLife.process.enter(this.clientLife, 'message', () => {
        if (this.#isClientOpen) this.#handler.onFrame(frame);
      });
    });
  }

  /** Behind what waits at the leader, so also behind the stream's own arrival. */
  #onServer(act: (leader: Leader, life: Life) => void): void {
    const life = this.#serverLife;
    if (this.#isBroken || life === null) return;
    life.process.enter(life, 'message', () => {
      if (!this.#isBroken && this.#leader !== null) act(this.#leader, life);
    });
  }

  #closeAtClient(isAnswered: boolean): void {
    this.clientLife.process.enter(this.clientLife, 'message', () => {
      if (!this.#isClientOpen) return;
      this.#isClientOpen = false;
      this.#handler.onClose(isAnswered);
    });
  }

  #end(): void {
    this.#isBroken = true;
    this.#link.forget(this);
    this.leave();
  }

  /** The leader has done with it. */
  leave(): void {
    this.#link.noticed(this);
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#link.options.watch.left(this);
    this.#leader?.disconnect(this);
    this.#leader = null;
  }
}
