/**
 * The sidecar's logic: applications' sessions over lock groups, behind the `SidecarService` that the HTTP API calls.
 * Runs over ports alone, so that the simulator runs this very code.
 */
import { type ErrorCode, LeaseholdError } from '../api/errors.ts';
import { NAME_BYTES_MAX, TTL_MS_DEFAULT } from '../api/limits.ts';
import { nameProblem, splitAlias } from '../api/names.ts';
import type { LockView } from '../api/wire.ts';
import { sha256 } from '../core/index.ts';
import type { SidecarMetrics } from '../platform/metrics.ts';
import type { Runtime } from '../platform/runtime.ts';
import { Envelope, type EnvelopeOptions, sessionExpired } from './envelope.ts';
import { type Connect, GroupClient } from './group-client.ts';
import { listenTo } from './namespace-listener.ts';
import { type Grant, NamespaceSession } from './namespace-session.ts';
import { listLocks, notHeldError, readLock, unavailable } from './reads.ts';
import type {
  AcquireOptions,
  Deadline,
  EventSubscription,
  Granted,
  ListOptions,
  Liveness,
  OpenedSession,
  OpenOptions,
  Released,
  SidecarService,
  StreamLine,
} from './service.ts';
import type { SidecarRecord, StateStore } from './state-store.ts';

/** A namespace this sidecar serves. `defaults` are read at each use, since a manifest may change. */
export interface NamespaceTarget {
  readonly alias: string;
  readonly connect: Connect;
  readonly metrics: SidecarMetrics;
  readonly defaults: () => { readonly ttlMs: number; readonly maxHoldMs: number };
}

export interface SidecarOptions {
  readonly runtime: Runtime;
  readonly store: StateStore;
}

const REPORT_MS_MAX = 5_000;

interface Target extends NamespaceTarget {
  readonly group: GroupClient;
}

export class Sidecar implements SidecarService {
  readonly #runtime: Runtime;
  readonly #store: StateStore;
  readonly #targets = new Map<string, Target>();
  readonly #envelopes = new Map<string, Envelope>();

  constructor({ runtime, store }: SidecarOptions) {
    this.#runtime = runtime;
    this.#store = store;
  }

  /** Serves a namespace from now on. Call `restore` once, after the first ones were added. */
  addNamespace(namespace: NamespaceTarget): void {
    const group = new GroupClient(this.#runtime, namespace.connect);
    this.#targets.set(namespace.alias, { ...namespace, group });
    group.open();
  }

  /** Stops serving a namespace: what is held in it is told lost. */
  removeNamespace(alias: string): void {
    const target = this.#targets.get(alias);
    if (target === undefined) return;
    this.#targets.delete(alias);
    for (const envelope of this.#envelopes.values()) {
      const session = envelope.namespaces.get(alias);
      if (session !== undefined) session.over('the namespace is not served any more');
    }
    target.group.close();
  }

  /** Goes on with the sessions of an earlier life (rule A4). */
  restore(): void {
    const records = this.#store.load();
    for (const record of records) {
      if (record.type === 'envelope') this.#addEnvelope(record);
    }
    for (const record of records) {
      if (record.type !== 'session') continue;
      const envelope = this.#envelopes.get(record.envelope);
      const target = this.#targets.get(record.alias);
      if (envelope === undefined || target === undefined) this.#store.remove(record);
      else this.#resume(envelope, target, record, records);
    }
  }

  /** Stops without ending anything: sessions go on in the next life, or expire. */
  stop(): void {
    for (const { group } of this.#targets.values()) group.close();
  }

  aliases(): readonly string[] {
    return [...this.#targets.keys()];
  }

  figures(alias: string): { readonly sessions: number; readonly grants: number; readonly waits: number } {
    const figures = { sessions: 0, grants: 0, waits: 0 };
    for (const { namespaces } of this.#envelopes.values()) {
      const session = namespaces.get(alias);
      if (session === undefined) continue;
      figures.sessions++;
      figures.grants += session.grantCount;
      figures.waits += session.waitCount;
    }
    return figures;
  }

  openSession(options: OpenOptions): Promise<OpenedSession> {
    const { client, ttlMs, keepalive, maxHoldMs = 0 } = options;
    const envelope = this.#newEnvelope({ client, ttlMs, keepalive, maxHoldMs, isSingle: false });
    const { id } = envelope.options;
    return Promise.resolve({
      sessionId: id,
      ttlMs: envelope.options.ttlMs,
      keepaliveEveryMs: envelope.options.ttlMs / 5,
    });
  }

  async keepaliveSession(sessionId: string): Promise<Deadline> {
    const envelope = this.#envelope(sessionId);
    envelope.touch();
    return this.#deadline(envelope.deadlineMs);
  }

  openEvents(sessionId: string, onLine: (line: StreamLine) => void): EventSubscription {
    return this.#envelope(sessionId).openStream(onLine);
  }

  async closeSession(sessionId: string): Promise<void> {
    const envelope = this.#envelope(sessionId);
    envelope.touch();
    await this.#closeEnvelope(envelope, true, 'the application closed the session');
  }

  async acquire(fullName: string, options: AcquireOptions): Promise<Granted> {
    const { target, rest } = this.#resolve(fullName);
    const started = this.#runtime.clock.monotonicMs();
    const outcome = (code: 'granted' | ErrorCode): void =>
      target.metrics.acquired(code, this.#runtime.clock.monotonicMs() - started);
    const envelope =
      options.sessionId === undefined ? this.#singleEnvelope(options) : this.#envelope(options.sessionId);
    try {
      const granted = await envelope.during(() => this.#acquireIn(envelope, target, rest, options));
      outcome('granted');
      return granted;
    } catch (error) {
      if (envelope.options.isSingle && options.sessionId === undefined) this.#dropSingle(envelope);
      outcome(error instanceof LeaseholdError ? error.code : 'UNAVAILABLE');
      throw error instanceof LeaseholdError ? await this.#explain(error, target, rest, envelope) : error;
    }
  }

  async release(
    fullName: string,
    { sessionId, token }: { readonly sessionId: string; readonly token: number },
  ): Promise<Released> {
    const { target, rest } = this.#resolve(fullName);
    const envelope = this.#envelope(sessionId);
    envelope.touch();
    const session = envelope.namespaces.get(target.alias);
    const released = session?.release(rest, token) ?? null;
    if (released !== null) {
      await released;
      if (envelope.options.isSingle) await this.#closeEnvelope(envelope, true, 'its lock was released');
      return { already: false };
    }
    const ended = session?.ended.get(rest, token);
    if (ended?.how === 'released') return { already: true };
    this.#countWork(target, session, token);
    throw await notHeldError(target, rest, token);
  }

  async renew(
    fullName: string,
    { sessionId, token }: { readonly sessionId: string; readonly token: number },
  ): Promise<Granted> {
    const { target, rest } = this.#resolve(fullName);
    const envelope = this.#envelope(sessionId);
    envelope.touch();
    const session = envelope.namespaces.get(target.alias);
    const held = session?.held(rest, token) ?? null;
    if (session === undefined || held === null) {
      this.#countWork(target, session, token);
      throw await notHeldError(target, rest, token);
    }
    return this.#granted(envelope, session, held.grant);
  }

  async reportStale(
    fullName: string,
    { token, resource }: { readonly token: number; readonly resource: string },
  ): Promise<void> {
    const { target, rest } = this.#resolve(fullName);
    for (const { namespaces } of this.#envelopes.values())
      this.#countWork(target, namespaces.get(target.alias), token);
    await new Promise<void>((resolve, reject) => {
      const gaveUp = (): void => reject(unavailable(target.alias));
      const timer = this.#runtime.timers.after(REPORT_MS_MAX, gaveUp);
      target.group.send({ type: 'reportStale', session: 0, name: rest, token, resource }, (answer) => {
        timer.cancel();
        if (answer.type === 'done') resolve();
        else gaveUp();
      });
    });
  }

  async getLock(fullName: string): Promise<LockView> {
    const { target, rest } = this.#resolve(fullName);
    return { ...(await readLock(target, rest)), name: fullName };
  }

  listLocks(options: ListOptions): Promise<{ readonly locks: readonly LockView[]; readonly next?: string }> {
    return listLocks([...this.#targets.values()], options);
  }

  held(fullName: string, token: number): { readonly held: boolean } & Partial<Deadline> {
    const { target, rest } = this.#resolve(fullName);
    for (const { namespaces } of this.#envelopes.values()) {
      const session = namespaces.get(target.alias);
      const held = session?.held(rest, token) ?? null;
      if (held !== null) return { held: true, ...this.#deadline(held.deadlineMs) };
      this.#countWork(target, session, token);
    }
    return { held: false };
  }

  #resolve(fullName: string): { readonly target: Target; readonly rest: string } {
    const parts = splitAlias(fullName);
    if (parts === null) {
      const message =
        'a lock is named <alias>/<name>, percent-encoded once in the path (payouts%2Fmerchant-48213)';
      throw new LeaseholdError('INVALID', message, { field: 'name' });
    }
    const target = this.#targets.get(parts.alias);
    if (target === undefined) {
      const message = `no namespace is served as ${JSON.stringify(parts.alias)}; served here: ${this.aliases().join(', ')}`;
      throw new LeaseholdError('NAMESPACE_NOT_FOUND', message, { field: 'name' });
    }
    const problem = nameProblem(parts.rest);
    if (problem !== null)
      throw new LeaseholdError('INVALID', problem, { field: 'name', limit: NAME_BYTES_MAX });
    return { target, rest: parts.rest };
  }

  #envelope(sessionId: string): Envelope {
    const envelope = this.#envelopes.get(sessionId);
    if (envelope === undefined) throw sessionExpired(sessionId, 'unknown, or ended before');
    return envelope;
  }

  #newEnvelope(options: {
    readonly client: string;
    readonly ttlMs: number | undefined;
    readonly keepalive: Liveness;
    readonly maxHoldMs: number;
    readonly isSingle: boolean;
  }): Envelope {
    const { ttlMs, ...rest } = options;
    const id = `s-${this.#runtime.random.hex(12)}`;
    const record = {
      type: 'envelope',
      id,
      ...rest,
      ttlMs: ttlMs ?? this.#shortestTtlMs(),
      isTtlChosen: ttlMs !== undefined,
    } as const;
    this.#store.put(record);
    return this.#addEnvelope(record);
  }

  /** Without a choice the application keeps the pace of the most demanding namespace it could touch. */
  #shortestTtlMs(): number {
    const all = [...this.#targets.values()].map(({ defaults }) => defaults().ttlMs);
    return all.length === 0 ? TTL_MS_DEFAULT : Math.min(...all);
  }

  #addEnvelope(options: EnvelopeOptions): Envelope {
    const envelope: Envelope = new Envelope(this.#runtime, options, (reason) => {
      void this.#closeEnvelope(envelope, false, reason);
    });
    this.#envelopes.set(options.id, envelope);
    return envelope;
  }

  #singleEnvelope({ client = '', ttlMs }: AcquireOptions): Envelope {
    return this.#newEnvelope({ client, ttlMs, keepalive: 'app', maxHoldMs: 0, isSingle: true });
  }

  /** The acquire it was opened for came to nothing. */
  #dropSingle(envelope: Envelope): void {
    if (!envelope.isOver) void this.#closeEnvelope(envelope, true, 'its lock was not acquired');
  }

  async #closeEnvelope(envelope: Envelope, clean: boolean, reason: string): Promise<void> {
    const closing = [...envelope.namespaces.values()].map((session) => session.close(clean, reason));
    this.#forget(envelope, reason);
    await Promise.all(closing);
  }

  #forget(envelope: Envelope, reason: string): void {
    envelope.end(reason);
    this.#envelopes.delete(envelope.options.id);
    this.#store.removeEnvelope(envelope.options.id);
  }

  async #acquireIn(
    envelope: Envelope,
    target: Target,
    name: string,
    options: AcquireOptions,
  ): Promise<Granted> {
    const { mode, permits, reentrant, waitMs, purpose, request, hangUp } = options;
    const session = envelope.namespaces.get(target.alias) ?? this.#openNamespace(envelope, target);
    const owner = options.owner ?? envelope.options.client;
    const call = { name, mode, permits, reentrant, owner, waitMs, purpose, request, hangUp };
    const token = await session.acquire(call);
    const held = session.held(name, token);
    if (held === null)
      throw new LeaseholdError('NOT_HELD', 'the grant ended while its answer was on its way', { token });
    return this.#granted(envelope, session, held.grant);
  }

  #openNamespace(envelope: Envelope, target: Target): NamespaceSession {
    const { client, ttlMs, isTtlChosen, maxHoldMs, keepalive } = envelope.options;
    const defaults = target.defaults();
    // A frozen process keeps its socket open, so a stream alone is no sign of life for ever (rule A3).
    const holdMs = maxHoldMs === 0 && keepalive === 'stream' ? defaults.maxHoldMs : maxHoldMs;
    const secret = this.#runtime.random.hex(32);
    return this.#addNamespaceSession(envelope, target, {
      clientName: client,
      ttlMs: isTtlChosen ? ttlMs : defaults.ttlMs,
      maxHoldMs: holdMs,
      secret,
      secretHash: sha256(secret),
    });
  }

  #addNamespaceSession(
    envelope: Envelope,
    target: Target,
    options: ConstructorParameters<typeof NamespaceSession>[2],
  ): NamespaceSession {
    const { alias } = target;
    const context = {
      runtime: this.#runtime,
      envelope,
      alias,
      secret: options.secret,
      ttlMs: options.ttlMs,
      store: this.#store,
      metrics: target.metrics,
      onOver: (reason: string) => this.#namespaceOver(envelope, alias, reason),
    };
    const session: NamespaceSession = new NamespaceSession(
      target.group,
      listenTo(context, () => session),
      options,
    );
    envelope.namespaces.set(alias, session);
    return session;
  }

  /** Rule A6: loss is per group. An envelope with nothing left in any group ends with it. */
  #namespaceOver(envelope: Envelope, alias: string, reason: string): void {
    envelope.namespaces.delete(alias);
    if (envelope.namespaces.size === 0 && !envelope.isOver) this.#forget(envelope, reason);
  }

  #resume(
    envelope: Envelope,
    target: Target,
    { alias, session, attach, secret, ttlMs }: SessionRecord,
    records: readonly SidecarRecord[],
  ): void {
    const known = records.flatMap((record) =>
      record.type === 'grant' && record.envelope === envelope.options.id && record.alias === alias
        ? [grantFrom(record)]
        : [],
    );
    const { client, maxHoldMs } = envelope.options;
    this.#addNamespaceSession(envelope, target, {
      clientName: client,
      ttlMs,
      maxHoldMs,
      secret,
      secretHash: sha256(secret),
      resume: { session, attach, dormant: envelope.needsStream },
      known,
    });
  }

  #granted(envelope: Envelope, session: NamespaceSession, grant: Grant): Granted {
    return {
      sessionId: envelope.options.id,
      token: grant.token,
      leaseTtlMs: session.ttlMs,
      ...this.#deadline(session.deadlineOf(grant)),
    };
  }

  #deadline(deadlineMs: number): Deadline {
    return {
      deadlineInMs: Math.floor(deadlineMs - this.#runtime.clock.monotonicMs()),
      deadlineMonotonicNs: BigInt(Math.floor(deadlineMs * 1000)) * 1000n,
    };
  }

  /** A refusal says where and for whom, and after a wait also who has the lock. */
  async #explain(
    error: LeaseholdError,
    target: Target,
    name: string,
    envelope: Envelope,
  ): Promise<LeaseholdError> {
    const details = { name: `${target.alias}/${name}`, session_id: envelope.options.id, ...error.details };
    if (error.code !== 'WAIT_TIMEOUT') return new LeaseholdError(error.code, error.message, details);
    const lock = await readLock(target, name).catch(() => null);
    return new LeaseholdError(error.code, error.message, { ...details, holder: lock?.holders[0] ?? null });
  }

  /** A call with a token that was lost: its application worked on (design.md section 6). */
  #countWork({ metrics }: Target, session: NamespaceSession | undefined, token: number): void {
    if (session?.ended.countOnce(token) === true) metrics.leaseExpiredWhileWorking();
  }
}

type SessionRecord = Extract<SidecarRecord, { type: 'session' }>;

function grantFrom({ name, token, key, owner, request }: Extract<SidecarRecord, { type: 'grant' }>): Grant {
  return { name, token, key, owner, request: request ?? undefined, frozenDeadlineMs: null };
}
