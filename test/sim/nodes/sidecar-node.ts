/**
 * A sidecar process: the shipped Sidecar over virtual streams, with a state store that outlives it. Also the localhost side
 * of it: what applications call travels to it, waits while it is stopped, and breaks when it dies.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { SessionId } from '../../../src/api/entry.ts';
import { silentSidecarMetrics } from '../../../src/platform/metrics.fixture.ts';
import type { Deadline } from '../../../src/sidecar/service.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore, type SidecarRecord } from '../../../src/sidecar/state-store.ts';
import type { FrameTap } from '../judge/frame-tap.ts';
import type { Link } from '../world/network.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { US_PER_MS } from '../world/world.ts';
import type { AppShare } from './app-grant.ts';
import type { Group } from './group.ts';
import { LocalHttp } from './local-http.ts';
import { type LocalhostOptions, silentSinceUs } from './localhost.ts';

type EnvelopeRecord = Extract<SidecarRecord, { type: 'envelope' }>;
type GrantRecord = Extract<SidecarRecord, { type: 'grant' }>;

/** Remembers which group session belongs to which session of an application, also when both are over. */
export class WatchedStateStore extends MemoryStateStore {
  /** Every session there ever was. */
  readonly envelopes = new Map<string, EnvelopeRecord>();
  readonly #open = new Set<string>();
  readonly #groupSessions = new Map<string, SessionId>();
  readonly #ttlsMs = new Map<string, number>();
  /** By alias and session: asked for often, and a text made of both for each question costs more than the answer. */
  readonly #owners = new Map<string, Map<SessionId, string>>();
  /** What is in the file now, by what it is about. */
  readonly #grants = new Map<string, GrantRecord>();
  readonly #kept = new Map<string, SessionId>();
  readonly #lost = new Set<string>();
  readonly #attaches = new Map<string, Map<SessionId, number>>();

  override put(record: SidecarRecord): void {
    super.put(record);
    if (record.type === 'envelope') {
      this.envelopes.set(record.id, record);
      this.#open.add(record.id);
    } else if (record.type === 'session') {
      this.#groupSessions.set(placeOf(record), record.session);
      this.#ttlsMs.set(placeOf(record), record.ttlMs);
      this.#kept.set(placeOf(record), record.session);
      const attaches = this.#attaches.get(record.alias) ?? new Map<SessionId, number>();
      this.#attaches.set(record.alias, attaches.set(record.session, record.attach));
      const owners = this.#owners.get(record.alias) ?? new Map<SessionId, string>();
      this.#owners.set(record.alias, owners.set(record.session, record.envelope));
    } else if (record.type === 'grant') {
      this.#grants.set(`${placeOf(record)} ${record.key}`, record);
    } else if (record.type === 'lost') {
      this.#lost.add(`${placeOf(record)} ${record.token}`);
    }
  }

  /** Whether it ever noted that this grant was lost. */
  wasLost(alias: string, envelope: string, token: number): boolean {
    return this.#lost.has(`${placeOf({ alias, envelope })} ${token}`);
  }

  override remove(record: Parameters<MemoryStateStore['remove']>[0]): void {
    super.remove(record);
    if (record.type === 'session') this.#kept.delete(placeOf(record));
    if (record.type === 'grant') this.#grants.delete(`${placeOf(record)} ${record.key}`);
  }

  override removeEnvelope(id: string): void {
    for (const record of this.load()) {
      if (record.type !== 'envelope' && record.type !== 'mark' && record.envelope === id) this.remove(record);
    }
    super.removeEnvelope(id);
    this.#open.delete(id);
  }

  get openEnvelopes(): Iterable<string> {
    return this.#open;
  }

  /** Whether the session goes on, as far as the sidecar is concerned. */
  isOpen(envelope: string): boolean {
    return this.#open.has(envelope);
  }

  groupSession(alias: string, envelope: string): SessionId | undefined {
    return this.#groupSessions.get(`${alias} ${envelope}`);
  }

  /** How long an application may be silent before it loses what it has in this namespace: the namespace's TTL, or its own. */
  silenceMsMax(alias: string, envelope: string): number {
    const ownMs = this.envelopes.get(envelope)?.ttlMs ?? 0;
    return Math.max(ownMs, this.#ttlsMs.get(`${alias} ${envelope}`) ?? 0);
  }

  envelopeOf(alias: string, session: SessionId): string | undefined {
    return this.#owners.get(alias)?.get(session);
  }

  /** The number under which it attached this session last, or tried to. */
  attachOf(alias: string, session: SessionId): number | undefined {
    return this.#attaches.get(alias)?.get(session);
  }

  /** As it is now. */
  copy(): WatchedStateStore {
    const copy = new WatchedStateStore();
    for (const record of this.load()) copy.put(record);
    return copy;
  }

  /** Numbers of sessions begin anew (rule S10). */
  forgetOwners(alias: string): void {
    this.#attaches.delete(alias);
    this.#owners.delete(alias);
  }

  /** Whether the sidecar goes on with this group session. */
  keeps(alias: string, session: SessionId): boolean {
    const envelope = this.envelopeOf(alias, session);
    return envelope !== undefined && this.#kept.get(`${alias} ${envelope}`) === session;
  }

  /** Of a grant that several acquires may share: the part of this `request`, if it has one. */
  grant(
    alias: string,
    envelope: string,
    { token, request = null }: { readonly token: number; readonly request: string | null | undefined },
  ): GrantRecord | undefined {
    return this.#find(alias, envelope, (grant) => grant.token === token && grant.request === request);
  }

  grantOfKey(alias: string, envelope: string, key: string): GrantRecord | undefined {
    return this.#grants.get(`${placeOf({ alias, envelope })} ${key}`);
  }

  grantOfRequest(alias: string, envelope: string, request: string): GrantRecord | undefined {
    return this.#find(alias, envelope, (grant) => grant.request === request);
  }

  #find(alias: string, envelope: string, fits: (grant: GrantRecord) => boolean): GrantRecord | undefined {
    for (const grant of this.#grants.values())
      if (grant.alias === alias && grant.envelope === envelope && fits(grant)) return grant;
    return undefined;
  }
}

function placeOf({ alias, envelope }: { readonly alias: string; readonly envelope: string }): string {
  return `${alias} ${envelope}`;
}

/** Between the moment in which an application shows itself and the one in which that is noted. */
const ROUNDING_MS = 1;

export interface SidecarNodeOptions {
  readonly name: string;
  readonly process: VirtualProcess;
  readonly groups: readonly Group[];
  /** To each server of each group. */
  readonly links: ReadonlyMap<string, readonly Link[]>;
  readonly taps: ReadonlyMap<string, FrameTap>;
  readonly store: WatchedStateStore;
  /** Server and sidecar share their process. */
  readonly isOneProcess: boolean;
  readonly http: Omit<LocalhostOptions, 'sidecar'>;
  readonly onLifeEnded: (life: Life) => void;
}

export class SidecarNode {
  readonly name: string;
  readonly process: VirtualProcess;
  readonly store: WatchedStateStore;
  readonly http: LocalHttp;
  /** Name of this node among the parts that faults hinder. */
  readonly part: string;
  readonly #options: SidecarNodeOptions;
  /** Group sessions that this life of the sidecar went on with, by alias and number. */
  readonly #restored = new Set<string>();
  #sidecar: Sidecar | null = null;

  constructor(options: SidecarNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.process = options.process;
    this.store = options.store;
    this.part = options.name;
    this.http = new LocalHttp(options.process.world, { ...options.http, sidecar: this });
  }

  /** Null while it does not run. */
  get sidecar(): Sidecar | null {
    return this.#sidecar;
  }

  attachOf(alias: string, session: SessionId): number | undefined {
    return this.store.attachOf(alias, session);
  }

  /** It would answer "held" now. */
  believes(fullName: string, token: number): boolean {
    return !this.process.isPaused && this.#sidecar?.held(fullName, token).held === true;
  }

  get links(): ReadonlyMap<string, readonly Link[]> {
    return this.#options.links;
  }

  /** Whether this group session is of an earlier life; one opened in this one was asked for by its application just now. */
  wasRestored(alias: string, session: SessionId): boolean {
    return this.#restored.has(`${alias} ${session}`);
  }

  /** Rules A4, C6: what one acquire was told it has is in the file until that one gives it back, it is lost, or its session is over. */
  checkKept(alias: string, { grant, request }: AppShare): void {
    const { store } = this;
    const { sessionId, session, token, fullName } = grant.options;
    if (store.grant(alias, sessionId, { token, request }) !== undefined) return;
    if (store.wasLost(alias, sessionId, token)) return;
    if (!store.keeps(alias, session) || !store.isOpen(sessionId)) return;
    const which = request === undefined ? '' : ` by ${request}`;
    const message = `token ${token} of ${fullName} is held${which}, and not in the state file any more`;
    this.#options.http.findings.add('rule A4', message);
  }

  /** Rule A4: what is in the file is known, also after a restart; called when a release was refused as not held. */
  checkForgotten(alias: string, { grant, request }: AppShare): void {
    const { sessionId, token, fullName } = grant.options;
    if (this.store.grant(alias, sessionId, { token, request }) === undefined) return;
    const message = `token ${token} of ${fullName} is in the state file, and its release is refused as not held`;
    this.#options.http.findings.add('rule A4', message);
  }

  /** Rule A1: no deadline told may be later than what the last acknowledged keepalive allows. */
  checkDeadline(
    alias: string,
    { sessionId, token }: { readonly sessionId: string; readonly token: number },
    deadline: Deadline,
  ): void {
    const session = this.store.groupSession(alias, sessionId);
    this.#checkAgainstSilence({ alias, sessionId }, Number(deadline.deadlineMonotonicNs) / 1e6);
    if (session !== undefined) this.#options.taps.get(alias)?.checkDeadline(session, token, deadline);
  }

  /** Rule A3: nor later than the end of the session if its application says nothing more. */
  #checkAgainstSilence(
    { alias, sessionId }: { readonly alias: string; readonly sessionId: string },
    toldMs: number,
  ): void {
    const envelope = this.store.envelopes.get(sessionId);
    const signs = this.http.localhost.signs.get(sessionId);
    const { machine, world } = this.process;
    // A sleep of the machine counts on one clock and not on the other.
    if (envelope === undefined || signs === undefined || machine.sleeps > 0) return;
    const silentMs = (world.nowUs - silentSinceUs(envelope.keepalive, signs, world.nowUs)) / US_PER_MS;
    const limitMs =
      machine.monotonicMs() - silentMs * machine.rate + this.store.silenceMsMax(alias, sessionId);
    if (toldMs <= limitMs + ROUNDING_MS) return;
    this.#options.http.findings.add(
      'rule A3',
      `session ${sessionId} is told ${toldMs} as its deadline; silent, it ends at ${limitMs}`,
    );
  }

  /** Hindered while any way of it to this group is. */
  linkPart(alias: string): string {
    return `link ${this.name} ${alias}`;
  }

  /** The way to one server of the group. */
  endpointPart(alias: string, place: number): string {
    return `${this.linkPart(alias)} ${place}`;
  }

  start(life: Life = this.process.start()): void {
    const options = this.#options;
    const { groups, store, isOneProcess } = options;
    const sidecar = new Sidecar({ runtime: life.runtime, store });
    for (const group of groups) {
      const links = options.links.get(group.alias) as readonly Link[];
      // As grpcConnect does: each new stream goes to the next server (rule S8).
      let next = Math.floor(links.length > 1 ? life.runtime.random.fraction() * links.length : 0);
      sidecar.addNamespace({
        alias: group.alias,
        connect: (handler) => {
          const link = links[next++ % links.length] as Link;
          const listener = isOneProcess ? group.listener(0) : null;
          return listener === null ? link.connect(life, handler) : link.connectWithin(listener, handler);
        },
        metrics: silentSidecarMetrics,
        defaults: () => defaultsOf(group.config),
      });
    }
    // What is restored counts from now on as if its application had just called.
    this.#restored.clear();
    for (const record of store.load()) {
      if (record.type === 'envelope') this.http.localhost.signsOf(record.id).isUnseen = true;
      if (record.type === 'session') this.#restored.add(`${record.alias} ${record.session}`);
    }
    for (const tap of this.#options.taps.values()) tap.restarted();
    sidecar.restore();
    this.#sidecar = sidecar;
  }

  forgetAcknowledged(alias: string): void {
    this.#options.taps.get(alias)?.restarted();
  }

  kill(): void {
    const { life } = this.process;
    this.#sidecar = null;
    this.process.kill();
    this.http.sidecarDied();
    if (life !== null) this.#options.onLifeEnded(life);
  }
}

function defaultsOf(config: NamespaceConfig | null): { readonly ttlMs: number; readonly maxHoldMs: number } {
  return config ?? { ttlMs: 15_000, maxHoldMs: 86_400_000 };
}
