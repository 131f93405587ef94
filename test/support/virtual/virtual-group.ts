/**
 * A group of three members on virtual time: the real members, front ends, standbys and leaders, on one log in memory, with streams between
 * them that can be cut. What a test needs of etcd is here too: who campaigns waits while somebody leads.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import { LogUnavailableError } from '../../../src/log/errors.ts';
import { MemoryLog } from '../../../src/log/memory-log.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import type { Leadership } from '../../../src/log/port.ts';
import type { LeaderStream, LeaderStreamHandler } from '../../../src/server/front-end/leader-link.ts';
import type { FrontEndLink } from '../../../src/server/leader/outbox.ts';
import { Member } from '../../../src/server/member/member.ts';
import { namespaceConfig } from '../core.ts';
import { VirtualRuntime } from '../virtual-runtime.ts';

const PING_MS = 200;
const CALL_MS = 2;

/** As etcd does it: the key of a leader has to go before another one can come. */
class CampaignedStore extends MemoryStore {
  override campaign(serverId: string): Leadership {
    const leader = this.leader();
    if (leader !== null && leader.serverId !== serverId) throw new LogUnavailableError('somebody leads');
    return super.campaign(serverId);
  }
}

export interface VirtualServer {
  readonly name: string;
  readonly member: Member;
  readonly log: MemoryLog;
  readonly halted: unknown[];
  /** Told that a new lineage of its log has begun. */
  replaced: number;
  /** No stream from here to others nor from others to here. */
  isCut: boolean;
  /** Of its calls to the log. */
  readonly pace: { latencyMs: number };
  /** Ends of the streams that others have to this one. */
  readonly served: Set<() => void>;
}

interface VirtualGroupOptions {
  readonly silenceMs?: number;
  readonly snapshotDueBytes?: number;
  readonly config?: NamespaceConfig;
}

export class VirtualGroup {
  readonly runtime = new VirtualRuntime();
  readonly store = new CampaignedStore('l');
  readonly servers: VirtualServer[];

  /** How far the wall clock of a server is from that of the others. */
  readonly #skews = new Map<string, number>();
  readonly #silenceMs: number;
  readonly #snapshotDueBytes: number | undefined;
  readonly #config: NamespaceConfig;

  constructor({ silenceMs = 400, snapshotDueBytes, config = namespaceConfig() }: VirtualGroupOptions = {}) {
    this.#silenceMs = silenceMs;
    this.#snapshotDueBytes = snapshotDueBytes;
    this.#config = config;
    this.servers = ['a', 'b', 'c'].map((name) => this.#start(name));
  }

  get leader(): VirtualServer | undefined {
    return this.servers.find(({ member }) => member.leader?.isLeading === true);
  }

  /** Lets time pass until one leads that is none of `but`. */
  async led(but: readonly VirtualServer[] = []): Promise<VirtualServer> {
    for (let passed = 0; passed < 20_000; passed += 10) {
      const leader = this.servers.find(
        (server) => !but.includes(server) && server.member.leader?.isLeading === true,
      );
      if (leader !== undefined) return leader;
      await this.runtime.pass(10);
    }
    throw new Error('nobody leads');
  }

  /** As if its machine were gone: its calls are never answered, its streams break. Its timers run on, and do nothing to others. */
  kill(server: VirtualServer): void {
    server.log.setOutage(true);
    this.cut(server);
  }

  /** What `kill` or `cut` did is over: it goes on with what it knew, as a process that was stopped does. */
  revive(server: VirtualServer): void {
    server.log.setOutage(false);
    server.isCut = false;
  }

  /** Somebody sets the wall clock of one server. */
  stepWall({ name }: VirtualServer, byMs: number): void {
    this.#skews.set(name, (this.#skews.get(name) ?? 0) + byMs);
  }

  cut(server: VirtualServer): void {
    server.isCut = true;
    for (const end of [...server.served]) end();
  }

  /** Its process ends, and another one takes its place. */
  async restart(name: string): Promise<VirtualServer> {
    const at = this.servers.findIndex((server) => server.name === name);
    const old = this.servers[at] as VirtualServer;
    await this.runtime.until(old.member.stop(), 10_000);
    const server = this.#start(name);
    this.servers[at] = server;
    return server;
  }

  #start(name: string): VirtualServer {
    const { runtime, store } = this;
    const { timers, random } = runtime;
    const pace = { latencyMs: CALL_MS };
    const log = new MemoryLog(store, { timers, random, latencyMs: () => pace.latencyMs });
    const halted: unknown[] = [];
    const served = new Set<() => void>();
    const clock = {
      ...runtime.clock,
      wallMs: () => runtime.clock.wallMs() + (this.#skews.get(name) ?? 0),
    };
    const member = Member.start({
      runtime: { ...runtime, clock, timers, random, logger: runtime.logger },
      log,
      serverId: name,
      config: this.#config,
      replicas: 3,
      suspicion: { silenceMs: this.#silenceMs, everyMs: 30_000 },
      dial: (to, handler) => this.#dial(name, to, handler),
      onDeposed: () => {
        for (const end of [...served]) end();
      },
      onReplaced: () => void server.replaced++,
      onHalted: (error) => void halted.push(error),
      ...(this.#snapshotDueBytes === undefined ? {} : { snapshotDueBytes: this.#snapshotDueBytes }),
    });
    const server: VirtualServer = {
      name,
      member,
      log,
      halted,
      served,
      isCut: false,
      pace,
      replaced: 0,
    };
    return server;
  }

  #dial(fromName: string, toName: string, handler: LeaderStreamHandler): LeaderStream | null {
    const from = this.servers.find(({ name }) => name === fromName);
    const to = this.servers.find(({ name }) => name === toName);
    if (from === undefined || to === undefined) return null;
    const { timers } = this.runtime;
    const { leader } = to.member;
    let isOpen = true;
    const ends = [to, from];
    const end = (isAnswered: boolean): void => {
      if (!isOpen) return;
      isOpen = false;
      for (const { served } of ends) served.delete(cut);
      leader?.disconnect(link);
      timers.soon(() => handler.onClose(isAnswered));
    };
    const cut = (): void => end(false);
    const link: FrontEndLink = {
      send: (frame) => timers.soon(() => void (isOpen && handler.onFrame(frame))),
    };
    const nothing = { send: () => undefined, close: () => undefined };
    if (from.isCut || to.isCut || leader === null) {
      const isAnswered = !from.isCut && !to.isCut;
      timers.soon(() => handler.onClose(isAnswered));
      return nothing;
    }
    for (const { served } of ends) served.add(cut);
    leader.connect(link);
    const ping = (): void => {
      if (!isOpen) return;
      link.send({ position: leader.position, groups: [] });
      timers.after(PING_MS, ping);
    };
    ping();
    return {
      send: (frame) => timers.soon(() => void (isOpen && leader.receive(link, frame))),
      close: () => end(true),
    };
  }
}
