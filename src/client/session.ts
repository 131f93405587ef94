/**
 * One session at the sidecar: what keeps it alive, what it holds, and how it ends. Locks of one namespace and one `maxHoldMs`
 * share it, and are lost together with it: by the service's word, by silence (the local deadline), or by a broken stream.
 */
import { errorOf, LeaseholdError, LockLostError, type Loss } from './errors.ts';
import { EventFeed } from './event-feed.ts';
import { CALL_MS_MAX, endsGrant, GrantCalls, type Surroundings } from './grant-calls.ts';
import { Heartbeat } from './heartbeat.ts';
import type { Json } from './http.ts';
import { Lease } from './lease.ts';
import { Lock, type LockKeeper } from './lock.ts';
import { type GrantReference, Requests } from './requests.ts';
import { pause, type Timer } from './runtime.ts';

export interface SessionOptions {
  readonly client: string;
  readonly keepalive: 'both' | 'app';
  readonly ttlMs?: number;
  readonly maxHoldMs?: number;
}

export interface SessionListener {
  /** Nobody uses it any more. */
  idle(session: Session): void;
  over(session: Session): void;
}

const MS_PER_SECOND = 1_000;
/** How long a caller of `release` waits; the release itself goes on. */
const RELEASE_MS_MAX = 5_000;
/** How long it may stay unknown whether a broken stream has ended the session. */
const DOUBT_MS_MAX = 1_000;

const DEADLINE: Loss = { cause: 'deadline', reason: 'the deadline passed without an acknowledged keepalive' };
const CLOSED: Loss = { cause: 'closed', reason: 'this client was closed' };
const IN_DOUBT: Loss = {
  cause: 'disconnected',
  reason: 'the event stream broke, and nobody said in time whether the session goes on',
};

export class Session implements LockKeeper {
  readonly id: string;
  readonly requests = new Requests();
  readonly grants: GrantCalls;
  readonly #around: Surroundings;
  readonly #listener: SessionListener;
  readonly #needsStream: boolean;
  readonly #lease: Lease;
  readonly #feed: EventFeed;
  readonly #heartbeat: Heartbeat;
  readonly #over = new AbortController();
  readonly #locks = new Map<number, Set<Lock>>();
  /** Lost by a revoke; the work under them has not ended yet. */
  readonly #revoked = new Set<Lock>();
  #uses = 0;
  /** Runs while it is not known whether the session goes on. */
  #doubt: Timer | null = null;
  /** What is held is to be checked with the service. */
  #mustVerify = false;
  #isVerifying = false;

  private constructor(
    around: Surroundings,
    opened: Opened,
    options: SessionOptions,
    listener: SessionListener,
  ) {
    const { runtime, transport } = around;
    const { id } = opened;
    this.id = id;
    this.#around = around;
    this.#listener = listener;
    this.#needsStream = options.keepalive === 'both';
    this.grants = new GrantCalls(around, id, this.over);
    this.#lease = new Lease(runtime, opened.ttlMs, () => this.#deadlinePassed());
    this.#feed = new EventFeed(runtime, transport, id, {
      line: (line) => this.#line(line),
      broken: () => this.#streamBroken(),
      serverDown: () => this.#settleDoubt(),
      back: () => {
        this.#settleDoubt();
        this.#verify();
      },
      gone: (error) => this.#gone(error),
    });
    this.#heartbeat = new Heartbeat(runtime, transport, opened, {
      answered: (sentMs, { deadline_in_ms: leftMs }) => this.#acknowledged(sentMs, leftMs),
      gone: (error) => this.#gone(error),
    });
  }

  /** @throws LeaseholdError, NoAnswerError */
  static async open(
    around: Surroundings,
    options: SessionOptions,
    listener: SessionListener,
  ): Promise<Session> {
    const { client, keepalive, ttlMs, maxHoldMs } = options;
    const answer = await around.transport.call({
      method: 'POST',
      path: '/v1/sessions',
      body: {
        client,
        keepalive,
        ...(ttlMs !== undefined && { ttl_s: ttlMs / MS_PER_SECOND }),
        ...(maxHoldMs !== undefined && { max_hold_ms: maxHoldMs }),
      },
      limitMs: CALL_MS_MAX,
    });
    if (answer.status !== 200) throw errorOf(answer);
    const session = new Session(around, openedFrom(answer.body), options, listener);
    try {
      await session.#feed.open();
    } catch (error) {
      void session.close();
      throw error;
    }
    return session;
  }

  /** Fires when the session is over; the reason is a `Loss`. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  get isUsed(): boolean {
    return this.#uses > 0;
  }

  /** Each use is ended by one `unuse`; without any the session may be closed. */
  use(): void {
    this.#uses++;
  }

  unuse(): void {
    this.#uses--;
    if (this.#uses === 0 && !this.over.aborted) this.#listener.idle(this);
  }

  /**
   * Nobody wants the lock of this request any more: hanging up has cancelled it, or it is given back when it shows. False: it
   * would not show, since there is no event stream now.
   */
  abandon(request: string, name: string): boolean {
    const grant = this.requests.abandon(request, name);
    if (grant !== null) this.grants.releaseLater(grant);
    return this.#feed.isOpen;
  }

  /** Takes a grant into the session's care; one that has ended by now comes back lost. */
  adopt(grant: GrantReference): Lock {
    const lock = new Lock(grant, this);
    this.#locks.set(grant.token, (this.#locks.get(grant.token) ?? new Set()).add(lock));
    this.use();
    const end = this.requests.answered(grant.request, grant.token);
    if (end !== undefined) lock.lose(end);
    if (this.over.aborted) lock.lose(this.over.reason as Loss);
    else if (this.#lease.isPassed) this.#deadlinePassed();
    return lock;
  }

  /** A call sent at `sentMs` was answered with this deadline. */
  cover(sentMs: number, deadlineInMs: unknown): void {
    // It may have passed while this process stood still, before its timer could fire: final all the same.
    if (this.#lease.isPassed) this.#deadlinePassed();
    if (typeof deadlineInMs === 'number' && !this.over.aborted) this.#lease.cover(sentMs, deadlineInMs);
  }

  get remainingMs(): number {
    return this.#lease.remainingMs;
  }

  trustedMs(): number {
    const isTrusted = !this.over.aborted && this.#doubt === null && !this.#lease.isSuspected;
    return isTrusted ? this.#lease.remainingMs : 0;
  }

  lost(lock: Lock, { cause }: Loss): void {
    this.#forget(lock);
    if (cause === 'revoking') this.#revoked.add(lock);
    else this.unuse();
  }

  giveUp(lock: Lock): void {
    if (!this.#revoked.delete(lock)) return;
    this.grants.releaseLater(lock);
    this.unuse();
  }

  async giveBack(lock: Lock): Promise<void> {
    if (this.#lease.isPassed) {
      // The service may count it still, and nobody would give it back: with its session it is given up for certain.
      this.#deadlinePassed();
      throw new LockLostError(lock.name, lock.token, DEADLINE);
    }
    this.#forget(lock);
    const released = this.grants.release(lock);
    this.#around.tasks.add(released);
    this.unuse();
    const enough = new AbortController();
    const late = pause(this.#around.runtime, RELEASE_MS_MAX, [enough.signal]).then(() => notConfirmed(lock));
    const error = await Promise.race([released, late]);
    enough.abort();
    if (error !== null) throw error;
  }

  /** Asks the service whether a grant is still held; one that is not is lost. False: it did not say. */
  async check(grant: GrantReference): Promise<boolean> {
    const sentMs = this.#around.runtime.clock.monotonicMs();
    const answer = await this.grants.renew(grant).catch(() => null);
    if (answer === null || this.over.aborted) return false;
    if (answer.status === 200) {
      this.cover(sentMs, answer.body.deadline_in_ms);
      return true;
    }
    const error = errorOf(answer);
    if (error.code === 'SESSION_EXPIRED') this.#gone(error);
    else if (endsGrant(error)) this.#grantEnded(grant.token, { cause: 'lost', reason: error.message });
    else return false;
    return true;
  }

  /** Gives everything up: first the work under its locks is told, then the service. Resolves when that has answered or not. */
  close(): Promise<void> {
    return this.#end(CLOSED, true);
  }

  /** After a gap in the event stream, or a sleep of the machine, each grant is checked (rules A2, S3). */
  #verify(): void {
    this.#mustVerify = true;
    if (this.#isVerifying) return;
    this.#isVerifying = true;
    this.#around.tasks.add(this.#checkAll());
  }

  async #checkAll(): Promise<void> {
    for (const [lock] of [...this.#locks.values()]) {
      if (lock !== undefined && !(await this.check(lock))) {
        this.#isVerifying = false;
        return;
      }
    }
    this.#isVerifying = false;
    this.#mustVerify = false;
    this.#lease.confirm();
  }

  #acknowledged(sentMs: number, leftMs: unknown): void {
    this.cover(sentMs, leftMs);
    if (this.#mustVerify || this.#lease.isSuspected) this.#verify();
    else this.#lease.confirm();
  }

  #line({ event, token, request, reason, cause }: Json): void {
    if (event === 'session_lost') void this.#end({ cause: 'session', reason: String(reason) }, false);
    // `alive`, `queued`, `jeopardy`, `restored`, and what later versions may tell: nothing is to be done.
    if (typeof token !== 'number') return;
    switch (event) {
      case 'granted': {
        const unwanted = typeof request === 'string' ? this.requests.granted(request, token) : null;
        if (unwanted !== null) this.grants.releaseLater(unwanted);
        return;
      }
      case 'revoking':
        this.#grantEnded(token, { cause: 'revoking', reason: `it is being taken away: ${String(cause)}` });
        return;
      case 'lost':
        this.#grantEnded(token, { cause: 'lost', reason: String(reason) });
        return;
      default:
        return;
    }
  }

  #grantEnded(token: number, loss: Loss): void {
    const locks = this.#locks.get(token);
    if (locks === undefined) this.requests.ended(token, loss);
    for (const lock of [...(locks ?? [])]) lock.lose(loss);
    if (loss.cause === 'revoking') return;
    for (const lock of this.#revoked) {
      if (lock.token !== token) continue;
      this.#revoked.delete(lock);
      this.unuse();
    }
  }

  #forget(lock: Lock): void {
    const locks = this.#locks.get(lock.token);
    locks?.delete(lock);
    if (locks?.size === 0) this.#locks.delete(lock.token);
  }

  /** Nothing is believed in until it is known whether the break has ended the session: then its locks are free already. */
  #streamBroken(): void {
    if (!this.#needsStream || this.over.aborted || this.#doubt !== null) return;
    this.#doubt = this.#around.runtime.timers.after(DOUBT_MS_MAX, () => void this.#end(IN_DOUBT, true), true);
  }

  #settleDoubt(): void {
    this.#doubt?.cancel();
    this.#doubt = null;
  }

  /** Final for every grant (rule A1); a session that only waits keeps its places. */
  #deadlinePassed(): void {
    if (this.#locks.size > 0) void this.#end(DEADLINE, true);
  }

  #gone({ message }: LeaseholdError): void {
    void this.#end({ cause: 'session', reason: message }, false);
  }

  /** `isKnown`: the service may still have it, and keep its locks from others. Never rejects. */
  async #end(loss: Loss, isKnown: boolean): Promise<void> {
    if (this.over.aborted) return;
    this.#over.abort(loss);
    this.#heartbeat.stop();
    this.#lease.stop();
    this.#settleDoubt();
    for (const locks of [...this.#locks.values()]) for (const lock of [...locks]) lock.lose(loss);
    this.#listener.over(this);
    // The stream is closed last: closing it first would be a hang-up, after which a lock-delay runs (rule C8).
    if (isKnown) await this.#delete();
    this.#feed.stop();
  }

  async #delete(): Promise<void> {
    const path = `/v1/sessions/${this.id}`;
    const { tasks, transport } = this.#around;
    const deleted = transport.call({ method: 'DELETE', path, limitMs: CALL_MS_MAX, isBackground: true }).then(
      () => undefined,
      // It ends by itself one TTL after our last sign of life.
      () => undefined,
    );
    tasks.add(deleted);
    await deleted;
  }
}

interface Opened {
  readonly id: string;
  readonly ttlMs: number;
  readonly everyMs: number;
}

function openedFrom({ session_id: id, ttl_s: ttlS, keepalive_every_s: everyS }: Json): Opened {
  if (typeof id === 'string' && typeof ttlS === 'number' && typeof everyS === 'number')
    return { id, ttlMs: ttlS * MS_PER_SECOND, everyMs: everyS * MS_PER_SECOND };
  throw new LeaseholdError('UNAVAILABLE', 'the answer of POST /v1/sessions names no session');
}

function notConfirmed({ name, token }: GrantReference): LeaseholdError {
  const message =
    'the release is not confirmed yet; it goes on by itself, and the lock is no longer held here';
  return new LeaseholdError('UNAVAILABLE', message, { name, token });
}
