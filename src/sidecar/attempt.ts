/**
 * One acquire on its way: the calls that wait for it (several, when an application repeats its `request`), and its state.
 * It is settled once; whoever comes later is told the same.
 */

import type { Token } from '../api/entry.ts';
import { LeaseholdError } from '../api/errors.ts';
import type { Timer } from '../platform/runtime.ts';
import type { AcquireBody } from './acquire-body.ts';

export type AttemptState =
  /** Sent, not answered. */
  | { readonly kind: 'asked' }
  | { readonly kind: 'queued'; readonly position: number }
  | { readonly kind: 'granted'; readonly token: Token }
  /** Nobody wants it any more, and the group has not confirmed that yet (rule A5). */
  | { readonly kind: 'cancelling' };

interface Call {
  readonly resolve: (token: Token) => void;
  readonly reject: (error: LeaseholdError) => void;
}

export class Attempt {
  readonly key: string;
  readonly body: AcquireBody;
  /** The application's retry key, if it gave one. */
  readonly request: string | undefined;
  state: AttemptState = { kind: 'asked' };
  /** Keeps its acquire from being sent again: behind a cancel, or an acknowledgement, of its key it would start anew. */
  withdraw: () => void = () => undefined;
  /** It is answered or taken back: makes room for another one to be sent. */
  leave: () => void = () => undefined;
  /** Sends its acquire once more: a repeat is answered from the state of the group (rule C4). */
  askAgain: () => void = () => undefined;
  readonly #calls = new Set<Call>();
  /** Calls that were told the token and whose callers have not turned out to be gone. */
  #told = 0;
  readonly #timers: Timer[] = [];

  constructor(key: string, body: AcquireBody, request: string | undefined) {
    this.key = key;
    this.body = body;
    this.request = request;
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** Whether anybody waits for the token or has got it. */
  get isWanted(): boolean {
    return this.#calls.size > 0 || this.#told > 0;
  }

  /**
   * Waits for the outcome. `onGone` is called when the caller hung up: before the outcome, or after it and before its answer
   * was written, which to the caller is the same (rule A5).
   */
  join(hangUp: AbortSignal, onGone: () => void): Promise<Token> {
    const { state } = this;
    return new Promise((resolve, reject) => {
      let isTold = false;
      const call: Call = {
        resolve: (token) => {
          isTold = true;
          this.#told++;
          resolve(token);
        },
        reject,
      };
      const gone = (): void => {
        if (isTold) this.#told--;
        else if (!this.#calls.delete(call)) return;
        reject(new LeaseholdError('CANCELLED', 'the caller hung up'));
        onGone();
      };
      if (state.kind === 'granted') call.resolve(state.token);
      else this.#calls.add(call);
      if (hangUp.aborted) gone();
      else hangUp.addEventListener('abort', gone, { once: true });
    });
  }

  /** Its acquire is not sent any more: what has become of it is known, or nobody wants it. */
  takeBack(): void {
    this.withdraw();
    this.leave();
  }

  /** It was granted in an earlier life of this sidecar. Somebody has the token, as far as anybody knows (rule A5). */
  toldBefore(token: Token): void {
    this.state = { kind: 'granted', token };
    this.#told++;
  }

  keep(timer: Timer): void {
    this.#timers.push(timer);
  }

  succeed(token: Token): void {
    this.#settle(({ resolve }) => resolve(token));
  }

  fail(error: LeaseholdError): void {
    this.#settle(({ reject }) => reject(error));
  }

  #settle(tell: (call: Call) => void): void {
    for (const timer of this.#timers.splice(0)) timer.cancel();
    const calls = [...this.#calls];
    this.#calls.clear();
    calls.forEach(tell);
  }
}
