/**
 * The applications' sessions of one sidecar: opened, found, ended, and gone on with after a restart (rules A3, A4, A6).
 */
import { LeaseholdError } from '../api/errors.ts';
import { SESSIONS_MAX, TTL_MS_DEFAULT } from '../api/limits.ts';
import { sha256 } from '../core/index.ts';
import type { Runtime } from '../platform/runtime.ts';
import { bodyOf } from './acquire-body.ts';
import type { KnownGrants } from './acquires.ts';
import { endedGrant } from './ended-tokens.ts';
import { Envelope, type EnvelopeOptions, sessionExpired } from './envelope.ts';
import type { GrantedAcquire } from './grants.ts';
import { listenTo } from './namespace-listener.ts';
import { NamespaceSession, type NamespaceSessionOptions } from './namespace-session.ts';
import type { Liveness } from './service.ts';
import type { SidecarRecord, StateStore } from './state-store.ts';
import type { Target } from './target.ts';

export interface NewEnvelope {
  readonly client: string;
  /** Undefined: as the namespaces want it. */
  readonly ttlMs: number | undefined;
  readonly keepalive: Liveness;
  /** 0 = the namespace's alone. */
  readonly maxHoldMs: number;
  readonly isSingle: boolean;
}

type SessionRecord = Extract<SidecarRecord, { type: 'session' }>;

export class Envelopes {
  readonly #runtime: Runtime;
  readonly #store: StateStore;
  readonly #targets: ReadonlyMap<string, Target>;
  readonly #envelopes = new Map<string, Envelope>();

  constructor(runtime: Runtime, store: StateStore, targets: ReadonlyMap<string, Target>) {
    this.#runtime = runtime;
    this.#store = store;
    this.#targets = targets;
  }

  all(): Iterable<Envelope> {
    return this.#envelopes.values();
  }

  find(id: string): Envelope | undefined {
    return this.#envelopes.get(id);
  }

  /** @throws SESSION_EXPIRED */
  get(id: string): Envelope {
    const envelope = this.#envelopes.get(id);
    if (envelope === undefined) throw sessionExpired(id, 'unknown, or ended before');
    return envelope;
  }

  /** @throws QUOTA_EXCEEDED */
  open({ ttlMs, ...rest }: NewEnvelope): Envelope {
    if (this.#envelopes.size >= SESSIONS_MAX) {
      const message = `this sidecar serves ${SESSIONS_MAX} sessions already; close those that are done`;
      throw new LeaseholdError('QUOTA_EXCEEDED', message, { limit: SESSIONS_MAX });
    }
    const record = {
      type: 'envelope',
      id: `s-${this.#runtime.random.hex(12)}`,
      ...rest,
      ttlMs: ttlMs ?? this.#shortestTtlMs(),
      isTtlChosen: ttlMs !== undefined,
    } as const;
    this.#store.put(record);
    return this.#add(record);
  }

  /** What the session has in this namespace, opened now if it has not touched it before. */
  namespaceOf(envelope: Envelope, target: Target): NamespaceSession {
    const known = envelope.namespaces.get(target.alias);
    if (known !== undefined) return known;
    const { client, ttlMs, isTtlChosen, maxHoldMs, keepalive } = envelope.options;
    const defaults = target.defaults();
    const secret = this.#runtime.random.hex(32);
    return this.#addNamespace(envelope, target, {
      clientName: client,
      ttlMs: isTtlChosen ? ttlMs : defaults.ttlMs,
      // A frozen process keeps its socket open, so a stream alone is no sign of life for ever (rule A3).
      maxHoldMs: maxHoldMs === 0 && keepalive === 'stream' ? defaults.maxHoldMs : maxHoldMs,
      secret,
      secretHash: sha256(secret),
    });
  }

  /** Ends a session everywhere; resolves when every group has confirmed it. */
  async close(envelope: Envelope, clean: boolean, reason: string): Promise<void> {
    const closing = [...envelope.namespaces.values()].map((session) => session.close(clean, reason));
    this.#forget(envelope, reason);
    await Promise.all(closing);
  }

  /** Goes on with the sessions of an earlier life (rule A4). */
  restore(): void {
    const records = this.#store.load();
    for (const record of records) if (record.type === 'envelope') this.#add(record);
    for (const record of records) {
      const ended = record.type === 'envelope' ? undefined : this.#targets.get(record.alias)?.ended;
      // What was lost is countable until it was counted: that is its record, and not the memory of its request.
      if (record.type === 'settled' && record.how === 'released') ended?.add(endedGrant(record, false));
      if (record.type === 'lost')
        ended?.add(endedGrant({ ...record, how: 'lost', reentrant: false, request: null }, false));
    }
    const grants = Map.groupBy(records.filter(isGrant), ({ envelope, alias }) => `${envelope} ${alias}`);
    for (const record of records) {
      if (record.type !== 'session') continue;
      const envelope = this.#envelopes.get(record.envelope);
      const target = this.#targets.get(record.alias);
      const known = grants.get(`${record.envelope} ${record.alias}`) ?? [];
      if (envelope === undefined || target === undefined) this.#store.remove(record);
      else {
        this.#resume(envelope, target, record, {
          held: known.filter(({ type }) => type === 'grant').map(grantFrom),
          over: known.filter(({ type }) => type === 'settled').map(grantFrom),
        });
      }
    }
  }

  /** Without a choice it keeps at least the pace of the most demanding namespace it could touch. */
  #shortestTtlMs(): number {
    const all = [...this.#targets.values()].map(({ defaults }) => defaults().ttlMs);
    return all.length === 0 ? TTL_MS_DEFAULT : Math.min(...all);
  }

  #add(options: EnvelopeOptions): Envelope {
    const envelope: Envelope = new Envelope(this.#runtime, options, (reason) => {
      void this.close(envelope, false, reason);
    });
    this.#envelopes.set(options.id, envelope);
    return envelope;
  }

  #resume(envelope: Envelope, target: Target, record: SessionRecord, known: KnownGrants): void {
    const { session, attach, secret, ttlMs } = record;
    const { client, maxHoldMs, keepalive } = envelope.options;
    this.#addNamespace(envelope, target, {
      clientName: client,
      ttlMs,
      maxHoldMs,
      secret,
      secretHash: sha256(secret),
      // Only a stream shows that this application lives: nothing is renewed until it is back (rule A3).
      resume: { session, attach, dormant: keepalive !== 'app' },
      known,
    });
  }

  #addNamespace(envelope: Envelope, target: Target, options: NamespaceSessionOptions): NamespaceSession {
    const { alias, metrics, ended } = target;
    // It may hear of its end again while it is still being closed; by then another one may have its place.
    let isOver = false;
    const context = {
      runtime: this.#runtime,
      envelope,
      alias,
      secret: options.secret,
      ttlMs: options.ttlMs,
      store: this.#store,
      metrics,
      ended,
      isOver: () => isOver,
      onRefused: () => {
        if (isOver) return;
        isOver = true;
        envelope.namespaces.delete(alias);
      },
      onOver: (reason: string) => {
        if (isOver) return;
        isOver = true;
        this.#namespaceOver(envelope, alias, reason);
      },
    };
    const session: NamespaceSession = new NamespaceSession(
      target.group,
      listenTo(context, () => session),
      options,
    );
    envelope.add(alias, session);
    return session;
  }

  /** Rule A6: loss is per group. A session with nothing left in any group ends with it. */
  #namespaceOver(envelope: Envelope, alias: string, reason: string): void {
    envelope.namespaces.delete(alias);
    this.#store.remove({ type: 'session', envelope: envelope.options.id, alias });
    if (envelope.namespaces.size === 0) this.#forget(envelope, reason);
  }

  #forget(envelope: Envelope, reason: string): void {
    envelope.end(reason);
    this.#envelopes.delete(envelope.options.id);
    this.#store.removeEnvelope(envelope.options.id);
  }
}

type GrantRecord = Extract<SidecarRecord, { type: 'grant' | 'settled' }>;

function isGrant(record: SidecarRecord): record is GrantRecord {
  return record.type === 'grant' || record.type === 'settled';
}

function grantFrom(record: GrantRecord): GrantedAcquire {
  const { token, key, request } = record;
  return { body: bodyOf(record), token, key, request: request ?? undefined };
}
