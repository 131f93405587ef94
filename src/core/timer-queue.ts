/**
 * Timers of the state machine, ordered by (due, sequence): a binary heap whose members know their place, so that a
 * release takes its max-hold timer out at once. Leaving dead timers to lapse would keep a day of releases in memory.
 */
import { assert } from './assert.ts';

/** Something that falls due at a group time; `heapIndex` -1 = not set. Only the queue writes these fields. */
export interface Due {
  due: number;
  sequence: number;
  heapIndex: number;
}

export class TimerQueue<TimerNode extends Due> {
  readonly #heap: TimerNode[] = [];
  /** Sequence of the last timer set. Public, because a snapshot must carry it. */
  sequence = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The node due first, or undefined. */
  first(): TimerNode | undefined {
    return this.#heap[0];
  }

  /** In no particular order; for snapshots. */
  nodes(): readonly TimerNode[] {
    return this.#heap;
  }

  set(node: TimerNode, due: number): void {
    assert(node.heapIndex === -1, 'a timer is set while it is set already');
    assert(Number.isSafeInteger(due) && due >= 0, 'a timer is due at no valid time');
    node.due = due;
    node.sequence = ++this.sequence;
    this.#place(node, this.#heap.length);
    this.#up(node);
  }

  /** Puts a node back with the due time and sequence it carries; for loading a snapshot. */
  restore(node: TimerNode): void {
    assert(node.heapIndex === -1, 'a timer is restored twice');
    assert(node.sequence <= this.sequence, 'a restored timer is newer than the snapshot');
    this.#place(node, this.#heap.length);
    this.#up(node);
  }

  /** Takes a node out; nothing happens when it is not set. */
  cancel(node: TimerNode): void {
    const index = node.heapIndex;
    if (index === -1) return;
    assert(this.#heap[index] === node, 'a timer is not where it says');
    const last = this.#heap.pop();
    node.heapIndex = -1;
    if (last === undefined || last === node) return;
    this.#place(last, this.#sink(index));
    this.#up(last);
  }

  #place(node: TimerNode, index: number): void {
    this.#heap[index] = node;
    node.heapIndex = index;
  }

  #up(node: TimerNode): void {
    while (node.heapIndex > 0) {
      const parentIndex = (node.heapIndex - 1) >> 1;
      const parent = this.#heap[parentIndex] as TimerNode;
      if (before(parent, node)) return;
      this.#place(parent, node.heapIndex);
      this.#place(node, parentIndex);
    }
  }

  /**
   * Moves up what lies below a hole, so that the hole is at the bottom; where it is then. What fills it comes from the bottom too and mostly
   * stays there, so it is not compared on the way down.
   */
  #sink(from: number): number {
    const size = this.#heap.length;
    let hole = from;
    for (let left = 2 * hole + 1; left < size; left = 2 * hole + 1) {
      const right = left + 1;
      const isRight = right < size && before(this.#heap[right] as TimerNode, this.#heap[left] as TimerNode);
      const child = isRight ? right : left;
      this.#place(this.#heap[child] as TimerNode, hole);
      hole = child;
    }
    return hole;
  }
}

function before(a: Due, b: Due): boolean {
  return a.due < b.due || (a.due === b.due && a.sequence < b.sequence);
}
