/**
 * The sidecar's logic: applications' sessions over lock groups, behind the `SidecarService` that the HTTP API calls.
 * Runs over ports alone, so that the simulator runs this very code.
 */
import { type ErrorCode, LeaseholdError } from '../api/errors.ts';
import { NAME_BYTES_MAX } from '../api/limits.ts';
import { nameProblem, splitAlias } from '../api/names.ts';
import type { LockView } from '../api/wire.ts';
import type { Runtime } from '../platform/runtime.ts';
import { EndedTokens } from './ended-tokens.ts';
import type { Envelope } from './envelope.ts';
import { Envelopes } from './envelopes.ts';
import { countWork, explain, explainEnd, refuseGrant } from './explanations.ts';
import type { Grant } from './grants.ts';
import { GroupClient } from './group-client.ts';
import type { NamespaceSession } from './namespace-session.ts';
import { listLocks, notServed, readLock, trouble, unavailable } from './reads.ts';
import { errorOf } from './refusals.ts';
import type {
  AcquireOptions,
  Deadline,
  EventSubscription,
  Granted,
  Held,
  ListOptions,
  OpenedSession,
  OpenOptions,
  Released,
  SidecarService,
  StreamLine,
} from './service.ts';
import type { StateStore } from './state-store.ts';
import type { NamespaceTarget, Target } from './target.ts';

export interface SidecarOptions {
  readonly runtime: Runtime;
  readonly store: StateStore;
}

/** Tokens of many pods are replaced at about the same time. */
const RENEW_SPREAD_MS = 3_000;
const REPORT_MS_MAX = 5_000;
const CLOSE_MS_MAX = 5_000;
/** After a restart this covers both the group's confirmation and, if there is nothing to renew, the question who has the lock. */
const RENEW_MS_MAX = 5_000;

interface GrantReference {
  readonly sessionId: string;
  readonly token: number;
}

export class Sidecar implements SidecarService {
  readonly #runtime: Runtime;
  readonly #store: StateStore;
  readonly #targets = new Map<string, Target>();
  readonly #envelopes: Envelopes;
  #isStopped = false;

  constructor({ runtime, store }: SidecarOptions) {
    this.#runtime = runtime;
    this.#store = store;
    this.#envelopes = new Envelopes(runtime, store, this.#targets);
  }

  /** Serves a namespace from now on. Call `restore` once, after the first ones were added. */
  addNamespace(namespace: NamespaceTarget): void {
    const { alias } = namespace;
    const kept = this.#store.load().find((record) => record.type === 'mark' && record.alias === alias);
    const group = new GroupClient(this.#runtime, namespace.connect, {
      mark: kept?.type === 'mark' ? kept.mark : null,
      keepMark: (mark) => this.#store.put({ type: 'mark', alias, mark }),
    });
    const ended = new EndedTokens(({ envelope, token }) =>
      this.#store.remove({ type: 'lost', envelope, alias, token }),
    );
    this.#targets.set(alias, { ...namespace, group, ended });
    group.open();
  }

  /** Stops serving a namespace: what is held in it is told lost. */
  removeNamespace(alias: string): void {
    const target = this.#targets.get(alias);
    if (target === undefined) return;
    this.#targets.delete(alias);
    for (const { namespaces } of [...this.#envelopes.all()]) {
      namespaces.get(alias)?.abandon('the namespace is not served any more');
    }
    target.group.close();
  }

  /** There is a fresh proof of who this is: streams that show it take the place of the old ones, spread out, and nothing is lost. */
  renewProof(): void {
    const { timers, random } = this.#runtime;
    for (const { group } of this.#targets.values()) {
      timers.after(RENEW_SPREAD_MS * random.fraction(), () => group.renew());
    }
  }

  /** Goes on with the sessions of an earlier life (rule A4). */
  restore(): void {
    this.#envelopes.restore();
  }

  /** Stops without ending anything: sessions go on in the next life, or expire. */
  stop(): void {
    this.#isStopped = true;
    for (const envelope of this.#envelopes.all()) envelope.stop();
    for (const { group } of this.#targets.values()) group.close();
  }

  aliases(): readonly string[] {
    return [...this.#targets.keys()];
  }

  /** What keeps namespaces from being served that somebody has to mend; for probes and people. */
  problems(): readonly string[] {
    const unkept = this.#unkept();
    const problems = [...this.#targets.values()].flatMap((target) => trouble(target)?.message ?? []);
    return unkept === null ? problems : [unkept.message, ...problems];
  }

  figures(alias: string): { readonly sessions: number; readonly grants: number; readonly waits: number } {
    const figures = { sessions: 0, grants: 0, waits: 0 };
    for (const { namespaces } of this.#envelopes.all()) {
      const session = namespaces.get(alias);
      if (session === undefined) continue;
      figures.sessions++;
      figures.grants += session.grantCount;
      figures.waits += session.waitCount;
    }
    return figures;
  }

  async openSession({ client, ttlMs, keepalive, maxHoldMs = 0 }: OpenOptions): Promise<OpenedSession> {
    const envelope = this.#envelopes.open({ client, ttlMs, keepalive, maxHoldMs, isSingle: false });
    const problem = this.#unkept();
    if (problem !== null) {
      void this.#envelopes.close(envelope, true, problem.message);
      throw problem;
    }
    const { options } = envelope;
    return { sessionId: options.id, ttlMs: options.ttlMs, keepaliveEveryMs: options.ttlMs / 5 };
  }

  async keepaliveSession(sessionId: string): Promise<Deadline> {
    const envelope = this.#touched(sessionId);
    return this.#deadline(envelope.deadlineMs);
  }

  openEvents(sessionId: string, onLine: (line: StreamLine) => void): EventSubscription {
    return this.#envelopes.get(sessionId).openStream(onLine);
  }

  async closeSession(sessionId: string): Promise<void> {
    const envelope = this.#touched(sessionId);
    const closed = this.#envelopes.close(envelope, true, 'the application closed the session');
    await this.#within(
      CLOSE_MS_MAX,
      closed,
      'not confirmed yet; the session ends by itself and holds nothing any more',
    );
  }

  async acquire(fullName: string, options: AcquireOptions): Promise<Granted> {
    const { target, rest } = this.#resolve(fullName);
    const startedMs = this.#runtime.clock.monotonicMs();
    const count = (outcome: 'granted' | ErrorCode): void =>
      target.metrics.acquired(outcome, this.#runtime.clock.monotonicMs() - startedMs);
    const envelope = this.#envelopeFor(options);
    try {
      const problem = this.#unkept();
      if (problem !== null) throw problem;
      const granted = await envelope.during(() => this.#acquireIn(envelope, target, rest, options));
      count('granted');
      return granted;
    } catch (error) {
      const isNew = options.sessionId === undefined;
      // The next life has to know of it, to take back what it waits for (rule A5).
      if (isNew && !envelope.isOver && !this.#isStopped)
        void this.#envelopes.close(envelope, true, 'its lock was not acquired');
      if (!(error instanceof LeaseholdError)) throw error;
      count(error.code);
      throw await explain(error, target, rest, isNew ? undefined : options.sessionId);
    }
  }

  async release(
    fullName: string,
    { sessionId, token, request }: GrantReference & { readonly request?: string },
  ): Promise<Released> {
    const { target, rest } = this.#resolve(fullName);
    const known = this.#envelopes.find(sessionId);
    // What is held again under a `request` that was used before is not what was released then.
    const isHeld = known?.namespaces.get(target.alias)?.has(rest, token, request) === true;
    const ended = isHeld ? undefined : target.ended.find({ name: rest, token, envelope: sessionId, request });
    if (ended?.how === 'released' && (known !== undefined || ended.wasWholeSession)) {
      // The first one may still be on its way, and after a restart it may have been cut off.
      await known?.namespaces.get(target.alias)?.whenReleased(ended.key);
      return { already: true };
    }
    const envelope = await this.#touchedFor(target, rest, { sessionId, token });
    const session = envelope.namespaces.get(target.alias);
    const released = session?.release(rest, token, request) ?? null;
    if (session === undefined || released === null) return refuseGrant(target, rest, token);
    await released;
    // Nobody has to wait for what is left of it. It may have been used for further locks, against its purpose.
    if (envelope.options.isSingle && !envelope.isUsed)
      void this.#envelopes.close(envelope, true, 'its lock was released');
    return { already: false };
  }

  async renew(fullName: string, { sessionId, token }: GrantReference): Promise<Granted> {
    const { target, rest } = this.#resolve(fullName);
    const envelope = await this.#touchedFor(target, rest, { sessionId, token });
    const session = envelope.namespaces.get(target.alias);
    const untilMs = this.#runtime.clock.monotonicMs() + RENEW_MS_MAX;
    await session?.confirmed();
    const held = session?.held(rest, token) ?? null;
    if (held === null && session?.isInDoubt(rest, token) === true) throw unavailable(target);
    if (session === undefined || held === null)
      return refuseGrant(target, rest, token, untilMs - this.#runtime.clock.monotonicMs());
    return this.#granted(envelope, session, held.grant);
  }

  async reportStale(
    fullName: string,
    { token, resource }: { readonly token: number; readonly resource: string },
  ): Promise<void> {
    const { target, rest } = this.#resolve(fullName);
    countWork(target, token);
    const recorded = new Promise<void>((resolve, reject) => {
      target.group.send({ type: 'reportStale', session: 0, name: rest, token, resource }, (answer) => {
        if (answer.type === 'done') resolve();
        else if (answer.type === 'rejected' && answer.code !== 'UNAVAILABLE') reject(errorOf(answer));
        else reject(unavailable(target));
      });
    });
    await this.#within(
      REPORT_MS_MAX,
      recorded,
      `the lock service of ${target.alias} does not answer right now`,
    );
  }

  async getLock(fullName: string): Promise<LockView> {
    const { target, rest } = this.#resolve(fullName);
    return { ...(await readLock(target, rest)), name: fullName };
  }

  listLocks(options: ListOptions): Promise<{ readonly locks: readonly LockView[]; readonly next?: string }> {
    return listLocks([...this.#targets.values()], options);
  }

  held(fullName: string, token: number): Held {
    const { target, rest } = this.#resolve(fullName);
    for (const envelope of this.#envelopes.all()) {
      const session = envelope.namespaces.get(target.alias);
      const held = session?.held(rest, token) ?? null;
      if (session === undefined || held === null) continue;
      // This call is no sign of life, so it must not promise more than the last one that was.
      const deadlineMs = Math.min(held.deadlineMs, envelope.silentUntilMs(session));
      if (this.#runtime.clock.monotonicMs() >= deadlineMs) continue;
      const { revoke } = held.grant;
      return { held: true, ...this.#deadline(deadlineMs), ...(revoke && { revoking: revoke.cause }) };
    }
    countWork(target, token);
    return { held: false };
  }

  /** Rule A4: what cannot be written down is not begun. What was begun goes on, for as long as this process does. */
  #unkept(): LeaseholdError | null {
    const { problem } = this.#store;
    if (problem === null) return null;
    const message = `the sidecar cannot write its state file (${problem}): it takes nothing new until it can; what is held goes on`;
    return new LeaseholdError('UNAVAILABLE', message);
  }

  #resolve(fullName: string): { readonly target: Target; readonly rest: string } {
    const parts = splitAlias(fullName);
    if (parts === null) {
      const message =
        'a lock is named <alias>/<name>, percent-encoded once in the path (payouts%2Fmerchant-48213)';
      throw new LeaseholdError('INVALID', message, { field: 'name' });
    }
    const target = this.#targets.get(parts.alias);
    if (target === undefined) throw notServed(parts.alias, this.#targets.values()).with({ field: 'name' });
    const problem = nameProblem(parts.rest);
    if (problem !== null)
      throw new LeaseholdError('INVALID', problem, { field: 'name', limit: NAME_BYTES_MAX });
    return { target, rest: parts.rest };
  }

  /** The session, whose application has just shown that it lives. */
  #touched(sessionId: string): Envelope {
    const envelope = this.#envelopes.get(sessionId);
    envelope.touch();
    return envelope;
  }

  /** As `#touched`; if the session is gone, the error also says who has the lock now (case C12). */
  async #touchedFor(target: Target, name: string, { sessionId, token }: GrantReference): Promise<Envelope> {
    try {
      return this.#touched(sessionId);
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      throw await explainEnd(error, target, name, token);
    }
  }

  #envelopeFor({ sessionId, client = '', ttlMs }: AcquireOptions): Envelope {
    if (sessionId !== undefined) return this.#envelopes.get(sessionId);
    return this.#envelopes.open({ client, ttlMs, keepalive: 'app', maxHoldMs: 0, isSingle: true });
  }

  async #acquireIn(
    envelope: Envelope,
    target: Target,
    name: string,
    options: AcquireOptions,
  ): Promise<Granted> {
    const { mode, permits, reentrant, waitMs, purpose, request, hangUp } = options;
    const session = this.#envelopes.namespaceOf(envelope, target);
    const owner = options.owner ?? envelope.options.client;
    if (request !== undefined) await session.confirmed();
    const body = { name, mode, permits, owner, reentrant };
    const token = await session.acquire({ body, waitMs, purpose, request, hangUp });
    const held = session.held(name, token);
    if (held !== null) return this.#granted(envelope, session, held.grant);
    if (session.isInDoubt(name, token)) throw unavailable(target);
    throw new LeaseholdError('NOT_HELD', 'the grant ended while its answer was on its way', { token });
  }

  #granted(envelope: Envelope, session: NamespaceSession, grant: Grant): Granted {
    return {
      sessionId: envelope.options.id,
      token: grant.token,
      leaseTtlMs: session.ttlMs,
      ...this.#deadline(Math.min(session.deadlineOf(grant), envelope.silentUntilMs(session))),
      ...(grant.revoke && { revoking: grant.revoke.cause }),
    };
  }

  /** What the group confirms, or UNAVAILABLE after a while: every call ends (case B07). */
  #within(limitMs: number, confirmed: Promise<void>, otherwise: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#runtime.timers.after(limitMs, () =>
        reject(new LeaseholdError('UNAVAILABLE', otherwise)),
      );
      confirmed.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  #deadline(deadlineMs: number): Deadline {
    return {
      deadlineInMs: Math.floor(deadlineMs - this.#runtime.clock.monotonicMs()),
      deadlineMonotonicNs: BigInt(Math.floor(deadlineMs * 1000)) * 1000n,
    };
  }
}
