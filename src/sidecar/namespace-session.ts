/**
 * What one application session has in one namespace: its group session, its acquires under way, its grants. Opened when the
 * application first touches the namespace (rule A6); lost as a whole when its deadline passes or the group ends it.
 */
import type { GrantView, RefusalCode, RevokeCause, SessionId, Token, WaitView } from '../api/entry.ts';
import { type ErrorCode, type ErrorDetails, LeaseholdError } from '../api/errors.ts';
import { bucketOf } from '../api/names.ts';
import type { AnswerBody } from '../api/wire.ts';
import { Attempt, type AttemptBody } from './attempt.ts';
import { EndedTokens } from './ended-tokens.ts';
import type { GroupClient } from './group-client.ts';
import { GroupSession, type GroupSessionOptions, type Refusal, type SessionOwner } from './group-session.ts';
import type { AcquireOptions } from './service.ts';

export interface Grant {
  readonly name: string;
  readonly token: Token;
  readonly key: string;
  readonly owner: string;
  readonly request: string | undefined;
  /** Set while a revoke runs: the deadline as it was, no longer moved by keepalives (rule C9). */
  frozenDeadlineMs: number | null;
}

/** What the application's session wants to know. Names are below the alias. */
export interface NamespaceListener {
  identified(session: SessionId, attach: number): void;
  queued(name: string, position: number, request: string | undefined): void;
  /** Must be on disk when it returns (rule A4). */
  granted(grant: Grant): void;
  /** The application gave it up, or never had it. */
  ended(grant: Grant): void;
  revoking(grant: Grant, cause: RevokeCause): void;
  lost(grant: Grant, reason: string): void;
  jeopardy(): void;
  restored(): void;
  /** This namespace's session is over: nothing is held or waited for in it any more. */
  over(reason: string): void;
}

/** How long a call may stay without any answer of the group (rule S11). */
const ANSWER_MS_MIN = 2_000;
const ANSWER_MS_MAX = 5_000;
/** Beyond its wait limit a queued call waits this long for the group to say so, then answers by itself. */
const WAIT_GRACE_MS = 1_000;
const ACKS_PER_COMMAND_MAX = 64;
/** Requests whose grant is over that are still answered from memory. */
const SETTLED_REQUESTS_MAX = 256;

export interface AcquireCall extends AttemptBody {
  readonly waitMs: number;
  readonly purpose: string;
  readonly request: string | undefined;
  readonly hangUp: AcquireOptions['hangUp'];
}

export class NamespaceSession implements SessionOwner {
  readonly ended = new EndedTokens();
  readonly #client: GroupClient;
  readonly #listener: NamespaceListener;
  readonly #session: GroupSession;
  readonly #keyPrefix: string;
  readonly #attempts = new Map<string, Attempt>();
  readonly #byRequest = new Map<string, Attempt>();
  readonly #grants = new Map<Token, Grant>();
  /** Given up by the application, not yet confirmed by the group: no longer held, still counted there. */
  readonly #releasing = new Map<Token, Grant>();
  readonly #acks: string[] = [];
  /** Granted once and over by now; the oldest is forgotten first. */
  readonly #settled = new Set<Attempt>();
  #lastKey = 0;
  #isInJeopardy = false;

  /** `known`: grants of an earlier life of this sidecar, to be confirmed by the attach. */
  constructor(
    client: GroupClient,
    listener: NamespaceListener,
    options: GroupSessionOptions & { readonly known?: readonly Grant[] },
  ) {
    this.#client = client;
    this.#listener = listener;
    this.#keyPrefix = client.runtime.random.hex(6);
    for (const grant of options.known ?? []) this.#grants.set(grant.token, grant);
    this.#session = new GroupSession(client, this, options);
  }

  get ttlMs(): number {
    return this.#session.ttlMs;
  }

  get isOver(): boolean {
    return this.#session.isOver;
  }

  /** On the monotonic clock; every grant's deadline that is not frozen. */
  get deadlineMs(): number {
    return this.#session.lease.deadlineMs;
  }

  get grants(): Iterable<Grant> {
    return this.#grants.values();
  }

  get grantCount(): number {
    return this.#grants.size;
  }

  get waitCount(): number {
    let waits = 0;
    for (const { state } of this.#attempts.values()) if (state.kind === 'queued') waits++;
    return waits;
  }

  /** Whether calls wait here for an answer: their application is evidently there. */
  get hasCalls(): boolean {
    for (const attempt of this.#attempts.values()) if (attempt.hasCalls) return true;
    return false;
  }

  wake(): void {
    this.#session.wake();
  }

  /** The grant, while it may be believed in: held by time, on the monotonic clock (rules A1, A2). */
  held(name: string, token: Token): { readonly grant: Grant; readonly deadlineMs: number } | null {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.name !== name || this.#session.isOver || this.#session.lease.isSuspected)
      return null;
    const deadlineMs = this.deadlineOf(grant);
    return this.#client.runtime.clock.monotonicMs() < deadlineMs ? { grant, deadlineMs } : null;
  }

  deadlineOf(grant: Grant): number {
    return Math.min(this.deadlineMs, grant.frozenDeadlineMs ?? Number.POSITIVE_INFINITY);
  }

  acquire(call: AcquireCall): Promise<Token> {
    const known = call.request === undefined ? undefined : this.#byRequest.get(call.request);
    if (known !== undefined) return this.#again(known, call);
    const key = `${this.#keyPrefix}-${(++this.#lastKey).toString(36)}`;
    const attempt = new Attempt(key, call, call.request);
    this.#attempts.set(key, attempt);
    if (call.request !== undefined) this.#byRequest.set(call.request, attempt);
    const outcome = attempt.join(call.hangUp, () => this.#abandoned(attempt));
    this.#ask(attempt, call);
    return outcome;
  }

  /** Gives a grant up. Told once; repeated on the way until the group confirms it, whoever still waits for that. */
  release(name: string, token: Token): Promise<void> | null {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.name !== name) return null;
    this.#giveUp(grant);
    this.ended.add({ name, token, how: 'released' });
    return this.#answerWithin(ANSWER_MS_MAX, (done) => this.#releaseLater(grant, done));
  }

  /** Ends everything here; resolves when the group has confirmed it. */
  close(clean: boolean, reason: string): Promise<void> {
    this.#loseAll('SESSION_EXPIRED', reason, clean ? 'released' : 'lost');
    return this.#session.close(clean);
  }

  identified(session: SessionId, attach: number): void {
    this.#listener.identified(session, attach);
  }

  openRefused(refusal: Refusal): void {
    const { code, message, details } = errorOf(refusal);
    for (const attempt of this.#attempts.values()) attempt.fail(code, message, details);
    this.#forgetAttempts();
    this.#listener.over(message);
  }

  /** Rule S3: what is not listed is lost; what is listed but was given up is given up again. */
  attached(grants: readonly GrantView[], waits: readonly WaitView[]): void {
    const listed = new Map(grants.map((grant) => [grant.token, grant]));
    for (const grant of [...this.#grants.values()]) {
      if (!listed.has(grant.token)) this.#lose(grant, 'the lock service does not know this grant any more');
    }
    for (const { token, keys, revoking } of grants) {
      if (revoking) this.revoking(token, 'break');
      if (this.#grants.has(token) || this.#releasing.has(token)) continue;
      const key = keys[0] as string;
      if (this.#attempts.has(key)) this.granted(key, token);
      else this.#cancelUntilConfirmed(key);
    }
    for (const { key } of waits) if (!this.#attempts.has(key)) this.#cancelUntilConfirmed(key);
  }

  granted(key: string, token: Token): void {
    const attempt = this.#attempts.get(key);
    // An answer on an old way, or a grant that was given up meanwhile: the cancel under way undoes it.
    if (attempt === undefined || attempt.state.kind === 'granted' || attempt.state.kind === 'cancelling')
      return;
    if (this.#session.lease.isPassed || !attempt.hasCalls) {
      this.#cancel(attempt);
      return;
    }
    const { name, owner } = attempt.body;
    const grant: Grant = { name, token, key, owner, request: attempt.request, frozenDeadlineMs: null };
    attempt.state = { kind: 'granted', token };
    this.#grants.set(token, grant);
    this.#listener.granted(grant);
    this.#acks.push(key);
    if (attempt.request === undefined) this.#attempts.delete(key);
    attempt.succeed(token);
  }

  refused(key: string, code: RefusalCode): void {
    const attempt = this.#attempts.get(key);
    if (attempt === undefined) return;
    this.#refuse(attempt, code, REFUSALS[code], {});
  }

  revoking(token: Token, cause: RevokeCause): void {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.frozenDeadlineMs !== null) return;
    grant.frozenDeadlineMs = this.deadlineMs;
    this.#listener.revoking(grant, cause);
    const { clock, timers } = this.#client.runtime;
    timers.after(Math.max(0, grant.frozenDeadlineMs - clock.monotonicMs()), () => this.revoked(token));
  }

  revoked(token: Token): void {
    const grant = this.#grants.get(token);
    if (grant !== undefined) this.#lose(grant, 'revoked');
  }

  acknowledged(): void {
    if (!this.#isInJeopardy) return;
    this.#isInJeopardy = false;
    this.#listener.restored();
  }

  jeopardy(): void {
    this.#isInJeopardy = true;
    this.#listener.jeopardy();
  }

  /**
   * Rule A1: final for every grant. With grants lost the group must not keep them for us, so the session goes as a whole;
   * without any, those that wait keep their places through the outage (rule S11).
   */
  deadlinePassed(): void {
    if (this.#grants.size === 0) return;
    const reason = 'the deadline passed without an acknowledged keepalive';
    void this.close(false, reason);
    this.#listener.over(reason);
  }

  over(reason: string): void {
    this.#loseAll('SESSION_EXPIRED', reason, 'lost');
    this.#listener.over(reason);
  }

  belief(): { readonly tokens: Iterable<Token>; readonly isSettled: boolean } {
    return { tokens: this.#grants.keys(), isSettled: this.#releasing.size === 0 && !this.#hasOpenAttempts() };
  }

  #hasOpenAttempts(): boolean {
    for (const { state } of this.#attempts.values()) if (state.kind !== 'granted') return true;
    return false;
  }

  /** The same `request` again: joins what is under way, or is told how it stands. */
  async #again(attempt: Attempt, call: AcquireCall): Promise<Token> {
    if (!attempt.isSame(call)) {
      throw new LeaseholdError('INVALID', 'this request was used for another acquire', { field: 'request' });
    }
    switch (attempt.state.kind) {
      case 'granted':
        return this.#tokenOf(attempt, attempt.state.token);
      case 'cancelling':
        throw new LeaseholdError(
          'UNAVAILABLE',
          'an earlier attempt of this request is still being cancelled',
        );
      case 'asked':
      case 'queued':
        return attempt.join(call.hangUp, () => this.#abandoned(attempt));
    }
  }

  #tokenOf(attempt: Attempt, token: Token): Token {
    if (this.#grants.has(token)) return token;
    const message = `this request was granted token ${token}, which is not held any more`;
    throw new LeaseholdError('NOT_HELD', message, { token, name: attempt.body.name });
  }

  #ask(attempt: Attempt, call: AcquireCall): void {
    const { timers } = this.#client.runtime;
    const { name, mode, permits, owner, reentrant, purpose, waitMs } = call;
    const acks = this.#takeAcks();
    const bucket = bucketOf(name);
    this.#session.request(
      (session, attach) => ({
        type: 'acquire',
        session,
        attach,
        key: attempt.key,
        name,
        mode,
        permits,
        reentrant,
        owner,
        purpose,
        waitMs,
        bucket,
        mapVersion: 1,
        acks,
      }),
      (answer) => this.#answered(attempt, answer),
    );
    const answerMs = Math.min(Math.max(waitMs, ANSWER_MS_MIN), ANSWER_MS_MAX);
    attempt.keep(timers.after(answerMs, () => this.#unanswered(attempt)));
    if (waitMs > 0)
      attempt.keep(timers.after(waitMs + WAIT_GRACE_MS, () => this.#waitedTooLong(attempt, waitMs)));
  }

  #answered(attempt: Attempt, answer: AnswerBody): void {
    if (attempt.state.kind === 'cancelling' || attempt.state.kind === 'granted') return;
    switch (answer.type) {
      case 'granted':
        this.granted(attempt.key, answer.token);
        return;
      case 'queued':
        attempt.state = { kind: 'queued', position: answer.position };
        this.#listener.queued(attempt.body.name, answer.position, attempt.request);
        return;
      case 'ended':
        this.#refuse(attempt, 'CANCELLED', `the acquire is over (${answer.by})`, {});
        return;
      case 'refused':
      case 'rejected': {
        const { code, message, details } = errorOf(answer);
        this.#refuse(attempt, code, message, details);
        return;
      }
      default:
        this.#refuse(attempt, 'UNAVAILABLE', `unexpected answer ${answer.type}`, {});
    }
  }

  /** Refused for good: the group remembers it until it is acknowledged, then the same request may be tried anew. */
  #refuse(attempt: Attempt, code: ErrorCode, message: string, details: ErrorDetails): void {
    this.#forget(attempt);
    this.#acks.push(attempt.key);
    attempt.fail(code, message, details);
  }

  #unanswered(attempt: Attempt): void {
    if (attempt.state.kind !== 'asked') return;
    attempt.fail('UNAVAILABLE', 'the lock service did not answer in time; nothing was granted');
    this.#cancel(attempt);
  }

  #waitedTooLong(attempt: Attempt, waitMs: number): void {
    if (attempt.state.kind !== 'queued') return;
    attempt.fail('WAIT_TIMEOUT', `not granted within ${waitMs} ms`);
    this.#cancel(attempt);
  }

  /** The last caller hung up before anybody got the token: it is taken back, also when it was granted (rule A5). */
  #abandoned(attempt: Attempt): void {
    if (attempt.isWanted) return;
    if (attempt.state.kind === 'granted') {
      const grant = this.#grants.get(attempt.state.token);
      if (grant === undefined) return;
      this.#grants.delete(grant.token);
      this.#listener.ended(grant);
    }
    this.#cancel(attempt);
  }

  #cancel(attempt: Attempt): void {
    if (attempt.state.kind === 'cancelling') return;
    attempt.state = { kind: 'cancelling' };
    this.#cancelUntilConfirmed(attempt.key, () => this.#forget(attempt));
  }

  #cancelUntilConfirmed(key: string, onConfirmed?: () => void): void {
    const acks = this.#takeAcks();
    this.#session.request(
      (session, attach) => ({ type: 'cancel', session, attach, key, acks }),
      () => onConfirmed?.(),
      { isPersistent: true },
    );
  }

  #giveUp(grant: Grant): void {
    this.#drop(grant);
    this.#releasing.set(grant.token, grant);
  }

  #releaseLater(grant: Grant, onConfirmed: () => void): void {
    const { name, token } = grant;
    const acks = this.#takeAcks();
    this.#session.request(
      (session, attach) => ({ type: 'release', session, attach, name, token, key: '', acks }),
      () => {
        this.#releasing.delete(token);
        this.#listener.ended(grant);
        onConfirmed();
      },
      { isPersistent: true },
    );
  }

  #answerWithin(limitMs: number, start: (done: () => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#client.runtime.timers.after(limitMs, () => {
        const message = 'not confirmed yet; the release goes on by itself and the lock is no longer yours';
        reject(new LeaseholdError('UNAVAILABLE', message));
      });
      start(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** No longer held. Its request, if it had one, is answered from memory for a while. */
  #drop(grant: Grant): void {
    this.#grants.delete(grant.token);
    const attempt = grant.request === undefined ? undefined : this.#byRequest.get(grant.request);
    if (attempt === undefined) return;
    this.#settled.add(attempt);
    for (const oldest of this.#settled) {
      if (this.#settled.size <= SETTLED_REQUESTS_MAX) break;
      this.#settled.delete(oldest);
      this.#forget(oldest);
    }
  }

  #lose(grant: Grant, reason: string): void {
    this.#drop(grant);
    this.ended.add({ name: grant.name, token: grant.token, how: 'lost' });
    this.#listener.lost(grant, reason);
    this.#listener.ended(grant);
  }

  #loseAll(code: ErrorCode, reason: string, how: 'released' | 'lost'): void {
    for (const grant of [...this.#grants.values()]) {
      if (how === 'lost') {
        this.#lose(grant, reason);
        continue;
      }
      this.#drop(grant);
      this.ended.add({ name: grant.name, token: grant.token, how });
      this.#listener.ended(grant);
    }
    for (const attempt of this.#attempts.values()) attempt.fail(code, reason);
    this.#forgetAttempts();
  }

  #forget(attempt: Attempt): void {
    this.#attempts.delete(attempt.key);
    if (attempt.request !== undefined) this.#byRequest.delete(attempt.request);
  }

  #forgetAttempts(): void {
    this.#attempts.clear();
    this.#byRequest.clear();
  }

  #takeAcks(): readonly string[] {
    return this.#acks.splice(0, ACKS_PER_COMMAND_MAX);
  }
}

const REFUSALS: Record<RefusalCode, string> = {
  INVALID: 'the namespace does not allow this request any more',
  FORBIDDEN: 'this identity is not a consumer of the namespace any more',
  QUOTA_EXCEEDED: 'the namespace holds as many locks as it may',
  NAMESPACE_NOT_FOUND: 'the namespace has been removed',
  HELD: 'the lock is held',
  WAIT_TIMEOUT: 'the lock did not become free in time',
  QUARANTINED: 'the name is out of service',
  SESSION_EXPIRED: 'the session has ended',
  QUEUE_FULL: 'the queue is full',
};

interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

function errorOf(refusal: Refusal): PlainError {
  const { type: _type, code, message, ...details } = refusal;
  if (code === 'SUPERSEDED') return { code: 'UNAVAILABLE', message, details };
  return { code, message, details };
}
