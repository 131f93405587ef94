/**
 * One session in one lock group: opened, attached again after every reconnect, kept alive, ended. Requests are sent again,
 * unchanged but for the attach number, until they are answered: each is idempotent by key or token (rules C4, C7, S3).
 */
import type { LockEvent, SessionId } from '../api/entry.ts';
import type { ClientRequestBody, KeepaliveStatus } from '../api/wire.ts';
import type { Timer } from '../platform/runtime.ts';
import { BeliefCheck } from './belief-check.ts';
import type { AttachableSession, GroupClient } from './group-client.ts';
import { LeaseAlarm } from './lease-alarm.ts';
import { type LeaseClock, type Moment, momentOf } from './lease-clock.ts';
import type { SessionOwner } from './session-owner.ts';
import {
  confirmAll,
  type Pending,
  type RequestingSession,
  type RequestOptions,
  retryLater,
  SessionRequests,
} from './session-requests.ts';
import type { OnAnswer } from './stream-requests.ts';

export interface GroupSessionOptions {
  readonly clientName: string;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  readonly secret: string;
  readonly secretHash: string;
  /** A session to go on with after a restart (rule A4); `dormant`: not before `wake`. */
  readonly resume?: { readonly session: SessionId; readonly attach: number; readonly dormant: boolean };
}

type Phase = 'opening' | 'dormant' | 'attaching' | 'live' | 'over';

export class GroupSession implements AttachableSession, RequestingSession {
  readonly ttlMs: number;
  readonly #client: GroupClient;
  readonly #owner: SessionOwner;
  readonly #options: GroupSessionOptions;
  readonly #requests: SessionRequests;
  readonly #alarm: LeaseAlarm;
  readonly #beliefCheck = new BeliefCheck();
  #phase: Phase;
  #id: SessionId;
  #attach: number;
  #isKnown: boolean;
  #whyNotOpen: string | null = null;
  #hasBeenLive = false;
  #isClosing = false;
  #closed: Promise<void> | null = null;
  /** The next try of opening or attaching. */
  #retry: Timer | null = null;
  #connectedAtMs: number;
  readonly #whenLive: (() => void)[] = [];

  constructor(client: GroupClient, owner: SessionOwner, options: GroupSessionOptions) {
    const { resume, ttlMs } = options;
    this.ttlMs = ttlMs;
    this.#client = client;
    this.#owner = owner;
    this.#options = options;
    this.#id = resume?.session ?? 0;
    this.#attach = resume?.attach ?? 0;
    this.#isKnown = resume !== undefined;
    this.#phase = resume === undefined ? 'opening' : resume.dormant ? 'dormant' : 'attaching';
    this.#requests = new SessionRequests(client, this);
    this.#alarm = new LeaseAlarm(client.runtime, ttlMs, owner);
    this.#connectedAtMs = client.runtime.clock.monotonicMs();
    if (this.#isKnown) {
      client.identified(this);
      this.#alarm.set();
    }
    client.add(this);
  }

  get id(): SessionId {
    return this.#id;
  }

  get attach(): number {
    return this.#attach;
  }

  get lease(): LeaseClock {
    return this.#alarm.lease;
  }

  /** What the group said when it could not open this session yet; null: nothing, or it is open. */
  get whyNotOpen(): string | null {
    return this.#whyNotOpen;
  }

  /** It was never open, so nothing is held in it. */
  get isOpening(): boolean {
    return this.#phase === 'opening';
  }

  get isLive(): boolean {
    return this.#phase === 'live';
  }

  get isOver(): boolean {
    return this.#phase === 'over';
  }

  /** Until it is time to try another way to the group: then this one has had its time (rule S8). */
  get unheardInMs(): number {
    if (this.#phase === 'dormant' || this.#phase === 'over') return Number.POSITIVE_INFINITY;
    const triedMs = this.#client.runtime.clock.monotonicMs() - this.#connectedAtMs;
    return (2 * this.ttlMs) / 5 - Math.min(this.lease.silentMs, triedMs);
  }

  /**
   * Sends a request for this session, now or when it is attached, until it is answered or the session is over. Call what it
   * returns and it is not sent again: whatever takes it back has to be the last word about it. True: it had no answer yet.
   */
  request(
    build: (session: SessionId, attach: number) => ClientRequestBody,
    onAnswer: OnAnswer,
    { isPersistent = false, isFirst = false }: RequestOptions = {},
  ): () => boolean {
    if (this.#phase === 'over') return () => false;
    return this.#requests.add({ build, onAnswer, isPersistent }, isFirst);
  }

  superseded(): void {
    this.#attachAnew();
  }

  expired(): void {
    this.#over('the lock service has ended the session');
  }

  /** Ends the session; resolves when the group has confirmed it, or was found to have ended it already. */
  close(clean: boolean): Promise<void> {
    this.#closed ??= this.#close(clean);
    return this.#closed;
  }

  #close(clean: boolean): Promise<void> {
    if (this.#phase === 'over') return Promise.resolve();
    this.#isClosing = true;
    this.#alarm.cancel();
    // Whatever else was under way comes to the same end: the owner has given everything up.
    const overtaken = this.#requests.takeAll();
    return new Promise((resolve) => {
      const done = (): void => {
        confirmAll([...overtaken, ...this.#end()]);
        resolve();
      };
      if (!this.#isKnown && !this.#client.isConnected) return done();
      this.request((session, attach) => ({ type: 'closeSession', session, attach, clean }), done, {
        isPersistent: true,
      });
      // The number on disk is the one in force, so closing needs no attach, which would count as a keepalive.
      if (this.#phase !== 'dormant') return;
      if (this.#client.isConnected) this.#live();
      else this.#phase = 'attaching';
    });
  }

  /** The process ends: nothing is told to anybody, and the session is left as it is. */
  stop(): void {
    this.#end();
  }

  /** Lets a dormant session go on: its application is back (rule A3). */
  wake(): void {
    if (this.#phase !== 'dormant') return;
    this.#phase = 'attaching';
    if (this.#client.isConnected) this.connected();
  }

  /**
   * Resolves when what this session has is certain: at once, or after a restart when the group has confirmed it for the first time, or
   * that it is over (rule A4).
   */
  confirmed(): Promise<void> {
    const isNew = this.#options.resume === undefined;
    if (isNew || this.#hasBeenLive || this.#phase === 'over') return Promise.resolve();
    return new Promise((resolve) => this.#whenLive.push(resolve));
  }

  /** There is a stream again. */
  connected(): void {
    this.#retry?.cancel();
    this.#connectedAtMs = this.#client.runtime.clock.monotonicMs();
    if (this.#phase === 'attaching') this.#attachAgain();
    else if (this.#phase !== 'opening') return;
    else if (!this.#isClosing) this.#open();
    // Given up before the group said its number: if it was opened all the same, it holds nothing and is over in one TTL.
    else confirmAll(this.#end());
  }

  disconnected(): void {
    if (this.#phase === 'live') this.#phase = 'attaching';
  }

  /** What this session adds to the keepalive frame; nothing once its application is done with it or gone (rule A3). */
  keepalive(): { readonly session: SessionId; readonly attach: number } | null {
    return this.#phase === 'live' && !this.#isClosing ? { session: this.#id, attach: this.#attach } : null;
  }

  /** The answer to a keepalive sent at `sent`. */
  kept(status: KeepaliveStatus, sent: Moment): void {
    if (this.#phase !== 'live' || status.attach !== this.#attach) return;
    if (!status.alive) {
      this.#over('the lock service has ended the session');
      return;
    }
    // First, since this very answer must not extend what it names (rule C9).
    for (const { token, cause } of status.revoking) this.#owner.revoking(token, cause);
    this.#acknowledge(sent);
    this.#compare(status);
  }

  notice(event: LockEvent): void {
    switch (event.type) {
      case 'granted':
        this.#owner.granted(event.key, event.token);
        return;
      case 'refused':
        this.#owner.refused(event.key, event.code);
        return;
      case 'revoking':
        this.#owner.revoking(event.token, event.cause);
        return;
      case 'revoked':
        this.#owner.revoked(event.token);
        return;
      case 'sessionEnding':
        this.#over(
          event.cause === 'expired' ? 'the session expired' : 'the lock service has ended the session',
        );
        return;
      default:
        return;
    }
  }

  /**
   * The one request without a key: when its answer is lost and it is sent again, the session of the first one stays, empty, for a TTL.
   * Nobody can be told its id, so nobody can close it; a key for it would be one more thing for the state to remember for ever.
   */
  #open(): void {
    const { clientName, ttlMs, maxHoldMs, secretHash } = this.#options;
    const sent = momentOf(this.#client.runtime.clock);
    const body = { type: 'open', client: clientName, ttlMs, maxHoldMs, secretHash } as const;
    this.#client.send(body, (answer) => {
      if (this.#phase !== 'opening') return;
      if (answer.type === 'opened') {
        this.#id = answer.session;
        this.#attach = 1;
        this.#isKnown = true;
        this.#whyNotOpen = null;
        this.#client.identified(this);
        this.#owner.identified(this.#id, this.#attach);
        this.#acknowledge(sent);
        this.#live();
      } else if (answer.type === 'rejected' && answer.code === 'UNAVAILABLE') {
        this.#whyNotOpen = answer.message;
        if (this.#isClosing) return confirmAll(this.#end());
        this.#tryLater(() => {
          if (this.#phase === 'opening') this.#open();
        });
      } else if (answer.type === 'refused' || answer.type === 'rejected') {
        const left = this.#end();
        this.#owner.openRefused(answer);
        confirmAll(left);
      }
    });
  }

  #attachAgain(): void {
    this.#attach++;
    this.#owner.identified(this.#id, this.#attach);
    const { secret } = this.#options;
    const sent = momentOf(this.#client.runtime.clock);
    const attach = this.#attach;
    this.#client.send({ type: 'attachWithSecret', session: this.#id, attach, secret }, (answer) => {
      if (this.#phase !== 'attaching' || attach !== this.#attach) return;
      if (answer.type === 'attached') {
        // As in `kept`: a notice of it may have been lost with the stream before.
        for (const { token, revoking } of answer.grants)
          if (revoking !== null) this.#owner.revoking(token, revoking);
        this.#acknowledge(sent);
        // A session that is closing gives up all of it at once, and in the way it closes (rule C8).
        if (!this.#isClosing) this.#owner.attached(answer.grants, answer.waits);
        this.#live();
      } else if (answer.type === 'refused' && answer.code === 'SESSION_EXPIRED') {
        this.#over('the lock service has ended the session');
      } else {
        this.#tryLater(() => {
          if (this.#phase === 'attaching' && this.#client.isConnected) this.#attachAgain();
        });
      }
    });
  }

  #live(): void {
    this.#phase = 'live';
    this.#hasBeenLive = true;
    for (const resolve of this.#whenLive.splice(0)) resolve();
    this.#requests.sendAll();
  }

  /** Opens or attaches once more, unless a new stream comes first. */
  #tryLater(action: () => void): void {
    this.#retry?.cancel();
    this.#retry = retryLater(this.#client.runtime, action);
  }

  /** On the same stream; what is on its way is sent again after it. */
  #attachAnew(): void {
    if (this.#phase !== 'live') return;
    this.#phase = 'attaching';
    this.#attachAgain();
  }

  #acknowledge(sent: Moment): void {
    const afterSuspend = this.#alarm.acknowledge(sent);
    if (this.#isClosing) return;
    this.#owner.acknowledged(afterSuspend);
    this.#alarm.set();
  }

  /** The group counts other grants than we do, although nothing is under way: ask for the list (rule S3). */
  #compare(status: Extract<KeepaliveStatus, { alive: true }>): void {
    const { tokens, isSettled } = this.#owner.belief();
    if (!this.#beliefCheck.differs(status, tokens, isSettled && this.#requests.isEmpty)) return;
    this.#client.runtime.logger.warn(
      { session: this.#id, theirs: status.grants },
      'grants differ: attaching again',
    );
    this.#attachAnew();
  }

  #over(reason: string): void {
    if (this.#phase === 'over') return;
    const left = this.#end();
    this.#owner.over(reason);
    confirmAll(left);
  }

  /** Leaves the line; returns what had no answer yet. */
  #end(): readonly Pending[] {
    const left = this.#requests.takeAll();
    this.#phase = 'over';
    this.#alarm.cancel();
    this.#retry?.cancel();
    for (const resolve of this.#whenLive.splice(0)) resolve();
    this.#client.remove(this);
    return left;
  }
}
