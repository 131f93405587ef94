/**
 * The requests of one group session that have no answer yet. Each is sent again, unchanged but for the attach number, after
 * every attach until it is answered: it is idempotent by key or token (rules C4, C7, S3).
 */
import type { SessionId } from '../api/entry.ts';
import type { ClientRequestBody } from '../api/wire.ts';
import type { Runtime, Timer } from '../platform/runtime.ts';
import type { GroupClient } from './group-client.ts';
import type { OnAnswer } from './stream-requests.ts';

const RETRY_MS = 250;

/** The session whose requests they are. */
export interface RequestingSession {
  readonly id: SessionId;
  readonly attach: number;
  /** Attached on the stream there is: requests may be sent. */
  readonly isLive: boolean;
  readonly isOver: boolean;
  /** Another attach number is in force. */
  superseded(): void;
  /** The group has no such session any more. */
  expired(): void;
}

export interface RequestOptions {
  /** Sent again after UNAVAILABLE too. */
  readonly isPersistent?: boolean;
  /** Before what waits for the attach already. */
  readonly isFirst?: boolean;
}

export interface Pending {
  readonly build: (session: SessionId, attach: number) => ClientRequestBody;
  readonly onAnswer: OnAnswer;
  readonly isPersistent: boolean;
}

export class SessionRequests {
  readonly #client: GroupClient;
  readonly #session: RequestingSession;
  #pending = new Set<Pending>();

  constructor(client: GroupClient, session: RequestingSession) {
    this.#client = client;
    this.#session = session;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Returns how to take it back: then it is not sent again. That returns true when there was no answer yet. */
  add(pending: Pending, isFirst: boolean): () => boolean {
    if (isFirst) this.#pending = new Set([pending, ...this.#pending]);
    else this.#pending.add(pending);
    if (this.#session.isLive) this.#send(pending);
    return () => this.#pending.delete(pending);
  }

  /** After an attach. */
  sendAll(): void {
    for (const pending of this.#pending) this.#send(pending);
  }

  /** Gives up on all of them; they are answered by whoever takes them. */
  takeAll(): readonly Pending[] {
    const taken = [...this.#pending];
    this.#pending.clear();
    return taken;
  }

  #send(pending: Pending): void {
    const session = this.#session;
    this.#client.send(pending.build(session.id, session.attach), (answer, isDoubtful) => {
      if (session.isOver) return;
      if (answer.type === 'refused' && answer.code === 'SUPERSEDED') {
        session.superseded();
        return;
      }
      const isUnavailable = answer.type === 'rejected' && answer.code === 'UNAVAILABLE';
      if (isUnavailable && pending.isPersistent) {
        retryLater(this.#client.runtime, () => {
          if (session.isLive && this.#pending.has(pending)) this.#send(pending);
        });
        return;
      }
      // Once: it may have been sent twice, or been taken back.
      if (this.#pending.delete(pending)) pending.onAnswer(answer, isDoubtful);
      if (answer.type === 'refused' && answer.code === 'SESSION_EXPIRED') session.expired();
    });
  }
}

/** The session is over, so whoever waited until something is given back has what they wanted. */
export function confirmAll(left: readonly Pending[]): void {
  for (const { onAnswer, isPersistent } of left) if (isPersistent) onAnswer({ type: 'done' }, false);
}

/** Jittered, so that those who were refused together do not come back together. */
export function retryLater({ timers, random }: Runtime, action: () => void): Timer {
  return timers.after(RETRY_MS * (0.5 + random.fraction()), action);
}
