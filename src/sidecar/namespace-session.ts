/**
 * What one application session has in one namespace: its group session, acquires under way, grants. Opened when the application
 * first touches the namespace (rule A6); lost as a whole when its deadline passes, its application is silent or the group ends it.
 */
import type { GrantView, RefusalCode, RevokeCause, SessionId, Token, WaitView } from '../api/entry.ts';
import { LeaseholdError } from '../api/errors.ts';
import { type AcquireCall, Acquires, type KnownGrants } from './acquires.ts';
import type { Attempt } from './attempt.ts';
import { type Grant, Grants, type Hold, shareOf } from './grants.ts';
import type { GroupClient } from './group-client.ts';
import { GroupSession, type GroupSessionOptions } from './group-session.ts';
import { errorOf } from './refusals.ts';
import type { Refusal, SessionOwner } from './session-owner.ts';

/** Why a share of a grant is not held any more: given up, taken away, never heard of by its callers, or gone with its whole session. */
export type DropCause = 'released' | 'lost' | 'unwanted' | 'closed';

/** What the application's session wants to know. Names are below the alias. */
export interface NamespaceListener {
  identified(session: SessionId, attach: number): void;
  queued(name: string, position: number, request: string | undefined): void;
  /** Must be on disk when it returns (rule A4). */
  granted(grant: Grant, hold: Hold): void;
  /** An acquire was granted: told after it was kept. */
  taken(grant: Grant, hold: Hold): void;
  /** Not held by this acquire any more; a repeat of its `request`, if it has one, is answered from memory from now on. */
  dropped(grant: Grant, hold: Hold, how: DropCause): void;
  /** The repeat of this request is a new one from now on. */
  forgotten(request: string): void;
  revoking(grant: Grant, cause: RevokeCause): void;
  lost(grant: Grant, reason: string): void;
  jeopardy(): void;
  restored(): void;
  /** The group did not open a session: nothing was ever held or waited for in it. */
  openRefused(): void;
  /** This namespace's session is over: nothing is held or waited for in it any more. */
  over(reason: string): void;
}

/** How long a release is waited for; it goes on by itself after that. */
const RELEASE_MS_MAX = 5_000;
const NOT_RELEASED_YET = 'not confirmed yet; the release goes on by itself, and the lock is no longer yours';
/** How long a call after a restart waits for the group. */
const CONFIRM_MS_MAX = 5_000;

export interface NamespaceSessionOptions extends GroupSessionOptions {
  /** From an earlier life of this sidecar; what was held is to be confirmed by the attach. */
  readonly known?: KnownGrants;
}

const NOTHING_KNOWN: KnownGrants = { held: [], over: [] };

export class NamespaceSession implements SessionOwner {
  readonly #client: GroupClient;
  readonly #listener: NamespaceListener;
  readonly #session: GroupSession;
  readonly #acquires: Acquires;
  readonly #grants = new Grants();
  #isInJeopardy = false;
  /** What whoever comes after the end is told. */
  #ended: LeaseholdError | null = null;

  constructor(client: GroupClient, listener: NamespaceListener, options: NamespaceSessionOptions) {
    this.#client = client;
    this.#listener = listener;
    this.#acquires = new Acquires(client.runtime, () => this.#session, {
      queued: (name, position, request) => listener.queued(name, position, request),
      granted: (attempt, token) => this.#take(attempt, token),
      isHeld: (key, token) => this.#grants.isHeldBy(key, token),
      unwanted: (key, token) => this.#unwanted(key, token),
      forgotten: (request) => listener.forgotten(request),
    });
    const known = options.known ?? NOTHING_KNOWN;
    for (const granted of known.held) this.#grants.take(granted);
    this.#acquires.restore(known);
    this.#session = new GroupSession(client, this, options);
  }

  get ttlMs(): number {
    return this.#session.ttlMs;
  }

  /** On the monotonic clock; every grant's deadline that is not frozen. */
  get deadlineMs(): number {
    return this.#session.lease.deadlineMs;
  }

  /** The group has not opened it yet. */
  get isOpening(): boolean {
    return this.#session.isOpening;
  }

  get grantCount(): number {
    return this.#grants.size;
  }

  get waitCount(): number {
    return this.#acquires.waiting;
  }

  wake(): void {
    this.#session.wake();
  }

  acquire(call: AcquireCall): Promise<Token> {
    return this.#ended === null ? this.#acquires.acquire(call) : Promise.reject(this.#ended);
  }

  /** The grant, while it may be believed in: held by time, on the monotonic clock (rules A1, A2). */
  held(name: string, token: Token): { readonly grant: Grant; readonly deadlineMs: number } | null {
    const grant = this.#grants.find(name, token);
    if (grant === undefined) return null;
    if (this.#session.isOver || this.#session.lease.isSuspected) return null;
    if (grant.revoke?.lease.isSuspected === true) return null;
    const deadlineMs = this.deadlineOf(grant);
    return this.#client.runtime.clock.monotonicMs() < deadlineMs ? { grant, deadlineMs } : null;
  }

  /** After a suspend, until the group has acknowledged again: not to be called held, and not lost either (rule A2). */
  isInDoubt(name: string, token: Token): boolean {
    const isOurs = this.#grants.find(name, token) !== undefined;
    return isOurs && this.#session.lease.isSuspected && !this.#session.isOver;
  }

  /**
   * Resolves when what is held here is certain: at once, except after a restart of this sidecar, when the group is asked
   * first. @throws UNAVAILABLE when it does not answer in time
   */
  confirmed(): Promise<void> {
    return this.#within(
      CONFIRM_MS_MAX,
      'the lock service has not confirmed this session since the restart',
      (done) => {
        void this.#session.confirmed().then(done);
      },
    );
  }

  deadlineOf(grant: Grant): number {
    return Math.min(this.deadlineMs, grant.revoke?.lease.deadlineMs ?? Number.POSITIVE_INFINITY);
  }

  /** Whether the session has this grant, believed in or not; with a `request`, by the acquire of it. */
  has(name: string, token: Token, request?: string): boolean {
    const grant = this.#grants.find(name, token);
    if (grant === undefined || request === undefined || !grant.body.reentrant) return grant !== undefined;
    return [...grant.holds.values()].some((hold) => hold.request === request);
  }

  /**
   * Gives a grant up, or of a re-entrant one the share of this `request`: from now on it is not held. Sent until the group
   * confirms it, whoever still waits for that; null when there is no such grant.
   * @throws INVALID, NOT_HELD when a re-entrant grant has no share of this `request`
   */
  release(name: string, token: Token, request: string | undefined): Promise<void> | null {
    const grant = this.#grants.find(name, token);
    if (grant === undefined) return null;
    const hold = shareOf(grant, request);
    this.#drop(grant, hold, 'released');
    this.#grants.givenUp(hold.key);
    this.#sendRelease(grant, hold);
    return this.#released(hold.key);
  }

  /** Resolves when nothing that was given up under this key is on its way any more. @throws UNAVAILABLE after a while */
  whenReleased(key: string): Promise<void> {
    return this.#within(RELEASE_MS_MAX, NOT_RELEASED_YET, (done) => {
      void this.#session.confirmed().then(() => this.#grants.whenConfirmed(key, done));
    });
  }

  /** Ends everything here; resolves when the group has confirmed it. */
  close(clean: boolean, reason: string): Promise<void> {
    this.#endAll(reason, clean ? 'closed' : 'lost');
    return this.#session.close(clean);
  }

  /** The namespace is not served any more: nothing here can be held, given back or waited for. */
  abandon(reason: string): void {
    this.#session.stop();
    this.over(reason);
  }

  /** The process ends: what is held is left to the next one, nobody is told, and calls under way are refused. */
  stop(): void {
    this.#session.stop();
    this.#grants.clear();
    this.#ended = new LeaseholdError('UNAVAILABLE', 'the sidecar is stopping');
    this.#acquires.failAll(this.#ended);
  }

  identified(session: SessionId, attach: number): void {
    this.#listener.identified(session, attach);
  }

  openRefused(refusal: Refusal): void {
    this.#ended = errorOf(refusal);
    this.#acquires.failAll(this.#ended);
    this.#listener.openRefused();
  }

  /** Rule S3: what is not listed is lost; what is listed but was given up is given up again. */
  attached(grants: readonly GrantView[], waits: readonly WaitView[]): void {
    const listed = new Set(grants.flatMap(({ keys }) => keys));
    for (const grant of this.#grants.all()) {
      for (const hold of [...grant.holds.values()])
        if (!listed.has(hold.key))
          this.#lose(grant, hold, 'the lock service does not know this grant any more');
    }
    for (const { token, keys, revoking } of grants) {
      for (const key of keys) this.#listed(token, key, revoking !== null);
    }
    for (const { key } of waits)
      if (!this.#acquires.awaits(key)) this.#acquires.cancelUntilConfirmed(key, { isFirst: true });
    this.#acquires.listed(waits);
  }

  #listed(token: Token, key: string, isRevoking: boolean): void {
    if (this.#grants.isHeldBy(key, token) || this.#grants.isGivenUp(key)) return;
    if (!this.#acquires.awaits(key)) this.#orphaned(key, isRevoking);
    else if (isRevoking) this.#acquires.takenBack(key);
    else this.#acquires.granted(key, token);
  }

  /** Counted for us, wanted by nobody. One that is being revoked may be our own, lost by now, and ends by itself (rule C9). */
  #orphaned(key: string, isRevoking: boolean): void {
    if (isRevoking) return;
    this.#grants.givenUp(key);
    const onConfirmed = () => this.#grants.confirmed(key);
    this.#acquires.cancelUntilConfirmed(key, { isFirst: true, onConfirmed });
  }

  granted(key: string, token: Token): void {
    this.#acquires.granted(key, token);
  }

  refused(key: string, code: RefusalCode): void {
    this.#acquires.refused(key, code);
  }

  revoking(token: Token, cause: RevokeCause): void {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.revoke !== null) return;
    const lease = this.#session.lease.frozen();
    grant.revoke = { cause, lease };
    this.#listener.revoking(grant, cause);
    const { clock, timers } = this.#client.runtime;
    timers.after(Math.max(0, lease.deadlineMs - clock.monotonicMs()), () => this.revoked(token));
  }

  revoked(token: Token): void {
    const grant = this.#grants.get(token);
    if (grant !== undefined) this.#loseAll(grant, 'revoked');
  }

  acknowledged(afterSuspend: boolean): void {
    // What a suspend took away comes back by what is acknowledged after it, and that covers no revoked grant (rules A2, C9).
    for (const { token, revoke } of this.#grants.revoking())
      if (afterSuspend || revoke?.lease.isSuspected === true) this.revoked(token);
    if (!this.#isInJeopardy && !afterSuspend) return;
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
    if (this.#grants.size > 0) this.end('the deadline passed without an acknowledged keepalive');
  }

  /** Uncleanly, and without waiting for the group. */
  end(reason: string): void {
    void this.close(false, reason);
    this.#listener.over(reason);
  }

  over(reason: string): void {
    this.#endAll(reason, 'lost');
    this.#listener.over(reason);
  }

  belief(): { readonly tokens: Iterable<Token>; readonly isSettled: boolean } {
    const isSettled = this.#grants.isSettled && this.#acquires.isSettled;
    return { tokens: this.#grants.tokens(), isSettled };
  }

  /** A grant that arrives after its deadline, or after a suspend, is no grant (rules A1, A2). */
  #take({ key, body, request }: Attempt, token: Token): boolean {
    if (this.#session.lease.isPassed || this.#session.lease.isSuspected) return false;
    const { grant, hold } = this.#grants.take({ body, token, key, request });
    this.#listener.granted(grant, hold);
    this.#listener.taken(grant, hold);
    return true;
  }

  #within(limitMs: number, otherwise: string, start: (done: () => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#client.runtime.timers.after(limitMs, () => {
        reject(new LeaseholdError('UNAVAILABLE', otherwise));
      });
      start(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #sendRelease({ body: { name, reentrant }, token }: Grant, hold: Hold): void {
    const acks = this.#acquires.takeAcks();
    const key = reentrant ? hold.key : '';
    this.#session.request(
      (session, attach) => ({ type: 'release', session, attach, name, token, key, acks }),
      () => this.#grants.confirmed(hold.key),
      { isPersistent: true },
    );
  }

  #released(key: string): Promise<void> {
    return this.#within(RELEASE_MS_MAX, NOT_RELEASED_YET, (done) => this.#grants.whenConfirmed(key, done));
  }

  #unwanted(key: string, token: Token): void {
    const grant = this.#grants.get(token);
    const hold = grant?.holds.get(key);
    if (grant !== undefined && hold !== undefined) this.#drop(grant, hold, 'unwanted');
  }

  /** True: it was the last share of the grant. */
  #drop(grant: Grant, hold: Hold, how: DropCause): boolean {
    const isOver = this.#grants.drop(grant, hold);
    this.#listener.dropped(grant, hold, how);
    if (how !== 'unwanted') this.#acquires.ended(hold.request);
    return isOver;
  }

  /** The loss is told once, with the last share. */
  #lose(grant: Grant, hold: Hold, reason: string): void {
    if (this.#drop(grant, hold, 'lost')) this.#listener.lost(grant, reason);
  }

  #loseAll(grant: Grant, reason: string): void {
    for (const hold of [...grant.holds.values()]) this.#lose(grant, hold, reason);
  }

  #endAll(reason: string, how: 'closed' | 'lost'): void {
    for (const grant of this.#grants.all()) {
      if (how === 'lost') this.#loseAll(grant, reason);
      else for (const hold of [...grant.holds.values()]) this.#drop(grant, hold, how);
    }
    this.#ended = new LeaseholdError('SESSION_EXPIRED', reason);
    this.#acquires.failAll(this.#ended);
  }
}
