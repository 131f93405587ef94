/**
 * The service `History`: committed entries with their events. The past is made by replay, as events are not stored; a reader
 * that follows then gets every commit as it happens.
 */
import { once } from 'node:events';
import { type ServerWritableStream, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { HistoryEntry } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';
import { TrimmedError } from '../../log/port.ts';
import type { Timers } from '../../platform/runtime.ts';
import { encodeHistoryEntry } from './events.ts';
import { LiveEntries } from './live-entries.ts';
import type { ReadHistoryRequest } from './messages.ts';
import { checkIntegers, type Message } from './proto.ts';
import { findServed, type Served, type ServedNow, type ServedReplica } from './served.ts';
import { CallError, toServiceError } from './status.ts';

/** A replay holds a state of its own, so memory bounds how many run at once. */
const REPLAYS_MAX = 4;
const FOLLOWERS_MAX = 64;
/** A reader that has taken nothing for so long gives its place up, once somebody else wants it: it may never read again. */
const STUCK_MS = 10_000;
/** How often a quiet reader looks whether its namespace is still served. */
const STILL_SERVED_EVERY_MS = 1_000;

type Call = ServerWritableStream<ReadHistoryRequest, Message>;

export class HistoryService {
  readonly implementation: UntypedServiceImplementation = { Read: (call: Call) => void this.#serve(call) };
  readonly #served: ServedNow;
  readonly #timers: Timers;
  readonly #replaying = new Set<Out>();
  readonly #followers = new Map<Out, LiveEntries>();
  #isClosing = false;

  constructor(served: ServedNow, timers: Timers) {
    this.#served = served;
    this.#timers = timers;
  }

  /** Ends the calls of those who follow. */
  close(): void {
    this.#isClosing = true;
    for (const live of this.#followers.values()) live.wake();
  }

  async #serve(call: Call): Promise<void> {
    const cancelled = new AbortController();
    call.on('cancelled', () => cancelled.abort());
    const out = new Out(call, cancelled.signal, this.#timers);
    try {
      checkIntegers(call.request);
      const served = findServed(this.#served(), call.request.namespace);
      if (call.request.follow) await this.#follow(served, out);
      else await this.#replay(served.replica, out);
      call.end();
    } catch (error) {
      if (!cancelled.signal.aborted) call.emit('error', toServiceError(out.isCutOff ? CUT_OFF : error));
    }
  }

  /** Sends the past up to the head of the log. Returns the index of the last entry sent, or the one before `from`. */
  async #replay(replica: ServedReplica, out: Out, from = out.request.from): Promise<number> {
    makeRoom(this.#replaying, REPLAYS_MAX, 'histories are being read');
    this.#replaying.add(out);
    try {
      let last = Math.max(0, from - 1);
      for await (const entry of past(replica, from)) {
        await out.send(entry);
        last = entry.index;
      }
      return last;
    } finally {
      this.#replaying.delete(out);
    }
  }

  async #follow(served: Served, out: Out): Promise<void> {
    makeRoom(this.#followers, FOLLOWERS_MAX, 'readers follow');
    // Before the replay, so that no commit falls between the past and the present.
    const live = new LiveEntries();
    const unwatch = served.replica.watch((entry) => live.push(entry));
    this.#followers.set(out, live);
    out.signal.addEventListener('abort', () => live.wake());
    try {
      let last = await this.#replay(served.replica, out);
      while (this.#isServed(served) && !out.signal.aborted) {
        const entry = live.take(last);
        if (entry === null) {
          await this.#wait(live);
        } else if (entry === 'gap') {
          last = await this.#replay(served.replica, out, last + 1);
        } else {
          await out.send(entry);
          last = entry.index;
        }
      }
    } finally {
      this.#followers.delete(out);
      unwatch();
    }
    throw new CallError(status.UNAVAILABLE, `${served.alias} is not served any more`);
  }

  #isServed({ replica }: Served): boolean {
    return !this.#isClosing && this.#served().some((candidate) => candidate.replica === replica);
  }

  async #wait(live: LiveEntries): Promise<void> {
    const look = this.#timers.after(STILL_SERVED_EVERY_MS, () => live.wake());
    await live.changed();
    look.cancel();
  }
}

const CUT_OFF = new CallError(
  status.RESOURCE_EXHAUSTED,
  `nothing was taken for ${STUCK_MS / 1_000} s, and others want to read; read on after the last entry received`,
);

interface Places {
  readonly size: number;
  keys(): Iterable<Out>;
  delete(out: Out): boolean;
}

/** Cuts off a reader that is stuck when all places are taken. Throws CallError when there is none. */
function makeRoom(places: Places, max: number, what: string): void {
  assert(places.size <= max, 'readers are bounded');
  if (places.size < max) return;
  const stuck = [...places.keys()].find(({ isStuck }) => isStuck);
  if (stuck === undefined) throw new CallError(status.RESOURCE_EXHAUSTED, `${max} ${what} already`);
  places.delete(stuck);
  stuck.cutOff();
}

/** The answers of one call, at the pace of its reader. */
class Out {
  readonly request: ReadHistoryRequest;
  /** Nobody reads any more, or is to. */
  readonly signal: AbortSignal;
  readonly #call: Call;
  readonly #timers: Timers;
  readonly #cut = new AbortController();
  #isStuck = false;

  constructor(call: Call, cancelled: AbortSignal, timers: Timers) {
    this.request = call.request;
    this.signal = AbortSignal.any([cancelled, this.#cut.signal]);
    this.#call = call;
    this.#timers = timers;
  }

  get isStuck(): boolean {
    return this.#isStuck;
  }

  get isCutOff(): boolean {
    return this.#cut.signal.aborted;
  }

  cutOff(): void {
    assert(this.#isStuck, 'whoever reads is not cut off');
    this.#cut.abort();
  }

  /** Rejects when the caller has gone, or is cut off. */
  async send(entry: HistoryEntry): Promise<void> {
    this.signal.throwIfAborted();
    if (this.#call.write(encodeHistoryEntry(entry))) return;
    const stuck = this.#timers.after(STUCK_MS, () => (this.#isStuck = true));
    try {
      await once(this.#call, 'drain', { signal: this.signal });
    } finally {
      stuck.cancel();
      this.#isStuck = false;
    }
  }
}

/** From an index on; from 0: from the oldest entry that is still there. Throws TrimmedError. */
async function* past(replica: ServedReplica, from: number): AsyncGenerator<HistoryEntry> {
  let hasBegun = false;
  try {
    for await (const entry of replica.history(Math.max(1, from))) {
      hasBegun = true;
      yield entry;
    }
  } catch (error) {
    // Trimmed while it was being read: the reader has a part already, and a gap must not be hidden.
    if (!(error instanceof TrimmedError) || hasBegun || from > 0) throw error;
    yield* replica.history(error.below + 1);
  }
}
