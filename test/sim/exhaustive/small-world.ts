/**
 * The smallest world in which something can go wrong: two clients that want one name, a leader, one that takes over from it, and one
 * crash. The leaders, the front end and the core are the shipped ones; whatever happens is one of the steps below, chosen from outside.
 */

import type { Logger } from '../../../src/platform/runtime.ts';
import { FrontEnd } from '../../../src/server/front-end/front-end.ts';
import { Leader } from '../../../src/server/leader/leader.ts';
import type { FrontEndLink } from '../../../src/server/leader/outbox.ts';
import { RecentEvents } from '../../../src/server/leader/recent-events.ts';
import { history, type Recovered, recover } from '../../../src/server/snapshots/recovery.ts';
import { namespaceConfig } from '../../support/core.ts';
import { Poison } from '../faults/poison.ts';
import { Findings } from '../judge/findings.ts';
import { GroupJudge } from '../judge/group-judge.ts';
import { RelayTap } from '../judge/relay-tap.ts';
import { WatchedStore } from '../nodes/watched-log.ts';
import { World } from '../world/world.ts';
import { LINEAGE, SmallClient } from './client.ts';
import { Process } from './process.ts';
import { SteppedLog } from './stepped-log.ts';

const TTL_MS = 5_000;
const TICK_MS = 250;

/** One thing that happens, in words. */
export type Step = string;

/** A server that leads, or tries to. */
interface Server {
  readonly name: string;
  readonly process: Process;
  readonly log: SteppedLog;
  leader: Leader | null;
  isOver: boolean;
  /** What it was given and told, in order: with the log it determines all that it knows. */
  readonly heard: string[];
}

export class SmallWorld {
  readonly #world = new World(1);
  readonly findings = new Findings(this.#world);
  readonly #store = new WatchedStore(LINEAGE);
  readonly #judge: GroupJudge;
  readonly #tap: RelayTap;
  readonly #frontEndProcess = new Process(this.#world);
  readonly #frontEnd: FrontEnd;
  readonly #servers: Server[] = [];
  readonly #clients: readonly SmallClient[];
  #on: Server | null = null;
  #link: FrontEndLink | null = null;
  readonly #left = { crashes: 1, losses: 1, takeOvers: 1, ttls: 1 };

  private constructor() {
    this.#judge = new GroupJudge(this.#world, {
      alias: 'small',
      lineage: LINEAGE,
      findings: this.findings,
      poison: new Poison(this.#world, this.findings, 0),
      fastestRate: 1,
      isFirstStall: () => false,
      isGivenUp: () => true,
      onExpired: () => undefined,
    });
    this.#store.judge = this.#judge;
    this.#tap = new RelayTap(this.#world, { judge: this.#judge, findings: this.findings });
    this.#frontEnd = new FrontEnd(this.#frontEndProcess.runtime, () => null, { patienceMs: 3_600_000 });
    this.#clients = ['a', 'b'].map(
      (name) => new SmallClient(name, { frontEnd: this.#frontEnd, judge: this.#judge, world: this.#world }),
    );
  }

  /** One leads, and both clients have a session. */
  static async start(): Promise<SmallWorld> {
    const world = new SmallWorld();
    await world.#begin('one');
    await world.#flow();
    const [one] = world.#servers as [Server];
    void one.leader?.submit([{ type: 'configure', version: 1, config: namespaceConfig({ ttlMs: TTL_MS }) }]);
    await world.#flow();
    world.#goTo(one);
    for (const client of world.#clients) {
      client.open(TTL_MS);
    }
    await world.#flow();
    return world;
  }

  /** What can happen next. */
  enabled(): Step[] {
    const steps: Step[] = [];
    for (const client of this.#clients) if (client.next !== null) steps.push(`${client.name} asks`);
    for (const { name, log, process, isOver } of this.#servers) {
      if (process.isDead) continue;
      if (log.underWay === 'sent') steps.push(`${name} reaches the store`);
      if (log.underWay === 'reached') steps.push(`${name} is answered`);
      if (log.underWay !== null && this.#left.losses > 0) steps.push(`${name} loses an answer`);
      if (!isOver && this.#left.crashes > 0) steps.push(`${name} crashes`);
    }
    if (this.#left.takeOvers > 0) steps.push('two takes over');
    const newest = this.#servers.at(-1) as Server;
    if (newest !== this.#on && newest.leader !== null && !newest.process.isDead)
      steps.push('the front end follows');
    if (this.#left.ttls > 0) steps.push('the TTL passes');
    return steps;
  }

  async take(step: Step): Promise<void> {
    const [who, verb] = step.split(' ') as [string, string];
    const client = this.#clients.find(({ name }) => name === who);
    const server = this.#servers.find(({ name }) => name === who);
    if (client !== undefined) client.askNext();
    else if (step === 'two takes over') {
      this.#left.takeOvers--;
      await this.#begin('two');
    } else if (step === 'the front end follows') this.#goTo(this.#servers.at(-1) as Server);
    else if (step === 'the TTL passes') await this.#passTtl();
    else if (server !== undefined) this.#move(server, verb);
    await this.#settle();
  }

  /** Two worlds that print the same go on in the same way. */
  fingerprint(): string {
    const { index, hash } = this.#store.head();
    return JSON.stringify([
      index,
      hash,
      this.#store.leader(),
      // What a dead one knew is of no more use to anybody.
      this.#servers.map(({ name, process, heard, log }) => [name, process.isDead || [log.underWay, heard]]),
      this.#clients.map(({ heard, asked }) => [heard, asked]),
      this.#on?.name,
      this.#left,
      this.#world.nowMs,
    ]);
  }

  /** Lets everything come to rest, with somebody who leads, and judges what only the end shows. */
  async finish(): Promise<void> {
    await this.#flow();
    const newest = this.#servers.at(-1) as Server;
    if (newest.process.isDead || newest.isOver) await this.#begin('three');
    await this.#flow();
    this.#goTo(this.#servers.at(-1) as Server);
    await this.#flow();
    for (const client of this.#clients) client.keepAlive();
    await this.#tick();
    for (let round = 0; round < 8; round++) {
      await this.#flow();
      for (const client of this.#clients) if (client.asked !== 'acquire') client.askNext();
    }
    for (const client of this.#clients) client.close();
    await this.#flow();
    const { holds, waits } = this.#judge.state;
    const waiting = this.#clients
      .filter(({ asked }) => asked !== null)
      .map(({ name, asked }) => `${name} (${asked})`);
    if (waiting.length > 0) this.findings.add('liveness', `never answered: ${waiting.join(', ')}`);
    if (holds + waits > 0) this.findings.add('leftovers', `${holds} locks and ${waits} waits are left`);
    this.#judge.finish(true);
  }

  async #begin(name: string): Promise<void> {
    const process = new Process(this.#world);
    const log = new SteppedLog(this.#store);
    const server: Server = { name, process, log, leader: null, isOver: false, heard: [] };
    this.#servers.push(server);
    const campaign = log.campaign.bind(log);
    const append = log.append.bind(log);
    Object.assign(log, {
      campaign: async (id: string) => {
        const leadership = await campaign(id);
        this.#judge.epochLed(leadership.epoch, name);
        return leadership;
      },
      append: (...args: Parameters<typeof append>) => {
        this.#judge.built(process.life, args[1]);
        return append(...args);
      },
    });
    const recent = new RecentEvents();
    void Leader.start({
      runtime: process.runtime,
      log,
      serverId: name,
      reason: 'small',
      replicas: 1,
      tokenFloor: 0,
      beatWhenIdle: false,
      recent,
      recover: () => followed(log, recent, process.runtime.logger),
      onCommitted: (entry) => this.#judge.reported(entry),
      onStopped: (reason) => {
        server.isOver = true;
        if (reason.kind === 'failed') this.findings.add('server-failed', `${name}: ${String(reason.error)}`);
      },
    }).then(
      (leader) => {
        server.leader = leader;
      },
      () => {
        server.isOver = true;
      },
    );
    await this.#settle();
  }

  #goTo(server: Server): void {
    const { leader, process } = server;
    if (leader === null || this.#on === server) return;
    this.#on = server;
    const link: FrontEndLink = {
      send: (frame) => {
        this.#tap.sent(link, frame);
        if (this.#link === link) this.#frontEnd.fromLeader(frame);
      },
    };
    this.#link = link;
    this.#tap.accepted(link, process.life);
    leader.connect(link);
    this.#frontEnd.setLeader({
      get position() {
        return leader.position;
      },
      send: (frame) => {
        server.heard.push(JSON.stringify(frame));
        if (process.isDead) return;
        this.#tap.received(link, frame, process.life);
        leader.receive(link, frame);
      },
    });
  }

  #move(server: Server, verb: string): void {
    const { log, process, heard } = server;
    if (verb === 'crashes') {
      this.#left.crashes--;
      process.isDead = true;
      return;
    }
    heard.push(verb);
    if (verb === 'reaches') log.reach();
    else if (verb === 'is') log.answer();
    else {
      this.#left.losses--;
      log.lose();
    }
  }

  /** Nothing else happens meanwhile, but that timers fire. */
  async #passTtl(): Promise<void> {
    this.#left.ttls--;
    for (let passed = 0; passed < TTL_MS + TICK_MS; passed += TICK_MS) await this.#tick();
  }

  async #tick(): Promise<void> {
    this.#world.nowUs += TICK_MS * 1_000;
    for (const { process } of this.#servers) process.tick(this.#world.nowMs);
    await this.#settle();
  }

  /** Lets every append through until nothing moves. */
  async #flow(): Promise<void> {
    for (;;) {
      await this.#settle();
      const moving = this.#servers.filter(({ process, log }) => !process.isDead && log.underWay !== null);
      if (moving.length === 0) return;
      for (const server of moving) this.#move(server, server.log.underWay === 'sent' ? 'reaches' : 'is');
    }
  }

  /** Promises settle and turns are taken until there are none. */
  async #settle(): Promise<void> {
    for (;;) {
      await promisesSettle();
      const turned = [this.#frontEndProcess, ...this.#servers.map(({ process }) => process)].map((one) =>
        one.turn(),
      );
      if (!turned.includes(true)) return;
    }
  }
}

/** A tick planned by a microtask comes after all microtasks: nothing in here waits for the event loop. */
function promisesSettle(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}

/** As a standby has it that leads: it has followed the log, and knows what the one before may not have told any more. */
async function followed(log: SteppedLog, recent: RecentEvents, logger: Logger): Promise<Recovered> {
  for await (const { index, events } of history(log, 1)) recent.add(index, events);
  return recover(log, logger);
}
