/**
 * What a lineage that is over leaves to the next one: holders who may still believe for a while, and tokens that must not come back
 * (rules S10, C12). Works it out from what was granted, not from what the operator's command has planned.
 */
import type { Token } from '../../../src/api/entry.ts';
import type { World } from '../world/world.ts';
import type { Findings } from './findings.ts';

export class LineageWatch {
  /** Lineages that have begun under the eyes of this judge, the first one aside. */
  begun = 0;
  readonly #world: World;
  readonly #findings: Findings;
  readonly #alias: string;
  /** The highest token of the lineages before. */
  #highest: Token = 0;
  #quietUntilMs = 0;
  /** Where the tokens of this lineage begin; Infinity: it has no entry yet. */
  #first: Token = 0;

  constructor(world: World, findings: Findings, alias: string) {
    this.#world = world;
    this.#findings = findings;
    this.#alias = alias;
  }

  /** `leaseMs`: so long somebody may hold on to what he was granted, by the fastest clock. */
  begins({ highest, leaseMs }: { readonly highest: Token; readonly leaseMs: number }): void {
    this.begun++;
    this.#highest = Math.max(this.#highest, highest);
    this.#quietUntilMs = this.#world.nowMs + leaseMs;
    this.#first = Number.POSITIVE_INFINITY;
  }

  /** The first entry of a lineage. */
  tookOver(counter: Token): void {
    if (this.begun > 0) this.#first = counter;
  }

  /** Not of the lineage before, whose sessions had the same numbers. */
  isOfThis(token: Token): boolean {
    return token > this.#first;
  }

  granted(name: string, token: Token): void {
    if (this.begun === 0) return;
    const what = `${this.#alias}/${name}`;
    if (token <= this.#highest) {
      const message = `${what}: token ${token} after ${this.#highest} of the lineage before`;
      this.#findings.add('rule C12', message);
    }
    if (this.#world.nowMs >= this.#quietUntilMs) return;
    const message = `${what} is granted though holders of the lineage before may believe until ${this.#quietUntilMs}`;
    this.#findings.add('rule S10', message);
  }
}
