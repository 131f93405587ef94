/**
 * One lock group of one replica: its store, which outlives everything, and the process that serves it. A second process may
 * take the log over while the first is stopped and does not know it yet (rules L1, S5).
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { Command } from '../../../src/api/entry.ts';
import type { Random } from '../../support/random.ts';
import type { Poison } from '../faults/poison.ts';
import type { FaultsSeen } from '../judge/faults-seen.ts';
import type { Findings } from '../judge/findings.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Plan } from '../plan.ts';
import type { Listener } from '../world/network.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import type { World } from '../world/world.ts';
import type { Group } from './group.ts';
import { LockServer } from './lock-server.ts';
import type { WatchedStore } from './watched-log.ts';

/** How soon a process that gave up is started again, ms. */
const RESTART_MS_MIN = 50;
const RESTART_MS_MAX = 2_000;

export interface LockGroupOptions {
  readonly alias: string;
  readonly plan: Plan;
  /** To begin with. */
  readonly config: NamespaceConfig;
  readonly store: WatchedStore;
  readonly judge: GroupJudge;
  readonly findings: Findings;
  readonly faultsSeen: FaultsSeen;
  readonly poison: Poison;
  /** The processes that may serve it; the first one does, the others only after a usurpation. */
  readonly processes: readonly VirtualProcess[];
  readonly onLifeEnded: (life: Life) => void;
  /** What to do when a server gives up; by default it is started again. */
  readonly onGaveUp?: () => void;
}

export class LockGroup implements Group {
  readonly kind = 'single';
  readonly alias: string;
  readonly judge: GroupJudge;
  readonly store: WatchedStore;
  readonly poison: Poison;
  /** Name of the group among the parts that faults hinder. */
  readonly part: string;
  config: NamespaceConfig | null;
  readonly #world: World;
  readonly #options: LockGroupOptions;
  readonly #servers: readonly LockServer[];
  readonly #random: Random;
  #active: LockServer;
  #isDown = false;
  /** Nothing has been committed since the state machine threw. */
  #isRebuilding = false;

  constructor(world: World, options: LockGroupOptions) {
    this.#world = world;
    this.#options = options;
    this.#random = world.random(`group ${options.alias}`);
    this.alias = options.alias;
    this.judge = options.judge;
    this.store = options.store;
    this.poison = options.poison;
    this.poison.onThrow = () => this.#setRebuilding(true);
    this.judge.onDurable = () => this.#setRebuilding(false);
    this.part = `server ${options.alias}`;
    this.config = options.config;
    this.#servers = options.processes.map(
      (process) =>
        new LockServer({
          process,
          store: options.store,
          judge: options.judge,
          plan: options.plan,
          poison: options.poison,
          findings: options.findings,
          config: () => this.config,
          onStall: (fromUs) => options.faultsSeen.was(this.part, fromUs),
          onGaveUp: (server) => this.#gaveUp(server),
        }),
    );
    this.#active = this.#servers[0] as LockServer;
  }

  /** The server that is meant to serve now. */
  get active(): LockServer {
    return this.#active;
  }

  get parts(): readonly string[] {
    return [this.part];
  }

  readonly endpoints = 1;
  readonly leaderPlace = 0;

  get endpointParts(): readonly (readonly string[])[] {
    return [[this.part]];
  }

  get servers(): readonly LockServer[] {
    return this.#servers;
  }

  /** Where new streams arrive. */
  listener(): Listener | null {
    const { replica, process } = this.#active;
    return replica === null || process.life === null
      ? null
      : { life: process.life, frontEnd: replica.frontEnd };
  }

  configure(config: NamespaceConfig | null): void {
    this.config = config;
    void this.#active.replica?.configure(config).catch(() => undefined);
  }

  submit(command: Command): void {
    void this.#active.replica?.submit(command).catch(() => undefined);
  }

  leads(): boolean {
    return true;
  }

  look(): void {
    // What hinders it is known: the faults that strike it, and slow appends.
  }

  /** Resolves when the active server serves; `life`: one that it shares with a sidecar. */
  async start(life?: Life): Promise<void> {
    const server = this.#active;
    this.#setDown(true);
    await server.start(life);
    if (server === this.#active) this.#setDown(false);
  }

  kill(server: LockServer = this.#active): void {
    const { life } = server.process;
    if (server === this.#active) this.#setDown(true);
    server.kill();
    if (life !== null) this.#options.onLifeEnded(life);
  }

  startAfter(delayMs: number): void {
    this.#world.afterMs(delayMs, () => {
      this.#world.mustSettle();
      if (this.#active.process.life === null) void this.start();
    });
  }

  /** The next process takes the log over and gets all new streams. False: there is none to do so. */
  usurp(): boolean {
    const next = this.#servers[
      (this.#servers.indexOf(this.#active) + 1) % this.#servers.length
    ] as LockServer;
    if (next === this.#active || next.process.life !== null) return false;
    this.#active = next;
    this.startAfter(0);
    return true;
  }

  /** While it is down the group is hindered: nothing is committed. */
  #setDown(isDown: boolean): void {
    if (this.#isDown === isDown) return;
    this.#isDown = isDown;
    if (isDown) this.#options.faultsSeen.begin(this.part);
    else this.#options.faultsSeen.end(this.part);
  }

  #setRebuilding(isRebuilding: boolean): void {
    if (this.#isRebuilding === isRebuilding) return;
    this.#isRebuilding = isRebuilding;
    if (isRebuilding) this.#options.faultsSeen.begin(this.part);
    else this.#options.faultsSeen.end(this.part);
  }

  #gaveUp(server: LockServer): void {
    // Not inside the call that told us: the process ends in a step of its own.
    this.#world.at(this.#world.nowUs, () => {
      this.#world.mustSettle();
      if (this.#options.onGaveUp !== undefined) return this.#options.onGaveUp();
      this.kill(server);
      if (server === this.#active) this.startAfter(this.#random.between(RESTART_MS_MIN, RESTART_MS_MAX));
    });
  }
}
