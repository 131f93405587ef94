/**
 * A sidecar process: the shipped Sidecar over virtual streams, with a state store that outlives it. Also the localhost side
 * of it: what applications call travels to it, waits while it is stopped, and breaks when it dies.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { SessionId } from '../../../src/api/entry.ts';
import { silentSidecarMetrics } from '../../../src/platform/metrics.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore, type SidecarRecord } from '../../../src/sidecar/state-store.ts';
import type { Link } from '../world/network.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { LocalHttp, type LocalHttpOptions } from './local-http.ts';
import type { LockGroup } from './lock-group.ts';

type EnvelopeRecord = Extract<SidecarRecord, { type: 'envelope' }>;
type GrantRecord = Extract<SidecarRecord, { type: 'grant' }>;

/** Remembers which group session belongs to which session of an application, also when both are over. */
export class WatchedStateStore extends MemoryStateStore {
  readonly #groupSessions = new Map<string, SessionId>();
  readonly #owners = new Map<string, string>();
  /** Every session there ever was. */
  readonly envelopes = new Map<string, EnvelopeRecord>();

  override put(record: SidecarRecord): void {
    super.put(record);
    if (record.type === 'envelope') this.envelopes.set(record.id, record);
    if (record.type !== 'session') return;
    this.#groupSessions.set(`${record.alias} ${record.envelope}`, record.session);
    this.#owners.set(`${record.alias} ${record.session}`, record.envelope);
  }

  groupSession(alias: string, envelope: string): SessionId | undefined {
    return this.#groupSessions.get(`${alias} ${envelope}`);
  }

  envelopeOf(alias: string, session: SessionId): string | undefined {
    return this.#owners.get(`${alias} ${session}`);
  }

  grant(alias: string, envelope: string, token: number): GrantRecord | undefined {
    return this.grantsOf(envelope).find((grant) => grant.alias === alias && grant.token === token);
  }

  grantsOf(envelope: string): readonly GrantRecord[] {
    return this.load().filter((record) => record.type === 'grant' && record.envelope === envelope) as GrantRecord[];
  }
}

export interface SidecarNodeOptions {
  readonly name: string;
  readonly process: VirtualProcess;
  readonly groups: readonly LockGroup[];
  readonly links: ReadonlyMap<string, Link>;
  readonly store: WatchedStateStore;
  /** Server and sidecar share their process. */
  readonly isOneProcess: boolean;
  readonly http: Omit<LocalHttpOptions, 'sidecar'>;
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

  get links(): ReadonlyMap<string, Link> {
    return this.#options.links;
  }

  linkPart(alias: string): string {
    return `link ${this.name} ${alias}`;
  }

  start(life: Life = this.process.start()): void {
    const { groups, links, store, isOneProcess } = this.#options;
    const sidecar = new Sidecar({ runtime: life.runtime, store });
    for (const group of groups) {
      const link = links.get(group.alias) as Link;
      sidecar.addNamespace({
        alias: group.alias,
        connect: (handler) => {
          const listener = isOneProcess ? group.listener() : null;
          return listener === null ? link.connect(life, handler) : link.connectWithin(listener, handler);
        },
        metrics: silentSidecarMetrics,
        defaults: () => defaultsOf(group.config),
      });
    }
    // What is restored counts from now on as if its application had just called.
    for (const record of store.load()) if (record.type === 'envelope') this.http.signsOf(record.id);
    sidecar.restore();
    this.#sidecar = sidecar;
  }

  kill(): void {
    const { life } = this.process;
    this.#sidecar = null;
    this.process.kill();
    this.http.died();
    if (life !== null) this.#options.onLifeEnded(life);
  }
}

function defaultsOf(config: NamespaceConfig | null): { readonly ttlMs: number; readonly maxHoldMs: number } {
  return config ?? { ttlMs: 15_000, maxHoldMs: 86_400_000 };
}
