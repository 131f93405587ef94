/**
 * The acquires of one session in one namespace, from the application's call to its outcome: keys, repeats of a `request`,
 * limits of waiting, cancels that go on until they are confirmed (rules C4, C5, A5).
 */
import type { Acquire, RefusalCode, SessionId, Token, WaitView } from '../api/entry.ts';
import { LeaseholdError } from '../api/errors.ts';
import { bucketOf } from '../api/names.ts';
import type { AnswerBody } from '../api/wire.ts';
import type { Runtime } from '../platform/runtime.ts';
import { type AcquireBody, isSameBody } from './acquire-body.ts';
import { Attempt } from './attempt.ts';
import type { GrantedAcquire } from './grants.ts';
import type { GroupSession } from './group-session.ts';
import { endingError, errorOf, REFUSAL_TEXTS, waitedFor, wrongGroup } from './refusals.ts';
import { RequestMemory } from './request-memory.ts';
import type { AcquireOptions } from './service.ts';
import { Window } from './window.ts';

/** How long a call may stay without any answer of the group (rule S11). */
const ANSWER_MS_MIN = 2_000;
const ANSWER_MS_MAX = 5_000;
/** Beyond its wait limit a queued call waits this long for the group to say so, then answers by itself. */
const WAIT_GRACE_MS = 1_000;
const ACKS_PER_COMMAND_MAX = 64;
/** Sent and not answered. With what is not acknowledged yet that is less than the group keeps for a session (rule C5). */
const ASKED_MAX = 128;

export interface AcquireCall {
  readonly body: AcquireBody;
  readonly waitMs: number;
  readonly purpose: string;
  readonly request: string | undefined;
  readonly hangUp: AcquireOptions['hangUp'];
}

export interface AcquiresOwner {
  queued(name: string, position: number, request: string | undefined): void;
  /** The group granted `attempt`; false: too late, it must be taken back (rule A1). */
  granted(attempt: Attempt, token: Token): boolean;
  isHeld(key: string, token: Token): boolean;
  /** A grant that turned out to be nobody's: its callers hung up before they heard of it. */
  unwanted(key: string, token: Token): void;
  /** A `request` is no longer answered from memory. */
  forgotten(request: string): void;
}

/** What was granted in an earlier life of this sidecar (rule A4): what was held at its end, and `request`s over by then. */
export interface KnownGrants {
  readonly held: readonly GrantedAcquire[];
  readonly over: readonly GrantedAcquire[];
}

const STILL_CANCELLED = 'an earlier attempt of this request is still being cancelled';

export class Acquires {
  readonly #runtime: Runtime;
  readonly #owner: AcquiresOwner;
  readonly #session: () => GroupSession;
  readonly #keyPrefix: string;
  #lastKey = 0;
  /** Under way, and granted ones that have a `request`, by key. */
  readonly #attempts = new Map<string, Attempt>();
  readonly #requests = new RequestMemory();
  readonly #acks: string[] = [];
  readonly #window = new Window(ASKED_MAX);

  constructor(runtime: Runtime, session: () => GroupSession, owner: AcquiresOwner) {
    this.#runtime = runtime;
    this.#session = session;
    this.#owner = owner;
    // A sidecar that restarts must not use a key of its earlier life again.
    this.#keyPrefix = runtime.random.hex(6);
  }

  get waiting(): number {
    return [...this.#attempts.values()].filter(({ state }) => state.kind === 'queued').length;
  }

  /**
   * Whether nothing is under way that may change what the group counts for us. What waits may be granted at any time, but in the order
   * of the log: a count that has a grant of it comes behind the word of that.
   */
  get isSettled(): boolean {
    return [...this.#attempts.values()].every(
      ({ state: { kind } }) => kind === 'granted' || kind === 'queued',
    );
  }

  /** Whether its outcome is still to come, or to be taken back. */
  awaits(key: string): boolean {
    const attempt = this.#attempts.get(key);
    return attempt !== undefined && attempt.state.kind !== 'granted';
  }

  /**
   * What the group says waits, after an attach. An attempt that does not any more has come to its end while nobody could be
   * told: it is asked for again (rule S3). One that does, though no answer said so, is not: sent again it might be refused on
   * its way, and the group would keep its place for nobody (rule A5).
   */
  listed(waits: readonly WaitView[]): void {
    const positions = new Map(waits.map(({ key, position }) => [key, position]));
    for (const attempt of this.#attempts.values()) {
      const { kind } = attempt.state;
      const position = positions.get(attempt.key);
      if (kind === 'queued' && position === undefined) attempt.askAgain();
      if (kind === 'asked' && position !== undefined) this.#queued(attempt, position);
    }
  }

  acquire(call: AcquireCall): Promise<Token> {
    const known = this.#requests.find(call.request);
    if (known !== undefined) return this.#again(known, call);
    // Gone before anything was sent: a cancel sent now would overtake its own acquire.
    if (call.hangUp.aborted) return Promise.reject(new LeaseholdError('CANCELLED', 'the caller hung up'));
    const key = `${this.#keyPrefix}-${(++this.#lastKey).toString(36)}`;
    const attempt = new Attempt(key, call.body, call.request);
    this.#attempts.set(attempt.key, attempt);
    this.#requests.add(attempt);
    const outcome = attempt.join(call.hangUp, () => this.#abandoned(attempt));
    this.#ask(attempt, call);
    return outcome;
  }

  granted(key: string, token: Token): void {
    const attempt = this.#attempts.get(key);
    // An answer on an old way, or a grant that was given up meanwhile: the cancel under way undoes it.
    if (attempt === undefined || attempt.state.kind === 'granted' || attempt.state.kind === 'cancelling')
      return;
    if (!attempt.hasCalls || !this.#owner.granted(attempt, token)) {
      const message = 'the lock was granted too late to be told; it is given back';
      this.#giveUp(attempt, new LeaseholdError('UNAVAILABLE', message));
      return;
    }
    attempt.takeBack();
    attempt.state = { kind: 'granted', token };
    this.#acks.push(key);
    this.#sendAcks();
    if (attempt.request === undefined) this.#attempts.delete(key);
    attempt.succeed(token);
  }

  refused(key: string, code: RefusalCode): void {
    const attempt = this.#attempts.get(key);
    // The cancel under way ends it too, and until then its `request` is taken: another attempt of it would be forgotten with this one.
    if (attempt === undefined || attempt.state.kind === 'cancelling') return;
    this.#refuse(attempt, new LeaseholdError(code, REFUSAL_TEXTS[code]));
    this.#sendAcks();
  }

  /** Granted and already being revoked when we hear of it: too late to be told to anybody. */
  takenBack(key: string): void {
    const attempt = this.#attempts.get(key);
    if (attempt === undefined || attempt.state.kind === 'granted') return;
    this.#giveUp(attempt, endingError('REVOKED'));
  }

  /** A repeat of what was granted in an earlier life is answered as in that one. */
  restore({ held, over }: KnownGrants): void {
    for (const { key, body, token, request } of [...over, ...held]) {
      // That life may not have come to acknowledge it; twice does no harm (rule C5).
      this.#acks.push(key);
      if (request === undefined) continue;
      const attempt = new Attempt(key, body, request);
      attempt.toldBefore(token);
      this.#attempts.set(key, attempt);
      this.#requests.add(attempt);
    }
    for (const { request } of over) this.ended(request);
  }

  /** The grant of this `request` is over; a repeat is told so for a while. */
  ended(request: string | undefined): void {
    const attempt = this.#requests.find(request);
    const oldest = attempt && this.#requests.settle(attempt);
    if (oldest === undefined) return;
    this.#forget(oldest);
    if (oldest.request !== undefined) this.#owner.forgotten(oldest.request);
  }

  /** The session is over: nothing comes of any of them. */
  failAll(error: LeaseholdError): void {
    for (const attempt of this.#attempts.values()) attempt.fail(error);
    this.#attempts.clear();
    this.#requests.clear();
  }

  /** Keys that the group may forget, to go along with the next command (rule C5). */
  takeAcks(): readonly string[] {
    return this.#acks.splice(0, ACKS_PER_COMMAND_MAX);
  }

  /** `isFirst`: before anything that waits, so that a repeat of the same call does not meet its own orphan. */
  cancelUntilConfirmed(
    key: string,
    {
      isFirst = false,
      onConfirmed = () => undefined,
    }: { readonly isFirst?: boolean; readonly onConfirmed?: () => void },
  ): void {
    const acks = this.takeAcks();
    const build = (session: SessionId, attach: number) =>
      ({ type: 'cancel', session, attach, key, acks }) as const;
    this.#session().request(build, onConfirmed, { isPersistent: true, isFirst });
  }

  /** The same `request` again: joins what is under way, or is told how it stands. */
  async #again(attempt: Attempt, call: AcquireCall): Promise<Token> {
    if (!isSameBody(attempt.body, call.body)) {
      throw new LeaseholdError('INVALID', 'this request was used for another acquire', { field: 'request' });
    }
    const { state } = attempt;
    switch (state.kind) {
      case 'granted':
        if (this.#owner.isHeld(attempt.key, state.token))
          return attempt.join(call.hangUp, () => this.#abandoned(attempt));
        throw new LeaseholdError('NOT_HELD', `this request was granted token ${state.token}, which is over`, {
          token: state.token,
        });
      case 'cancelling':
        throw new LeaseholdError('UNAVAILABLE', STILL_CANCELLED);
      case 'asked':
      case 'queued':
        return this.#join(attempt, call);
    }
  }

  /** A repeat waits for the same outcome, but not longer than it asked for itself. */
  async #join(attempt: Attempt, { waitMs, hangUp }: AcquireCall): Promise<Token> {
    const limit = new AbortController();
    const limitMs = attempt.state.kind === 'queued' ? waitMs : Math.max(waitMs, ANSWER_MS_MIN);
    const timer = this.#runtime.timers.after(limitMs, () => limit.abort());
    try {
      return await attempt.join(AbortSignal.any([hangUp, limit.signal]), () => this.#abandoned(attempt));
    } catch (error) {
      if (!limit.signal.aborted || hangUp.aborted) throw error;
      throw waitedFor(waitMs);
    } finally {
      timer.cancel();
    }
  }

  #ask(attempt: Attempt, call: AcquireCall): void {
    const { purpose, waitMs } = call;
    const { key, body: what } = attempt;
    const body = { key, ...what, purpose, waitMs, bucket: bucketOf(what.name), mapVersion: 1 };
    attempt.askAgain = () => this.#send(attempt, body);
    attempt.leave = this.#window.enter(attempt.askAgain);
    const { timers } = this.#runtime;
    const answerMs = Math.min(Math.max(waitMs, ANSWER_MS_MIN), ANSWER_MS_MAX);
    attempt.keep(timers.after(answerMs, () => this.#unanswered(attempt)));
    if (waitMs > 0) {
      const tooLong = (): void => this.#waitedTooLong(attempt, waitMs);
      attempt.keep(timers.after(waitMs + WAIT_GRACE_MS, tooLong));
      // It may have become a waiter only after that: nothing else would end this call if the group fell silent now.
      attempt.keep(timers.after(Math.max(waitMs + WAIT_GRACE_MS, answerMs), tooLong));
    }
  }

  #send(attempt: Attempt, body: Omit<Acquire, 'type' | 'session' | 'attach' | 'acks'>): void {
    // Asked before and not answered: of two only one could be withdrawn, and the other would be sent again behind the cancel of its key.
    attempt.withdraw();
    const acks = this.takeAcks();
    // What did not get into the log has settled nothing: its acknowledgements go along with another command.
    const withdraw = this.#session().request(
      (session, attach) => ({ type: 'acquire', session, attach, ...body, acks }),
      (answer, isDoubtful) => {
        if (answer.type === 'rejected' || answer.type === 'wrongGroup') this.#acks.push(...acks);
        this.#answered(attempt, answer, isDoubtful);
      },
    );
    attempt.withdraw = () => {
      if (withdraw()) this.#acks.push(...acks);
    };
  }

  #answered(attempt: Attempt, answer: AnswerBody, isDoubtful: boolean): void {
    attempt.leave();
    if (attempt.state.kind === 'cancelling' || attempt.state.kind === 'granted') return;
    switch (answer.type) {
      case 'granted':
        this.granted(attempt.key, answer.token);
        return;
      case 'queued':
        this.#queued(attempt, answer.position);
        return;
      case 'ended':
        this.#refuse(attempt, endingError(answer.by));
        return;
      case 'refused':
        this.#refuse(attempt, errorOf(answer));
        return;
      case 'rejected':
        // Nothing was consumed by this one; a leader before may have granted it, and its answer been lost (rule A5).
        if (isDoubtful && answer.code !== 'INVALID') this.#giveUp(attempt, errorOf(answer));
        else this.#refuse(attempt, errorOf(answer));
        return;
      case 'wrongGroup':
        this.#refuse(attempt, wrongGroup(answer.mapVersion));
        return;
      default:
        this.#refuse(attempt, new LeaseholdError('UNAVAILABLE', `unexpected answer ${answer.type}`));
    }
  }

  #queued(attempt: Attempt, position: number): void {
    attempt.takeBack();
    attempt.state = { kind: 'queued', position };
    this.#owner.queued(attempt.body.name, position, attempt.request);
  }

  /**
   * Of many outcomes at one moment more may be unsettled than the next acquire can acknowledge, and it would be refused. So
   * they go along with cancels of a key that was never used.
   */
  #sendAcks(): void {
    if (this.#acks.length >= ACKS_PER_COMMAND_MAX) this.cancelUntilConfirmed(`${this.#keyPrefix}-0`, {});
  }

  /** Refused for good: the group remembers it until it is acknowledged, then the same request may be tried anew. */
  #refuse(attempt: Attempt, error: LeaseholdError): void {
    // An event may have told it before the answer: behind its own acknowledgement the acquire would start anew.
    attempt.takeBack();
    this.#forget(attempt);
    this.#acks.push(attempt.key);
    attempt.fail(error);
  }

  #unanswered(attempt: Attempt): void {
    if (attempt.state.kind === 'asked') {
      const message =
        this.#session().whyNotOpen ?? 'the lock service did not answer in time; nothing was granted';
      this.#giveUp(attempt, new LeaseholdError('UNAVAILABLE', message));
    }
  }

  #waitedTooLong(attempt: Attempt, waitMs: number): void {
    if (attempt.state.kind === 'queued') this.#giveUp(attempt, waitedFor(waitMs));
  }

  #giveUp(attempt: Attempt, error: LeaseholdError): void {
    attempt.fail(error);
    this.#cancel(attempt);
  }

  /** The last caller hung up before anybody got the token: it is taken back, also when it was granted (rule A5). */
  #abandoned(attempt: Attempt): void {
    if (attempt.isWanted) return;
    if (attempt.state.kind === 'granted') {
      const { token } = attempt.state;
      if (!this.#owner.isHeld(attempt.key, token)) return;
      this.#owner.unwanted(attempt.key, token);
    }
    this.#cancel(attempt);
  }

  #cancel(attempt: Attempt): void {
    if (attempt.state.kind === 'cancelling') return;
    attempt.state = { kind: 'cancelling' };
    attempt.takeBack();
    this.#attempts.set(attempt.key, attempt);
    this.cancelUntilConfirmed(attempt.key, { onConfirmed: () => this.#forget(attempt) });
  }

  #forget(attempt: Attempt): void {
    this.#attempts.delete(attempt.key);
    this.#requests.forget(attempt);
  }
}
