/**
 * One direction of a stream: frames travel for a while and keep their order; a stall holds them up, nothing is lost.
 */
import type { Random } from '../../support/random.ts';
import { US_PER_MS, type World } from './world.ts';

export type Direction = 'toServer' | 'toClient';

/** The link that a pipe is part of. */
export interface PipeHost {
  readonly world: World;
  readonly random: Random;
  isStalled(direction: Direction): boolean;
  drawDelayUs(): number;
}

export interface DelayMs {
  readonly from: number;
  readonly to: number;
}

/** Longest time after which the side of a broken stream notices, ms: a reset comes at once, a lost peer only by time-out. */
const NOTICE_MS_MAX = 20_000;
const RESET_MS_MAX = 5;
/** Between two frames that come out of a stall. */
const SPACING_US_MAX = 2_000;

/** Mostly near the short end, sometimes long. */
export function drawDelayUs(random: Random, { from, to }: DelayMs): number {
  const share = random.int(1_000) / 1_000;
  return Math.ceil((from + (to - from) * share ** 4) * US_PER_MS);
}

export function drawNoticeMs(random: Random, silently: boolean): number {
  if (silently) return random.between(1_000, NOTICE_MS_MAX);
  return random.chance(0.8) ? random.between(0, RESET_MS_MAX) : random.between(0, 2_000);
}

/** Frames on their way in one direction, in order. */
export class Pipe {
  readonly #host: PipeHost;
  readonly #held: (() => void)[] = [];
  #lastUs = 0;
  #isStalled: boolean;

  constructor(host: PipeHost, direction: Direction) {
    this.#host = host;
    this.#isStalled = host.isStalled(direction);
  }

  stall(): void {
    this.#isStalled = true;
  }

  /** Calls `arrive` when what is sent now comes out at the other end. */
  carry(arrive: () => void): void {
    const { world } = this.#host;
    this.#lastUs = Math.max(this.#lastUs + 1, world.nowUs + this.#host.drawDelayUs());
    world.at(this.#lastUs, () => {
      if (this.#isStalled || this.#held.length > 0) this.#held.push(arrive);
      else arrive();
    });
  }

  /** Lets go what a stall held up, one after the other; what comes meanwhile waits behind it. */
  flow(): void {
    this.#isStalled = false;
    const next = (): void => {
      if (this.#isStalled) return;
      this.#held.shift()?.();
      if (this.#held.length > 0) world.at(world.nowUs + random.int(SPACING_US_MAX), next);
    };
    const { world, random } = this.#host;
    next();
  }
}
