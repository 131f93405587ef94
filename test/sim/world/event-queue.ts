/** What is to happen in virtual time: a binary heap by (time, order of planning), so that equal times have one order too. */

export interface Planned {
  readonly atUs: number;
  readonly order: number;
  /** Null: called off. */
  action: (() => void) | null;
}

export class EventQueue {
  readonly #heap: Planned[] = [];
  #lastOrder = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(atUs: number, action: () => void): Planned {
    const planned = { atUs, order: ++this.#lastOrder, action };
    this.#heap.push(planned);
    this.#rise(this.#heap.length - 1);
    return planned;
  }

  /** The next one that was not called off. */
  pop(): Planned | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return undefined;
      const last = this.#heap.pop() as Planned;
      if (this.#heap.length > 0) {
        this.#heap[0] = last;
        this.#sink();
      }
      if (first.action !== null) return first;
    }
  }

  #rise(from: number): void {
    const heap = this.#heap;
    const item = heap[from] as Planned;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent] as Planned;
      if (isBefore(above, item)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = item;
  }

  #sink(): void {
    const heap = this.#heap;
    const item = heap[0] as Planned;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Planned, heap[child] as Planned)) child++;
      const below = heap[child] as Planned;
      if (isBefore(item, below)) break;
      heap[place] = below;
      place = child;
    }
    heap[place] = item;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);
}
