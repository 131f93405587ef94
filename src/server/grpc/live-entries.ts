/**
 * Commits as they happen, for one reader that follows them. Bounded: a reader slower than the log does not make this process
 * grow; it is told so and comes again (rule S9).
 */
import { status } from '@grpc/grpc-js';
import type { HistoryEntry } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';
import { CallError } from './status.ts';

/** Events that wait for a slow reader, an entry counting at least as one: some 4 MiB with names of usual length. */
const EVENTS_WAITING_MAX = 20_000;

export class LiveEntries {
  readonly #waiting: HistoryEntry[] = [];
  #events = 0;
  /** Index of the newest entry that was dropped; 0 = none. */
  #droppedTo = 0;
  #wake: (() => void) | null = null;

  push(entry: HistoryEntry): void {
    this.#waiting.push(entry);
    this.#events += weight(entry);
    while (this.#events > EVENTS_WAITING_MAX) this.#droppedTo = this.#shift()?.index ?? this.#droppedTo;
    this.wake();
  }

  /**
   * The entry after `last`, or null when it has not been committed. `gap`: it was committed while nobody here told of it, as when a replica
   * changes its role, and stands in the log. Throws CallError when it had to be dropped.
   */
  take(last: number): HistoryEntry | 'gap' | null {
    if (this.#droppedTo > last) {
      const message = `this reader is too slow to follow; read on from ${last + 1}`;
      throw new CallError(status.RESOURCE_EXHAUSTED, message);
    }
    let next = this.#shift();
    while (next !== null && next.index <= last) next = this.#shift();
    assert(next === null || next.index > last, 'the live entries come in order');
    return next === null || next.index === last + 1 ? next : 'gap';
  }

  /** Resolves at the next `push` or `wake`. One waiter at a time. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  #shift(): HistoryEntry | null {
    const first = this.#waiting.shift();
    if (first === undefined) return null;
    this.#events -= weight(first);
    return first;
  }
}

function weight({ events }: HistoryEntry): number {
  return Math.max(1, events.length);
}
