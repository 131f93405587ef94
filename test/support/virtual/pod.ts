/**
 * A sidecar with its applications, on virtual time, before lock groups that run the shipped lock server: what a test can
 * do to the ways in between, to the logs and to the sidecar's process, it does here.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { ErrorCode, LeaseholdError } from '../../../src/api/errors.ts';
import type { LockView } from '../../../src/api/wire.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import type { SidecarMetrics } from '../../../src/platform/metrics.ts';
import { Replica } from '../../../src/server/member/replica.ts';
import type {
  AcquireOptions,
  Granted,
  Held,
  OpenOptions,
  Released,
  StreamLine,
} from '../../../src/sidecar/service.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore } from '../../../src/sidecar/state-store.ts';
import { namespaceConfig } from '../core.ts';
import { VirtualRuntime } from '../virtual-runtime.ts';
import { HeldLog } from './held-log.ts';
import { Line } from './line.ts';

export const TTL_MS = 15_000;
/** max(500 ms, TTL/5), rule A1. */
export const MARGIN_MS = 3_000;
export const LEASE_MS = TTL_MS - MARGIN_MS;
const START_MS_MAX = 1_000;

/** One lock group: its log, its server, and the way from the pod to it. */
export class Group {
  readonly alias: string;
  readonly line: Line;
  readonly stopped: string[] = [];
  readonly config: NamespaceConfig;
  readonly #runtime: VirtualRuntime;
  readonly store: MemoryStore;
  log: HeldLog;
  #replica: Replica | null = null;

  constructor(runtime: VirtualRuntime, alias: string, config: NamespaceConfig) {
    this.#runtime = runtime;
    this.alias = alias;
    this.config = config;
    this.store = new MemoryStore(`lineage-of-${alias}`);
    this.log = new HeldLog(this.store);
    this.line = new Line(runtime, () => this.#replica?.frontEnd ?? null);
  }

  get replica(): Replica {
    if (this.#replica === null) throw new Error(`${this.alias} does not run`);
    return this.#replica;
  }

  async start(): Promise<void> {
    this.log = new HeldLog(this.store);
    const starting = Replica.start({
      runtime: this.#runtime,
      log: this.log,
      serverId: this.alias,
      config: this.config,
      onStopped: ({ kind }) => void this.stopped.push(kind),
    });
    this.#replica = await this.#runtime.until(starting, START_MS_MAX);
  }

  /** The process dies: streams break, what was in flight is lost. */
  kill(): void {
    this.log.hold();
    this.#replica = null;
    this.line.break();
  }

  /** What the group says of a lock, asked at the group itself. */
  async lock(name: string): Promise<LockView> {
    const result = await this.#runtime.until(this.replica.read({ type: 'getLock', name }), START_MS_MAX);
    if (result.type !== 'lock') throw new Error(`unexpected ${result.type}`);
    return result.lock;
  }

  async tokenOf(name: string): Promise<number | null> {
    return (await this.lock(name)).holders[0]?.token ?? null;
  }

  async break(name: string, token: number, differs: { readonly now?: boolean } = {}): Promise<void> {
    const command = { type: 'break', name, token, now: false, reason: 'test', by: 'me', ...differs } as const;
    await this.#runtime.until(this.replica.submit(command), START_MS_MAX);
  }
}

/** An acquire under way. */
export interface Acquiring {
  readonly granted: Promise<Granted>;
  /** `granted`, or the code of the refusal; null while it is open. */
  readonly outcome: { value: 'granted' | ErrorCode | null };
  hangUp(): void;
}

export type Timed = StreamLine & { readonly atMs: number };

export interface PodOptions {
  readonly aliases?: readonly string[];
  readonly config?: Partial<NamespaceConfig>;
  /** Where the namespaces differ; the others have `TTL_MS`. */
  readonly ttlMsOf?: Readonly<Record<string, number>>;
}

export class Pod {
  readonly runtime = new VirtualRuntime();
  readonly groups = new Map<string, Group>();
  readonly counts = { jeopardy: 0, lost: 0, expiredWhileWorking: 0, acquired: [] as string[] };
  store = new MemoryStateStore();
  sidecar: Sidecar;

  private constructor({ aliases = ['jobs'], config = {}, ttlMsOf = {} }: PodOptions) {
    for (const alias of aliases) {
      const limits = { operationsPerSecond: 1_000_000, operationsPerSecondPerClient: 1_000_000 };
      const group = new Group(
        this.runtime,
        alias,
        namespaceConfig({ ttlMs: ttlMsOf[alias] ?? TTL_MS, name: alias, ...limits, ...config }),
      );
      this.groups.set(alias, group);
    }
    this.sidecar = this.newSidecar();
  }

  static async start(options: PodOptions = {}): Promise<Pod> {
    const pod = new Pod(options);
    for (const group of pod.groups.values()) await group.start();
    pod.serve();
    return pod;
  }

  /** The first group, which most tests have alone. */
  get jobs(): Group {
    return this.group('jobs');
  }

  group(alias: string): Group {
    const group = this.groups.get(alias);
    if (group === undefined) throw new Error(`no group ${alias}`);
    return group;
  }

  newSidecar(): Sidecar {
    return new Sidecar({ runtime: this.runtime, store: this.store });
  }

  /** Adds the namespaces to the sidecar, as a starting process does. */
  serve(): void {
    for (const alias of this.groups.keys()) this.addNamespace(alias);
  }

  addNamespace(alias: string): void {
    const { line, config } = this.group(alias);
    this.sidecar.addNamespace({
      alias,
      connect: line.connect,
      metrics: this.#metrics(),
      defaults: () => config,
    });
  }

  /** The sidecar's process ends, and after a while the next one goes on with what is on disk. */
  async restart(downMs = 0): Promise<void> {
    this.sidecar.stop();
    await this.runtime.pass(downMs);
    this.sidecar = this.newSidecar();
    this.serve();
    this.sidecar.restore();
  }

  async open(differs: Partial<OpenOptions> = {}): Promise<string> {
    const opened = await this.sidecar.openSession({
      client: 'app',
      ttlMs: TTL_MS,
      keepalive: 'app',
      ...differs,
    });
    return opened.sessionId;
  }

  /** Calls keepalive every fifth of the TTL, until told to stop or refused. */
  keepAlive(sessionId: string, everyMs = TTL_MS / 5): { stop(): void } {
    let isStopped = false;
    const again = (): void => {
      if (isStopped) return;
      this.sidecar.keepaliveSession(sessionId).then(
        () => void this.runtime.timers.after(everyMs, again),
        () => undefined,
      );
    };
    again();
    return {
      stop: () => {
        isStopped = true;
      },
    };
  }

  acquiring(name: string, differs: Partial<AcquireOptions> = {}): Acquiring {
    const hangUp = new AbortController();
    const fullName = name.includes('/') ? name : `jobs/${name}`;
    const granted = this.sidecar.acquire(fullName, {
      mode: 'exclusive',
      permits: 1,
      reentrant: false,
      waitMs: 0,
      purpose: '',
      hangUp: hangUp.signal,
      ...differs,
    });
    const outcome: Acquiring['outcome'] = { value: null };
    granted.then(
      () => {
        outcome.value = 'granted';
      },
      (error: LeaseholdError) => {
        outcome.value = error.code;
      },
    );
    return { granted, outcome, hangUp: () => hangUp.abort() };
  }

  acquire(name: string, differs: Partial<AcquireOptions> = {}): Promise<Granted> {
    return this.runtime.until(this.acquiring(name, differs).granted, (differs.waitMs ?? 0) + 10_000);
  }

  /** A session kept alive by its application's calls, holding one lock. */
  async holding(name: string, differs: Partial<AcquireOptions> = {}) {
    const sessionId = await this.open();
    const keeping = this.keepAlive(sessionId);
    const { token } = await this.acquire(name, { sessionId, ...differs });
    return { sessionId, token, keeping };
  }

  /** `request`: which acquire of a re-entrant grant. */
  async release(name: string, sessionId: string, token: number, request?: string): Promise<Released> {
    const named = request === undefined ? {} : { request };
    return this.runtime.until(this.sidecar.release(`jobs/${name}`, { sessionId, token, ...named }), 10_000);
  }

  /** The error with which a call ends; fails when it does not end within the limit, or well. */
  async refusal(call: Promise<unknown>, limitMs = 10_000): Promise<LeaseholdError> {
    const refused = call.then(
      () => null,
      (error: LeaseholdError) => error,
    );
    const error = await this.runtime.until(refused, limitMs);
    if (error === null) throw new Error('not refused');
    return error;
  }

  held(name: string, token: number): Held {
    return this.sidecar.held(`jobs/${name}`, token);
  }

  stream(sessionId: string): { readonly lines: Timed[]; readonly events: () => string[]; close(): void } {
    const lines: Timed[] = [];
    const subscription = this.sidecar.openEvents(sessionId, (line) => {
      lines.push({ ...line, atMs: this.runtime.nowMs });
    });
    return { lines, events: () => lines.map(({ event }) => event), close: () => subscription.close() };
  }

  #metrics(): SidecarMetrics {
    const { counts } = this;
    return {
      acquired: (outcome) => void counts.acquired.push(outcome),
      jeopardy: () => void counts.jeopardy++,
      lost: () => void counts.lost++,
      leaseExpiredWhileWorking: () => void counts.expiredWhileWorking++,
      observe: () => () => undefined,
    };
  }
}
