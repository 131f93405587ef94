/**
 * A fast generator of random numbers from a seed (sfc32). The big random runs draw hundreds of millions of numbers, which is
 * too many for fast-check; the same seed gives the same run on every machine.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** `seed`: a non-negative safe integer. */
  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x100000000) | 0;
    this.#c = 0x9e3779b9 | 0;
    for (let i = 0; i < 12; i++) this.#next();
  }

  /** 0 to `below` - 1; `below` at most 2^32. */
  int(below: number): number {
    return Math.floor((this.#next() / 0x100000000) * below);
  }

  /** `from` to `to`, both possible. */
  between(from: number, to: number): number {
    return from + this.int(to - from + 1);
  }

  chance(probability: number): boolean {
    return this.#next() < probability * 0x100000000;
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new Error('nothing to pick from');
    return from[this.int(from.length)] as T;
  }

  /** An index of `weights`, each as often as its weight says. */
  weighted(weights: readonly number[]): number {
    let sum = 0;
    for (const weight of weights) sum += weight;
    let left = (this.#next() / 0x100000000) * sum;
    for (const [index, weight] of weights.entries()) {
      left -= weight;
      if (left < 0) return index;
    }
    return weights.findLastIndex((weight) => weight > 0);
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }
}
