/**
 * A lock group of several replicas on one log: each a process on a machine of its own, with streams between them. Whether the group is
 * hindered is measured, not assumed: it is while nothing is committed although something is due.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { Command } from '../../../src/api/entry.ts';
import { configure } from '../../../src/server/leader/configure.ts';
import type { Random } from '../../support/random.ts';
import type { Poison } from '../faults/poison.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import { RelayTap } from '../judge/relay-tap.ts';
import type { Listener } from '../world/network.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { RelayLink } from '../world/relay-link.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { Group } from './group.ts';
import type { LeasedStore } from './leased-store.ts';
import { LEVELS } from './programs.ts';
import { type ReplicaGroupOptions, ReplicaServer } from './replica-server.ts';

/** How soon a process that gave up is started again, ms. */
const RESTART_MS_MIN = 50;
const RESTART_MS_MAX = 2_000;
/** Entries are due every 250 ms while sessions are open, every 2 s otherwise (rule S1). */
const GAP_MS = 700;
const IDLE_GAP_MS = 2_600;
/** A leader may take so long to notice that a replica has gone: its stream may stand still, and an append with it. */
const UNNOTICED_MS_MAX = 60_000;

/** The way between two replicas, in both roles. */
export interface Pair {
  /** Name among the parts that faults hinder. */
  readonly part: string;
  readonly servers: readonly [ReplicaServer, ReplicaServer];
  readonly links: readonly [RelayLink, RelayLink];
}

export class ReplicaGroup implements Group {
  readonly kind = 'replicas';
  readonly alias: string;
  readonly judge: GroupJudge;
  readonly store: LeasedStore;
  readonly poison: Poison;
  readonly part: string;
  readonly servers: readonly ReplicaServer[];
  readonly pairs: readonly Pair[];
  config: NamespaceConfig | null;
  readonly #world: World;
  readonly #options: ReplicaGroupOptions;
  readonly #random: Random;
  readonly #relays: readonly RelayLink[];
  #lastCommitUs = 0;
  #isHindered = false;

  constructor(world: World, options: ReplicaGroupOptions) {
    this.#world = world;
    this.#options = options;
    this.#random = world.random(`group ${options.alias}`);
    this.alias = options.alias;
    this.judge = options.judge;
    this.store = options.store;
    this.poison = options.poison;
    this.part = `server ${options.alias}`;
    this.config = options.config;
    const relays = new Map(options.processes.map(({ name }) => [name, new Map<string, RelayLink>()]));
    this.servers = options.processes.map(
      (process, place) =>
        new ReplicaServer({
          process,
          program: place < options.plan.olderReplicas ? 'older' : 'shipped',
          group: options,
          config: () => this.config,
          relays: relays.get(process.name) as ReadonlyMap<string, RelayLink>,
          onDeposed: (life) => {
            for (const link of this.#relays) link.deposed(life);
          },
          onReplaced: (server) => this.#restart(server),
          onHalted: (server, error) => this.#halted(server, error),
        }),
    );
    this.pairs = this.#makePairs(relays);
    this.#relays = this.pairs.flatMap(({ links }) => links);
    this.judge.onDurable = (by) => this.#committed(by);
    this.judge.onRaised = (level, builtMs) => this.#raised(level, builtMs);
    this.judge.changes.hasReplicas(this.servers.length);
  }

  get endpoints(): number {
    return this.servers.length;
  }

  get parts(): readonly string[] {
    return [this.part, ...this.servers.map(({ part }) => part), ...this.pairs.map(({ part }) => part)];
  }

  get endpointParts(): readonly (readonly string[])[] {
    return this.servers.map((server) => [
      server.part,
      ...this.pairs.filter(({ servers }) => servers.includes(server)).map(({ part }) => part),
    ]);
  }

  get leaderPlace(): number | null {
    const place = this.servers.findIndex(({ isLeading }) => isLeading);
    return place < 0 ? null : place;
  }

  get leader(): ReplicaServer | null {
    return this.servers.find(({ isLeading }) => isLeading) ?? null;
  }

  listener(place: number): Listener | null {
    const { member, process } = this.servers[place] as ReplicaServer;
    return member === null || process.life === null
      ? null
      : { life: process.life, frontEnd: member.frontEnd };
  }

  leads(life: Life): boolean {
    return this.servers.some(({ process, member }) => process.life === life && member?.leader != null);
  }

  async start(): Promise<void> {
    for (const server of this.servers) this.startAgain(server);
    while (this.leader === null) await this.#world.sleep(20);
  }

  kill(server: ReplicaServer): void {
    const { life } = server.process;
    server.kill();
    if (life === null) return;
    for (const link of this.#relays) link.lifeEnded(life);
    this.#options.onLifeEnded(life);
  }

  startAgain(server: ReplicaServer): void {
    this.#world.mustSettle();
    if (server.process.life !== null) return;
    this.judge.changes.started();
    server.start();
  }

  configure(config: NamespaceConfig | null): void {
    this.config = config;
    const leader = this.leader?.member?.leader ?? null;
    if (leader !== null) void configure(leader, config).catch(() => undefined);
  }

  submit(command: Command): void {
    void this.leader?.member?.leader?.submit([command]).catch(() => undefined);
  }

  look(): void {
    const gapUs = this.#world.nowUs - this.#lastCommitUs;
    if (this.#isHindered || gapUs < this.#gapMsMax * US_PER_MS) return;
    this.#isHindered = true;
    this.#options.faultsSeen.begin(this.part, this.#lastCommitUs);
  }

  get #gapMsMax(): number {
    return this.judge.state.sessions.size > 0 ? GAP_MS : IDLE_GAP_MS;
  }

  /** Highest behaviour level that all of its servers can apply (rule C15). */
  get levelOfAll(): number {
    return Math.min(...this.servers.map(({ program }) => LEVELS[program]));
  }

  /** Rule C15: not before all support it. Whoever comes back as an older program while it is on its way comes too late. */
  #raised(level: number, builtMs: number): void {
    const knownUs = (builtMs - UNNOTICED_MS_MAX) * US_PER_MS;
    for (const { process, program, programSinceUs } of this.servers) {
      if (LEVELS[program] >= level || programSinceUs > knownUs) continue;
      const message = `${this.alias}: behaviour level ${level} came into force, and ${process.name} cannot apply it`;
      this.#options.findings.add('rule C15', message);
    }
  }

  #committed(by: Life | undefined): void {
    const leader = this.servers.find(({ process }) => process.life === by);
    if (leader !== undefined && LEVELS[leader.program] < this.judge.state.behaviour) {
      const message = `${leader.process.name} leads a group at a behaviour level that it cannot apply`;
      this.#options.findings.add('rule C15', message);
    }
    this.look();
    this.#lastCommitUs = this.#world.nowUs;
    if (!this.#isHindered) return;
    this.#isHindered = false;
    this.#options.faultsSeen.end(this.part);
  }

  #makePairs(relays: ReadonlyMap<string, Map<string, RelayLink>>): Pair[] {
    const { plan, judge, findings, processes } = this.#options;
    const tap = new RelayTap(this.#world, { judge, findings });
    judge.isReattaching = (leader, beforeStep) => tap.isReattaching(leader, beforeStep);
    const link = (from: number, to: number): RelayLink => {
      const [caller, called] = [processes[from], processes[to]] as [VirtualProcess, VirtualProcess];
      const made = new RelayLink(this.#world, {
        name: `relay ${caller.name} ${called.name}`,
        peer: () => (this.servers[to] as ReplicaServer).peer(),
        watch: tap,
        delayMs: plan.networkDelayMs,
      });
      relays.get(caller.name)?.set(called.name, made);
      return made;
    };
    return processes.flatMap((_, one) =>
      Array.from({ length: one }, (_, other): Pair => {
        const servers = [this.servers[one], this.servers[other]] as [ReplicaServer, ReplicaServer];
        const part = `relay of ${servers.map((server) => server.part).join(' and ')}`;
        return { part, servers, links: [link(one, other), link(other, one)] };
      }),
    );
  }

  #halted(server: ReplicaServer, error: unknown): void {
    // It is told so, and whoever has rolled it back takes the newer program again.
    const isTooOld = error instanceof Error && error.name === 'BehaviourTooHighError';
    if (isTooOld && server.program === 'older') server.runNext('shipped');
    else this.#failed(server, error);
    this.#restart(server);
  }

  #restart(server: ReplicaServer): void {
    this.#world.afterMs(this.#random.between(RESTART_MS_MIN, RESTART_MS_MAX), () => {
      this.kill(server);
      this.startAgain(server);
    });
  }

  #failed(server: ReplicaServer, error: unknown): void {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.#options.findings.add('server-failed', `${server.process.name} cannot go on: ${text}`);
  }
}
