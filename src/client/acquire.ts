/**
 * From the wish for a lock to the lock. Each acquire carries a retry key (`request`): when its answer is lost it is asked again
 * and gets the same grant, not a second one; and what was granted to a caller who gave up meanwhile is given back.
 */
import { type Backoff, fullJitterMs, retryDelayMs } from './backoff.ts';
import { asUnavailable, cancelled, errorOf, HeldError, LeaseholdError } from './errors.ts';
import type { Surroundings } from './grant-calls.ts';
import { type Answer, type Json, NoAnswerError } from './http.ts';
import type { Lock } from './lock.ts';
import { aliasOf, durationOf, type LockOptions, type TryOptions } from './options.ts';
import { onAbort, pause } from './runtime.ts';
import type { Session } from './session.ts';
import type { SessionPool } from './session-pool.ts';

/** Beyond its wait limit the service may take this long to say so. */
const ANSWER_MS_MAX = 10_000;
/** Without `waitMs` a session that turns out to have ended is replaced so often. */
const SESSIONS_TRIED_MAX = 3;
const RETRY: Backoff = { baseMs: 100, capMs: 2_000 };
const TRY_AGAIN: Backoff = { baseMs: 100, capMs: 5_000 };
const REQUEST_BYTES = 16;
const SETTLE_AGAIN_MS = 500;

/** One wish. */
interface Wish {
  readonly name: string;
  readonly alias: string;
  readonly maxHoldMs: number | undefined;
  /** Fields of the call, without those that differ from call to call. */
  readonly body: Json;
  /** Each of them gives it up. */
  readonly signals: readonly AbortSignal[];
  /** On the monotonic clock. */
  readonly waitUntilMs: number;
}

export class Acquirer {
  readonly #around: Surroundings;
  readonly #pool: SessionPool;
  readonly #closing: AbortSignal;

  /** `closing` fires when the client is closed. */
  constructor(around: Surroundings, pool: SessionPool, closing: AbortSignal) {
    this.#around = around;
    this.#pool = pool;
    this.#closing = closing;
  }

  /** @throws LeaseholdError */
  async acquire(name: string, options: LockOptions): Promise<Lock> {
    const wish = this.#wishOf(name, options);
    for (let attempt = 0; ; attempt++) {
      throwIfGivenUp(wish);
      try {
        return await this.#attempt(wish);
      } catch (error) {
        throwIfGivenUp(wish);
        const delayMs = this.#retryAfterMs(wish, error, attempt);
        if (delayMs === null) throw asUnavailable(error);
        await pause(this.#around.runtime, delayMs, wish.signals);
      }
    }
  }

  /** Null: somebody else holds it, also after the last try. @throws LeaseholdError */
  async tryLock(name: string, { retry, ...options }: TryOptions): Promise<Lock | null> {
    const { tries = 1, ...chosen } = retry ?? {};
    const backoff = { ...TRY_AGAIN, ...chosen };
    const signals = options.signal === undefined ? [this.#closing] : [options.signal, this.#closing];
    const { runtime } = this.#around;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.acquire(name, { ...options, waitMs: 0 });
      } catch (error) {
        if (!(error instanceof LeaseholdError) || !error.retryable || error.code === 'CANCELLED') throw error;
        if (attempt + 1 >= tries) {
          if (error instanceof HeldError) return null;
          throw error;
        }
        const { retryAfterMs } = error;
        await pause(runtime, retryDelayMs(runtime.random, backoff, { attempt, retryAfterMs }), signals);
      }
    }
  }

  #wishOf(name: string, options: LockOptions): Wish {
    const { waitMs = 0, mode, permits, reentrant, owner, purpose, signal, maxHoldMs } = options;
    return {
      name,
      alias: aliasOf(name),
      maxHoldMs: maxHoldMs === undefined ? undefined : durationOf('maxHoldMs', maxHoldMs),
      body: {
        ...(mode !== undefined && { mode }),
        ...(permits !== undefined && { permits }),
        ...(reentrant !== undefined && { reentrant }),
        ...(owner !== undefined && { owner }),
        ...(purpose !== undefined && { purpose }),
      },
      signals: signal === undefined ? [this.#closing] : [signal, this.#closing],
      waitUntilMs: this.#nowMs() + durationOf('waitMs', waitMs),
    };
  }

  #nowMs(): number {
    return this.#around.runtime.clock.monotonicMs();
  }

  #waitMs({ waitUntilMs }: Wish): number {
    return Math.max(0, Math.ceil(waitUntilMs - this.#nowMs()));
  }

  /** How long to pause before another session or another request; null = the error stands. */
  #retryAfterMs(wish: Wish, error: unknown, attempt: number): number | null {
    const { random } = this.#around.runtime;
    const isExpired = error instanceof LeaseholdError && error.code === 'SESSION_EXPIRED';
    const isPassing =
      error instanceof NoAnswerError ||
      (error instanceof LeaseholdError && ['UNAVAILABLE', 'RATE_LIMITED'].includes(error.code));
    if (!isExpired && !isPassing) return null;
    const retryAfterMs = error instanceof LeaseholdError ? error.retryAfterMs : 0;
    const delayMs = retryDelayMs(random, RETRY, { attempt, retryAfterMs });
    if (delayMs < this.#waitMs(wish)) return delayMs;
    return isExpired && attempt + 1 < SESSIONS_TRIED_MAX ? delayMs : null;
  }

  async #attempt(wish: Wish): Promise<Lock> {
    const session = await this.#session(wish);
    try {
      return await this.#ask(session, wish);
    } finally {
      session.unuse();
    }
  }

  /** A session to ask in, in use. One that opens after the caller gave up is not kept in use. */
  #session({ alias, maxHoldMs, signals }: Wish): Promise<Session> {
    return new Promise((resolve, reject) => {
      let isGivenUp = false;
      const forget = onAbort(signals, () => {
        isGivenUp = true;
        reject(new NoAnswerError('aborted', 'the caller gave up'));
      });
      this.#pool.use(alias, maxHoldMs).then(
        (session) => {
          forget();
          if (isGivenUp) session.unuse();
          else resolve(session);
        },
        (error: unknown) => {
          forget();
          reject(error);
        },
      );
    });
  }

  /** One request in one session, sent again under its key while its answer is lost. */
  async #ask(session: Session, wish: Wish): Promise<Lock> {
    const { runtime } = this.#around;
    const request = runtime.random.hex(REQUEST_BYTES);
    const giveUpMs = Math.max(wish.waitUntilMs, this.#nowMs()) + ANSWER_MS_MAX;
    let isUncertain = false;
    session.requests.asks(request);
    for (let attempt = 0; ; attempt++) {
      const sentMs = this.#nowMs();
      const isSent = !wish.signals.some(({ aborted }) => aborted);
      try {
        const answer = await this.#call(session, wish, request, this.#waitMs(wish));
        if (answer.status === 200) return await this.#granted(session, wish, { request, sentMs, answer });
        session.requests.answered(request);
        throw errorOf(answer);
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error;
        if (session.over.aborted) {
          session.requests.answered(request);
          throw expired(session);
        }
        isUncertain ||= error.kind === 'broken' || error.kind === 'late';
        if (
          error.kind === 'aborted' ||
          (!isUncertain && this.#waitMs(wish) === 0) ||
          this.#nowMs() > giveUpMs
        ) {
          const wouldShow = session.abandon(request, wish.name);
          const isUnheard = error.kind === 'aborted' && isSent && !wouldShow;
          if (isUncertain || isUnheard) this.#settleLater(session, wish, request);
          throw error;
        }
        await pause(runtime, fullJitterMs(runtime.random, RETRY, attempt), [...wish.signals, session.over]);
      }
    }
  }

  #call(session: Session, wish: Wish, request: string, waitMs: number): Promise<Answer> {
    return this.#around.transport.call({
      method: 'POST',
      path: `/v1/locks/${encodeURIComponent(wish.name)}/acquire`,
      body: { ...wish.body, session_id: session.id, request, wait_ms: waitMs },
      limitMs: waitMs + ANSWER_MS_MAX,
      signals: [...wish.signals, session.over],
    });
  }

  /** @throws LeaseholdError CANCELLED, LockLostError */
  async #granted(
    session: Session,
    wish: Wish,
    {
      request,
      sentMs,
      answer,
    }: { readonly request: string; readonly sentMs: number; readonly answer: Answer },
  ): Promise<Lock> {
    const { token, deadline_in_ms: leftMs } = answer.body;
    if (typeof token !== 'number' || typeof leftMs !== 'number') {
      session.abandon(request, wish.name);
      throw new LeaseholdError('UNAVAILABLE', 'the answer of an acquire names no token');
    }
    const grant = { name: wish.name, token, request };
    session.cover(sentMs, leftMs);
    // After a long wait that counts for nothing, since nobody knows how old the answer is: a fresh question does.
    if (session.remainingMs < leftMs / 2) await session.check(grant);
    const lock = session.adopt(grant);
    if (lock.signal.aborted) await lock.release();
    if (wish.signals.some(({ aborted }) => aborted)) {
      this.#around.tasks.add(lock.release());
      throwIfGivenUp(wish);
    }
    return lock;
  }

  /**
   * Its last answer was lost, so the service may think that we have the lock: asked again without waiting, it says so, and the
   * lock is given back. If it knew nothing of it, the lock is taken and given back within moments.
   */
  #settleLater(session: Session, wish: Wish, request: string): void {
    const { runtime, tasks } = this.#around;
    const settle = async (): Promise<void> => {
      while (!session.over.aborted) {
        const again = { ...wish, signals: [] };
        const answer = await this.#call(session, again, request, 0).catch(() => null);
        if (answer !== null) {
          const { token } = answer.body;
          if (typeof token === 'number' && answer.status === 200)
            session.grants.releaseLater({ name: wish.name, token, request });
          return;
        }
        await pause(runtime, SETTLE_AGAIN_MS, [session.over], true);
      }
    };
    tasks.add(settle());
  }
}

function throwIfGivenUp({ signals }: Wish): void {
  for (const { aborted, reason } of signals) if (aborted) throw cancelled(reason);
}

function expired({ id, over }: Session): LeaseholdError {
  return new LeaseholdError(
    'SESSION_EXPIRED',
    `session ${id} ended while the lock was waited for`,
    {},
    { cause: over.reason },
  );
}
