/**
 * What two processes reach each other by: streams whose frames travel for a while and keep their order. It can be cut (streams break,
 * each side notices in its own time), and stand still in one direction or both (nothing is lost, it comes late). Which streams
 * these are, and what is at their ends, is for who extends it.
 */
import type { Random } from '../../support/random.ts';
import { type DelayMs, type Direction, drawDelayUs, drawNoticeMs, type PipeHost } from './pipe.ts';
import type { Life } from './process.ts';
import type { World } from './world.ts';

export interface LineOptions {
  readonly name: string;
  readonly delayMs: DelayMs;
}

interface LineStream {
  readonly clientLife: Life;
  /** The process at the other end, once the stream has reached it. */
  readonly serverLife: Life | null;
  stall(direction: Direction): void;
  flow(direction: Direction): void;
  /** Nothing arrives any more on either side; each side notices in its own time. */
  break(how: { readonly silently: boolean }): void;
}

const RECOVERY_MS_MAX = 60;

export abstract class Line<Stream extends LineStream, Options extends LineOptions> implements PipeHost {
  readonly world: World;
  readonly options: Options;
  readonly random: Random;
  protected readonly streams = new Set<Stream>();
  readonly #stalled: Record<Direction, boolean> = { toServer: false, toClient: false };
  #isCut = false;

  constructor(world: World, options: Options, random: Random) {
    this.world = world;
    this.options = options;
    this.random = random;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  isStalled(direction: Direction): boolean {
    return this.#stalled[direction];
  }

  /** Streams break and none can be made until `mend`. `silently`: nobody is told, as when a cable is pulled. */
  cut({ silently }: { readonly silently: boolean }): void {
    this.#isCut = true;
    this.world.trace?.(`${this.options.name} is cut${silently ? ' silently' : ''}`);
    for (const stream of [...this.streams]) stream.break({ silently });
  }

  mend(): void {
    this.#isCut = false;
    this.world.trace?.(`${this.options.name} is whole again`);
  }

  stall(direction: Direction): void {
    this.#stalled[direction] = true;
    for (const stream of this.streams) stream.stall(direction);
    this.world.trace?.(`${this.options.name} stalls ${direction}`);
  }

  unstall(direction: Direction): void {
    this.#stalled[direction] = false;
    this.world.trace?.(`${this.options.name} flows ${direction} again`);
    // Each connection recovers in its own time, so an older one may come after a newer one (rule S3).
    for (const stream of this.streams) {
      this.world.afterMs(this.random.int(RECOVERY_MS_MAX), () => stream.flow(direction));
    }
  }

  /** The process at either end of some streams is gone. */
  lifeEnded(life: Life): void {
    for (const stream of [...this.streams]) {
      if (stream.clientLife === life || stream.serverLife === life) stream.break({ silently: false });
    }
  }

  forget(stream: Stream): void {
    this.streams.delete(stream);
  }

  drawDelayUs(): number {
    return drawDelayUs(this.random, this.options.delayMs);
  }

  drawNoticeMs(silently: boolean): number {
    return drawNoticeMs(this.random, silently);
  }

  protected add(stream: Stream): Stream {
    this.streams.add(stream);
    return stream;
  }
}
