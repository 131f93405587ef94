/**
 * The parts of `leasehold dev` on virtual time: one lock server on a log in memory, and sidecars whose way to it can be cut.
 * For what takes minutes or needs a fault that a real process cannot be given from outside.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { LeaseholdError } from '../../../src/api/errors.ts';
import type { LockView } from '../../../src/api/wire.ts';
import { MemoryLog } from '../../../src/log/memory-log.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import { silentSidecarMetrics } from '../../../src/platform/metrics.fixture.ts';
import { Replica } from '../../../src/server/member/replica.ts';
import type { Connect } from '../../../src/sidecar/group-client.ts';
import type { AcquireOptions, Granted, OpenOptions, StreamLine } from '../../../src/sidecar/service.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore } from '../../../src/sidecar/state-store.ts';
import { namespaceConfig } from '../core.ts';
import { VirtualRuntime } from '../virtual-runtime.ts';

const ALIAS = 'jobs';
export const TTL_MS = 5_000;
/** max(500 ms, TTL/5), rule A1. */
export const MARGIN_MS = 1_000;
const DEVELOPER = { account: 'dev/developer', podUid: '' };
const CALL_LATENCY_MS = 2;
const ANSWER_MS_MAX = 10_000;

export class VirtualServer {
  readonly runtime: VirtualRuntime;
  readonly stopped: string[] = [];
  readonly #config: NamespaceConfig;
  readonly #store: MemoryStore;
  #log: MemoryLog;
  #replica: Replica | null = null;

  private constructor(runtime: VirtualRuntime, config: NamespaceConfig) {
    this.runtime = runtime;
    this.#config = config;
    this.#store = new MemoryStore(runtime.random.hex(16));
    this.#log = this.#openLog();
  }

  static async start(differs: Partial<NamespaceConfig> = {}, seed = 1): Promise<VirtualServer> {
    const config = namespaceConfig({ ttlMs: TTL_MS, operationsPerSecondPerClient: 1_000_000, ...differs });
    const server = new VirtualServer(new VirtualRuntime(seed), config);
    await server.#serve();
    return server;
  }

  get replica(): Replica {
    if (this.#replica === null) throw new Error('the server is down');
    return this.#replica;
  }

  get isDown(): boolean {
    return this.#replica === null;
  }

  /** While true nothing can be committed (rule S11). */
  setOutage(outage: boolean): void {
    this.#log.setOutage(outage);
  }

  /** kill -9 of the lock server, and its next life after `downMs`. */
  async restart(downMs: number): Promise<void> {
    this.#log.crash();
    const { frontEnd } = this.replica;
    frontEnd.setLeader(null);
    frontEnd.close();
    this.#replica = null;
    await this.runtime.pass(downMs);
    this.#log = this.#openLog();
    await this.#serve();
  }

  sidecar(): VirtualSidecar {
    return new VirtualSidecar(this);
  }

  async lock(name: string): Promise<LockView> {
    const read = this.replica.read({ type: 'getLock', name });
    const result = await this.runtime.until(read, ANSWER_MS_MAX);
    if (result.type !== 'lock') throw new Error(`unexpected ${result.type}`);
    return result.lock;
  }

  /** Token of the holder, null when nobody holds. */
  async tokenOf(name: string): Promise<number | null> {
    return (await this.lock(name)).holders[0]?.token ?? null;
  }

  #openLog(): MemoryLog {
    const { timers, random } = this.runtime;
    return new MemoryLog(this.#store, { timers, random, latencyMs: () => CALL_LATENCY_MS });
  }

  async #serve(): Promise<void> {
    const starting = Replica.start({
      runtime: this.runtime,
      log: this.#log,
      serverId: 'virtual',
      config: this.#config,
      onStopped: (reason) => this.stopped.push(reason.kind),
    });
    this.#replica = await this.runtime.until(starting, ANSWER_MS_MAX);
  }
}

/** An acquire under way. */
export interface Acquiring {
  readonly granted: Promise<Granted>;
  hangUp(): void;
}

export interface Keeping {
  /** Codes with which keepalives were refused. */
  readonly refused: string[];
  stop(): void;
}

export interface Holding {
  readonly session: string;
  readonly keeping: Keeping;
  readonly token: number;
}

/** A pod's sidecar with the applications behind it. */
export class VirtualSidecar {
  readonly runtime: VirtualRuntime;
  readonly #server: VirtualServer;
  readonly #store = new MemoryStateStore();
  #sidecar: Sidecar;
  #isCut = false;

  constructor(server: VirtualServer) {
    this.runtime = server.runtime;
    this.#server = server;
    this.#sidecar = this.#start();
  }

  /** The sidecar itself, for what has no short form here. */
  get service(): Sidecar {
    return this.#sidecar;
  }

  /** While true nothing gets through, in either direction, and nobody is told (a broken network). */
  setCut(isCut: boolean): void {
    this.#isCut = isCut;
  }

  /** The sidecar's process ends and comes back on what it had kept. */
  restart(): void {
    this.#sidecar.stop();
    this.#sidecar = this.#start();
    this.#sidecar.restore();
  }

  async open(differs: Partial<OpenOptions> = {}): Promise<string> {
    const options = { client: 'test', ttlMs: TTL_MS, keepalive: 'app', ...differs } as const;
    return (await this.#sidecar.openSession(options)).sessionId;
  }

  /** Calls keepalive every fifth of the TTL until told to stop; gives the codes of refusals. */
  keepAlive(sessionId: string, everyMs = TTL_MS / 5): Keeping {
    const refused: string[] = [];
    let isStopped = false;
    const again = (): void => {
      if (isStopped) return;
      this.#sidecar
        .keepaliveSession(sessionId)
        .catch((error: LeaseholdError) => void refused.push(error.code));
      this.runtime.timers.after(everyMs, again);
    };
    again();
    return {
      refused,
      stop: () => {
        isStopped = true;
      },
    };
  }

  /** A session that is kept alive and holds `name`. */
  async holding(name: string): Promise<Holding> {
    const session = await this.open();
    const keeping = this.keepAlive(session);
    const { token } = await this.acquire(name, { sessionId: session });
    return { session, keeping, token };
  }

  acquiring(name: string, differs: Partial<AcquireOptions> = {}): Acquiring {
    const hangUp = new AbortController();
    const granted = this.#sidecar.acquire(`${ALIAS}/${name}`, {
      mode: 'exclusive',
      permits: 1,
      reentrant: false,
      waitMs: 0,
      purpose: '',
      hangUp: hangUp.signal,
      ...differs,
    });
    // Who looks at it says so by awaiting it; nobody else has to hear of a refusal.
    granted.catch(() => undefined);
    return { granted, hangUp: () => hangUp.abort() };
  }

  acquire(name: string, differs: Partial<AcquireOptions> = {}): Promise<Granted> {
    const limitMs = (differs.waitMs ?? 0) + ANSWER_MS_MAX;
    return this.runtime.until(this.acquiring(name, differs).granted, limitMs);
  }

  /** The code of the refusal of what must be refused. */
  async refusal(acquiring: Promise<unknown>, limitMs = ANSWER_MS_MAX): Promise<string> {
    const refused = acquiring.then(
      () => 'granted',
      (error: LeaseholdError) => error.code,
    );
    return this.runtime.until(refused, limitMs);
  }

  async release(name: string, sessionId: string, token: number): Promise<void> {
    const releasing = this.#sidecar.release(`${ALIAS}/${name}`, { sessionId, token });
    await this.runtime.until(releasing, ANSWER_MS_MAX);
  }

  isHeld(name: string, token: number): boolean {
    return this.#sidecar.held(`${ALIAS}/${name}`, token).held;
  }

  /** Opens the application's stream; lines come with their time. */
  stream(sessionId: string): { readonly lines: (StreamLine & { readonly atMs: number })[]; close(): void } {
    const lines: (StreamLine & { readonly atMs: number })[] = [];
    const subscription = this.#sidecar.openEvents(sessionId, (line) => {
      lines.push({ ...line, atMs: this.runtime.nowMs });
    });
    return { lines, close: () => subscription.close() };
  }

  #start(): Sidecar {
    const sidecar = new Sidecar({ runtime: this.runtime, store: this.#store });
    sidecar.addNamespace({
      alias: ALIAS,
      connect: this.#connect,
      metrics: silentSidecarMetrics,
      defaults: () => ({ ttlMs: TTL_MS, maxHoldMs: 24 * 3_600_000 }),
    });
    return sidecar;
  }

  readonly #connect: Connect = (handler) => {
    if (this.#server.isDown) {
      this.runtime.timers.soon(() => handler.onClose());
      return { send: () => undefined, close: () => undefined };
    }
    const stream = this.#server.replica.frontEnd.connect(DEVELOPER, {
      onFrame: (frame) => {
        if (!this.#isCut) handler.onFrame(frame);
      },
      onClose: () => handler.onClose(),
    });
    return {
      send: (frame) => {
        if (!this.#isCut) stream.send(frame);
      },
      close: () => stream.close(),
    };
  };
}
