/**
 * The newest committed events of which sessions are told, so that a front end that comes to a leader can be told what its clients have
 * missed: an entry may be committed and its leader dead before anybody heard of it. What is not kept here any more, clients notice by the
 * digests of rule S3. Events that only answer a request are not kept: whoever has no answer asks again. They are nearly all there are, and
 * would be copied by each garbage collection.
 */
import { ok as assert } from 'node:assert';
import type { LockEvent } from '../../api/entry.ts';
import { sessionToTell } from './notices.ts';

/** Some seconds in which every operation has to wait; at 300 bytes each about 6 MB. */
const EVENTS_MAX = 20_000;

interface EntryEvents {
  readonly index: number;
  readonly events: readonly LockEvent[];
}

export class RecentEvents {
  readonly #max: number;
  #entries: EntryEvents[] = [];
  /** Place of the oldest that still counts. */
  #first = 0;
  #size = 0;

  constructor(max: number = EVENTS_MAX) {
    this.#max = max;
  }

  add(index: number, events: readonly LockEvent[]): void {
    const told = events.filter((event) => sessionToTell(event) !== null);
    if (told.length === 0) return;
    const newest = this.#entries.at(-1);
    assert(newest === undefined || index > newest.index, 'entries are remembered in order');
    this.#entries.push({ index, events: told });
    this.#size += told.length;
    while (this.#size > this.#max && this.#first < this.#entries.length) {
      this.#size -= this.#entries[this.#first]?.events.length ?? 0;
      this.#first++;
    }
    if (2 * this.#first < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
    assert(this.#size >= 0, 'no more is forgotten than was remembered');
  }

  /** What is kept of the entries above `above`, up to `upTo`, in order. */
  *between(above: number, upTo: number): Generator<LockEvent> {
    for (let i = this.#first; i < this.#entries.length; i++) {
      const { index, events } = this.#entries[i] as EntryEvents;
      if (index > above && index <= upTo) yield* events;
    }
  }
}
