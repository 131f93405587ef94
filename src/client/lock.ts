/**
 * One grant in the hands of the application. It is held until it is released or lost, and never held again after that: a
 * passed deadline is final, whatever the service says later.
 */
import { LockLostError, type Loss } from './errors.ts';

/** What the work under a lock is given. */
export interface Holding {
  /** Full name, `<alias>/<rest>`. */
  readonly name: string;
  /** The fencing token: send it with every write, and let the resource refuse a lower one than it has seen. */
  readonly token: number;
  /** Fires when the lock is lost or about to be; its `reason` is a `LockLostError`. */
  readonly signal: AbortSignal;
  /** Whether the lock may be believed in right now: answered from the monotonic clock, without any network. */
  held(): boolean;
  /** How long it may be believed in without another keepalive, ms; 0 = no more. */
  remainingMs(): number;
}

/** What a lock needs of its session. */
export interface LockKeeper {
  /** Until when the session's grants may be believed in, ms from now; 0 or less = no more, or not right now. */
  trustedMs(): number;
  /** Gives `lock` back. @throws LeaseholdError */
  giveBack(lock: Lock): Promise<void>;
  /** `lock` was lost; one that is being revoked is still to be given up by `giveUp`. */
  lost(lock: Lock, loss: Loss): void;
  /** The work under a lost lock has ended. */
  giveUp(lock: Lock): void;
}

type State =
  | { readonly kind: 'held' }
  | { readonly kind: 'lost'; readonly error: LockLostError }
  | { readonly kind: 'released'; readonly done: Promise<void> };

export class Lock implements Holding, AsyncDisposable {
  readonly name: string;
  readonly token: number;
  /** The retry key under which it was acquired; a release names it (rule C6). */
  readonly request: string;
  readonly #keeper: LockKeeper;
  readonly #lost = new AbortController();
  #state: State = { kind: 'held' };

  constructor(
    grant: { readonly name: string; readonly token: number; readonly request: string },
    keeper: LockKeeper,
  ) {
    this.name = grant.name;
    this.token = grant.token;
    this.request = grant.request;
    this.#keeper = keeper;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  held(): boolean {
    return this.remainingMs() > 0;
  }

  remainingMs(): number {
    return this.#state.kind === 'held' ? Math.max(0, this.#keeper.trustedMs()) : 0;
  }

  /**
   * Gives the lock back; resolves when the service has confirmed it, and may be called again.
   * @throws LockLostError when it had been lost before
   * @throws LeaseholdError UNAVAILABLE when it is not confirmed within 5 s; it is no longer held, and the release goes on
   */
  async release(): Promise<void> {
    switch (this.#state.kind) {
      case 'lost':
        this.#keeper.giveUp(this);
        throw this.#state.error;
      case 'released':
        return await this.#state.done;
      case 'held': {
        const done = this.#keeper.giveBack(this);
        // It may have been found lost by the clock at this very moment.
        if (this.#isHeld()) this.#state = { kind: 'released', done };
        return await done;
      }
    }
  }

  /** For `await using`. A lock that was lost ends quietly here, since whatever the block threw says more: see `release`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }

  /** The grant is over, or about to be taken away. Told once; a released lock cannot be lost. */
  lose(loss: Loss): void {
    if (this.#state.kind !== 'held') return;
    const error = new LockLostError(this.name, this.token, loss);
    this.#state = { kind: 'lost', error };
    this.#keeper.lost(this, loss);
    this.#lost.abort(error);
  }

  #isHeld(): boolean {
    return this.#state.kind === 'held';
  }
}

/** A lock as plain functions, which survive being taken apart (`async ({ token, signal, held }) => ...`). */
export function holdingOf(lock: Lock): Holding {
  const { name, token, signal } = lock;
  return { name, token, signal, held: () => lock.held(), remainingMs: () => lock.remainingMs() };
}
