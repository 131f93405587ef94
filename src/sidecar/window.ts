/**
 * How much of something may be under way at a time; what comes beyond that waits its turn. So a burst of one session's acquires
 * does not run into the group's limit of outcomes that it has not acknowledged (rule C5).
 */
import { assert } from '../core/index.ts';

export class Window {
  readonly #size: number;
  readonly #waiting = new Set<() => void>();
  #underWay = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /**
   * Calls `start` at once, or in its turn when there is room. To be left, by calling what it returns, when that is over or not
   * wanted any more; leaving twice is fine.
   */
  enter(start: () => void): () => void {
    let isIn = false;
    const begin = (): void => {
      isIn = true;
      this.#underWay++;
      assert(this.#underWay <= this.#size, 'more is under way than there is room for');
      start();
    };
    if (this.#underWay < this.#size) begin();
    else this.#waiting.add(begin);
    return () => {
      if (this.#waiting.delete(begin) || !isIn) return;
      isIn = false;
      this.#underWay--;
      this.#next();
    };
  }

  #next(): void {
    const [begin] = this.#waiting;
    if (begin === undefined || this.#underWay >= this.#size) return;
    this.#waiting.delete(begin);
    begin();
  }
}
