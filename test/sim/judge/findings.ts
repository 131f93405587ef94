/** What a run finds wrong, in the order of finding. */
import type { World } from '../world/world.ts';

export interface Finding {
  /** A property of the checker (src/history), or one of the simulator's own. */
  readonly property: string;
  readonly message: string;
  readonly atMs: number;
}

const FINDINGS_MAX = 20;

export class Findings {
  readonly all: Finding[] = [];
  readonly #world: World;
  #only: string | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  /** From now on nothing else counts: what the other judges know is of a past that is gone. */
  judgeOnly(property: string): void {
    this.#only = property;
  }

  /** What is judged from now on is known again. */
  judgeAll(): void {
    this.#only = null;
  }

  /** The run ends with the first one: what follows it is mostly its consequence. */
  add(property: string, message: string): void {
    if (this.#only !== null && property !== this.#only) return;
    if (this.all.length < FINDINGS_MAX) this.all.push({ property, message, atMs: this.#world.nowMs });
    this.#world.trace?.(`FOUND ${property}: ${message}`);
    this.#world.stop();
  }
}
