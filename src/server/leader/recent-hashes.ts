/** The hashes of the newest entries, so that most marks are compared without asking the log. */
import { ok as assert } from 'node:assert';

/** Over an hour of beats; under load a minute. About 2 MB. */
const KEPT = 16_384;

export class RecentHashes {
  readonly #hashes: string[] = [];
  #last = 0;

  /** Entries come one after the other; after a gap the older ones are forgotten. */
  add(index: number, hash: string): void {
    assert(index > this.#last, 'hashes are remembered in order');
    if (index !== this.#last + 1) this.#hashes.length = 0;
    this.#last = index;
    this.#hashes[index % KEPT] = hash;
  }

  /** Undefined: not known here. */
  at(index: number): string | undefined {
    return index > this.#last - KEPT && index <= this.#last ? this.#hashes[index % KEPT] : undefined;
  }
}
