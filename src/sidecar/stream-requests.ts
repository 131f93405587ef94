/**
 * The requests on one stream: those of one turn go out in one frame, and each answer finds who asked. With the stream all of it is
 * forgotten; whoever still wants something asks again on the next one.
 */
import type { AnswerBody, ClientRequest, ClientRequestBody } from '../api/wire.ts';
import type { Timers } from '../platform/runtime.ts';

/** At their largest what a front end takes as one frame: after a reconnect all that waits is sent again at once. */
const REQUESTS_PER_FRAME_MAX = 500;

/**
 * `isDoubtful`: the leader may have changed since the request was sent, so that whoever answers may not know what the one before did with
 * it.
 */
export type OnAnswer = (answer: AnswerBody, isDoubtful: boolean) => void;

/** By whom the group is led, as far as is known here. */
export interface Led {
  readonly epoch: number;
  /** How often a front end has lost its leader; it may have found the same one again, and sent it twice what had no answer. */
  readonly losses: number;
}

interface Asked {
  readonly led: Led;
  readonly onAnswer: OnAnswer;
}

export class StreamRequests {
  readonly #timers: Timers;
  readonly #write: (requests: readonly ClientRequest[]) => void;
  #last = 0;
  /** By the id of what was sent. */
  #asked = new Map<number, Asked>();
  #outgoing: ClientRequest[] = [];
  #isFlushPlanned = false;

  /** `write` sends one frame of them, if there is still a stream. */
  constructor(timers: Timers, write: (requests: readonly ClientRequest[]) => void) {
    this.#timers = timers;
    this.#write = write;
  }

  /** Returns the request's id. */
  add(body: ClientRequestBody, led: Led, onAnswer: OnAnswer): number {
    const id = ++this.#last;
    this.#asked.set(id, { led, onAnswer });
    this.#outgoing.push({ id, body });
    if (this.#isFlushPlanned) return id;
    this.#isFlushPlanned = true;
    this.#timers.soon(() => this.#flush());
    return id;
  }

  /** `led`: by whom it was answered; null: its front end knows of nobody who leads. */
  answered(id: number, body: AnswerBody, led: Led | null): void {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#asked.delete(id);
    const isOfOne = led !== null && asked.led.epoch === led.epoch && asked.led.losses === led.losses;
    asked.onAnswer(body, !isOfOne);
  }

  /** Nobody waits for this answer any more. */
  giveUp(id: number): void {
    this.#asked.delete(id);
  }

  forget(): void {
    this.#asked = new Map();
    this.#outgoing = [];
  }

  #flush(): void {
    this.#isFlushPlanned = false;
    const requests = this.#outgoing;
    this.#outgoing = [];
    for (let from = 0; from < requests.length; from += REQUESTS_PER_FRAME_MAX)
      this.#write(requests.slice(from, from + REQUESTS_PER_FRAME_MAX));
  }
}
