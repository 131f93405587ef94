/**
 * What a front end passes on to the leader within one turn of the event loop, in one frame: with many clients of one request each, a frame
 * for each of them costs both ends more than the requests. The order is kept, so the leader takes what it would have taken frame by frame.
 */
import { ok as assert } from 'node:assert';
import { FORMAT_VERSION } from '../../api/limits.ts';
import type { RelayFrame, RelayGroup } from '../../api/wire.ts';
import type { Timers } from '../../platform/runtime.ts';

/** Requests and sessions to keep alive in one frame: at their largest half of what the leader takes as one frame. */
export const GATHERED_MAX = 2_000;

export class GatheredFrames {
  readonly #timers: Timers;
  readonly #write: (frame: RelayFrame) => void;
  #groups: RelayGroup[] = [];
  #size = 0;
  #isPlanned = false;

  constructor(timers: Timers, write: (frame: RelayFrame) => void) {
    this.#timers = timers;
    this.#write = write;
  }

  /** Writes the frame, at the end of this turn at the latest. */
  send(frame: RelayFrame): void {
    const size = isPlain(frame) ? sizeOf(frame.groups) : Number.POSITIVE_INFINITY;
    if (this.#size + size > GATHERED_MAX) this.#flush();
    if (size > GATHERED_MAX) {
      this.#write(frame);
      return;
    }
    this.#groups.push(...frame.groups);
    this.#size += size;
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#timers.soon(() => {
      this.#isPlanned = false;
      this.#flush();
    });
  }

  /** The stream is gone, with whatever was on its way: the front end sends again to the next leader what has no answer (rule S4). */
  drop(): void {
    this.#groups = [];
    this.#size = 0;
  }

  #flush(): void {
    if (this.#groups.length === 0) return;
    assert(this.#size <= GATHERED_MAX, 'what is gathered is bounded');
    const groups = this.#groups;
    this.drop();
    this.#write({ format: FORMAT_VERSION, groups, closed: [] });
  }
}

/** Of requests and keepalives alone. A mark is the client's own word, of any size. */
function isPlain({ groups, closed, reattach, allAttached, applied, behaviour }: RelayFrame): boolean {
  const isOfReplica = allAttached === true || applied !== undefined || behaviour !== undefined;
  if (isOfReplica || reattach !== undefined || closed.length > 0) return false;
  return groups.every(({ mark }) => mark === undefined);
}

function sizeOf(groups: readonly RelayGroup[]): number {
  return groups.reduce(
    (sum, { requests, keepalive }) => sum + requests.length + (keepalive?.sessions.length ?? 0),
    groups.length,
  );
}
