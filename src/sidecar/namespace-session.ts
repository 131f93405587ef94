/**
 * What one application session has in one namespace: its group session, its acquires under way, its grants. Opened when the
 * application first touches the namespace (rule A6); lost as a whole when its deadline passes or the group ends it.
 */
import type { GrantView, RefusalCode, RevokeCause, SessionId, Token, WaitView } from '../api/entry.ts';
import { LeaseholdError } from '../api/errors.ts';
import { type AcquireCall, Acquires, type KnownRequests } from './acquires.ts';
import type { Attempt, AttemptBody } from './attempt.ts';
import type { GroupClient } from './group-client.ts';
import { GroupSession, type GroupSessionOptions, type Refusal, type SessionOwner } from './group-session.ts';
import { errorOf } from './refusals.ts';

export interface Grant extends AttemptBody {
  readonly token: Token;
  readonly key: string;
  readonly request: string | undefined;
  /** Set while a revoke runs: the deadline as it was, no longer moved by keepalives (rule C9). */
  frozenDeadlineMs: number | null;
}

/** Why a grant is not held any more: given up, taken away, never heard of by its callers, or gone with its whole session. */
export type DropCause = 'released' | 'lost' | 'unwanted' | 'closed';

/** What the application's session wants to know. Names are below the alias. */
export interface NamespaceListener {
  identified(session: SessionId, attach: number): void;
  queued(name: string, position: number, request: string | undefined): void;
  /** Must be on disk when it returns (rule A4). */
  granted(grant: Grant): void;
  /** A grant is ours: told after it was kept. */
  taken(grant: Grant): void;
  /** Not held any more; with a `request`, a repeat of it is answered from memory from now on. */
  dropped(grant: Grant, how: DropCause): void;
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
/** How long a call after a restart waits for the group. */
const CONFIRM_MS_MAX = 5_000;

export interface NamespaceSessionOptions extends GroupSessionOptions {
  /** From an earlier life of this sidecar; what was held is to be confirmed by the attach. */
  readonly known?: KnownGrants;
}

export interface KnownGrants extends KnownRequests {
  readonly held: readonly Grant[];
}

const NOTHING_KNOWN: KnownGrants = { held: [], over: [] };

export class NamespaceSession implements SessionOwner {
  readonly #client: GroupClient;
  readonly #listener: NamespaceListener;
  readonly #session: GroupSession;
  readonly #acquires: Acquires;
  readonly #grants = new Map<Token, Grant>();
  /** Given up by the application, not yet confirmed by the group: no longer held, still counted there. */
  readonly #releasing = new Map<Token, (() => void)[]>();
  #isInJeopardy = false;
  /** What whoever comes after the end is told. */
  #ended: LeaseholdError | null = null;

  constructor(client: GroupClient, listener: NamespaceListener, options: NamespaceSessionOptions) {
    this.#client = client;
    this.#listener = listener;
    this.#acquires = new Acquires(client.runtime, () => this.#session, {
      queued: (name, position, request) => listener.queued(name, position, request),
      granted: (attempt, token) => this.#take(attempt, token),
      isHeld: (token) => this.#grants.has(token),
      unwanted: (token) => this.#drop(this.#grants.get(token), 'unwanted'),
      forgotten: (request) => listener.forgotten(request),
    });
    for (const grant of options.known?.held ?? []) this.#grants.set(grant.token, grant);
    this.#acquires.restore(options.known ?? NOTHING_KNOWN);
    this.#session = new GroupSession(client, this, options);
  }

  get ttlMs(): number {
    return this.#session.ttlMs;
  }

  /** On the monotonic clock; every grant's deadline that is not frozen. */
  get deadlineMs(): number {
    return this.#session.lease.deadlineMs;
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
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.name !== name) return null;
    if (this.#session.isOver || this.#session.lease.isSuspected) return null;
    const deadlineMs = this.deadlineOf(grant);
    return this.#client.runtime.clock.monotonicMs() < deadlineMs ? { grant, deadlineMs } : null;
  }

  /** After a suspend, until the group has acknowledged again: not to be called held, and not lost either (rule A2). */
  isInDoubt(name: string, token: Token): boolean {
    return this.#grants.get(token)?.name === name && this.#session.lease.isSuspected && !this.#session.isOver;
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
    return Math.min(this.deadlineMs, grant.frozenDeadlineMs ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Gives a grant up: from now on it is not held. Sent until the group confirms it, whoever still waits for that; null when
   * there is no such grant.
   */
  release(name: string, token: Token): Promise<void> | null {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.name !== name) return null;
    this.#drop(grant, 'released');
    this.#releasing.set(token, []);
    this.#sendRelease(grant);
    return this.#released(token);
  }

  /** Resolves when nothing that was given up under this token is on its way any more. @throws UNAVAILABLE after a while */
  async whenReleased(token: Token): Promise<void> {
    await this.confirmed();
    await this.#released(token);
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
    const listed = new Set(grants.map(({ token }) => token));
    for (const grant of [...this.#grants.values()]) {
      if (!listed.has(grant.token)) this.#lose(grant, 'the lock service does not know this grant any more');
    }
    for (const { token, keys, revoking } of grants) {
      if (this.#grants.has(token) || this.#releasing.has(token)) continue;
      const key = keys[0] as string;
      if (!this.#acquires.awaits(key)) this.#orphaned(token, key, revoking);
      else if (revoking) this.#acquires.takenBack(key);
      else this.#acquires.granted(key, token);
    }
    for (const { key } of waits)
      if (!this.#acquires.awaits(key)) this.#acquires.cancelUntilConfirmed(key, { isFirst: true });
    this.#acquires.listed(new Set(waits.map(({ key }) => key)));
  }

  /** Counted for us, wanted by nobody. One that is being revoked may be our own, lost by now, and ends by itself (rule C9). */
  #orphaned(token: Token, key: string, isRevoking: boolean): void {
    if (isRevoking) return;
    this.#releasing.set(token, []);
    this.#acquires.cancelUntilConfirmed(key, {
      isFirst: true,
      onConfirmed: () => this.#confirmRelease(token),
    });
  }

  granted(key: string, token: Token): void {
    this.#acquires.granted(key, token);
  }

  refused(key: string, code: RefusalCode): void {
    this.#acquires.refused(key, code);
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

  acknowledged(afterSuspend: boolean): void {
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
    if (this.#grants.size === 0) return;
    const reason = 'the deadline passed without an acknowledged keepalive';
    void this.close(false, reason);
    this.#listener.over(reason);
  }

  over(reason: string): void {
    this.#endAll(reason, 'lost');
    this.#listener.over(reason);
  }

  belief(): { readonly tokens: Iterable<Token>; readonly isSettled: boolean } {
    return { tokens: this.#grants.keys(), isSettled: this.#releasing.size === 0 && this.#acquires.isSettled };
  }

  /** A grant that arrives after its deadline, or after a suspend, is no grant (rules A1, A2). */
  #take({ key, body, request }: Attempt, token: Token): boolean {
    if (this.#session.lease.isPassed || this.#session.lease.isSuspected) return false;
    const { name, mode, permits, owner, reentrant } = body;
    const grant: Grant = {
      name,
      mode,
      permits,
      owner,
      reentrant,
      token,
      key,
      request,
      frozenDeadlineMs: null,
    };
    this.#grants.set(token, grant);
    this.#listener.granted(grant);
    this.#listener.taken(grant);
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

  #sendRelease({ name, token }: Grant): void {
    const acks = this.#acquires.takeAcks();
    this.#session.request(
      (session, attach) => ({ type: 'release', session, attach, name, token, key: '', acks }),
      () => this.#confirmRelease(token),
      { isPersistent: true },
    );
  }

  #released(token: Token): Promise<void> {
    const message = 'not confirmed yet; the release goes on by itself, and the lock is no longer yours';
    return this.#within(RELEASE_MS_MAX, message, (done) => {
      const waiting = this.#releasing.get(token);
      if (waiting === undefined) done();
      else waiting.push(done);
    });
  }

  #confirmRelease(token: Token): void {
    const waiting = this.#releasing.get(token) ?? [];
    this.#releasing.delete(token);
    for (const done of waiting) done();
  }

  #drop(grant: Grant | undefined, how: DropCause): void {
    if (grant === undefined || !this.#grants.delete(grant.token)) return;
    this.#listener.dropped(grant, how);
    if (how !== 'unwanted') this.#acquires.ended(grant.request);
  }

  #lose(grant: Grant, reason: string): void {
    this.#drop(grant, 'lost');
    this.#listener.lost(grant, reason);
  }

  #endAll(reason: string, how: 'closed' | 'lost'): void {
    for (const grant of [...this.#grants.values()]) {
      if (how === 'lost') this.#lose(grant, reason);
      else this.#drop(grant, how);
    }
    this.#ended = new LeaseholdError('SESSION_EXPIRED', reason);
    this.#acquires.failAll(this.#ended);
  }
}
