/**
 * Everything a run consists of, put together from its plan: machines, groups, sidecars, applications, and those who watch.
 */

import type { Mark } from '../../src/api/wire.ts';
import { Poison } from './faults/poison.ts';
import { CulpritWatch } from './judge/culprit-watch.ts';
import { ExpiryWatch } from './judge/expiry-watch.ts';
import { FaultsSeen } from './judge/faults-seen.ts';
import { Findings } from './judge/findings.ts';
import { FrameTap } from './judge/frame-tap.ts';
import { type GrantKnown, GroupJudge } from './judge/group-judge.ts';
import { LateEnds } from './judge/late-ends.ts';
import { OrphanWatch } from './judge/orphan-watch.ts';
import { SilenceWatch } from './judge/silence-watch.ts';
import { type StoppedSession, Stops } from './judge/stops.ts';
import { Application } from './nodes/application.ts';
import { FencedResource } from './nodes/fenced-resource.ts';
import type { Group } from './nodes/group.ts';
import { LeasedStore } from './nodes/leased-store.ts';
import { LockGroup } from './nodes/lock-group.ts';
import { ReplicaGroup } from './nodes/replica-group.ts';
import { RudeClient, type RudeClientOptions } from './nodes/rude-client.ts';
import { SidecarNode, WatchedStateStore } from './nodes/sidecar-node.ts';
import { WatchedStore } from './nodes/watched-log.ts';
import type { Plan } from './plan.ts';
import { Machine } from './world/machine.ts';
import { Link } from './world/network.ts';
import { type Life, VirtualProcess } from './world/process.ts';
import { US_PER_MS, type World } from './world/world.ts';

/** Processes that may serve a group: one, and one that may take over from it. */
const SERVERS_PER_GROUP = 2;
const LOOK_EVERY_MS = 1_000;
const SLEEPER_EVERY_MS = 500;
/** That sessions ask for, in applications and configurations. */
const LONGEST_TTL_MS = 20_000;
/** A leader spares sessions for so long after a stall: TTL/3 of the longest (rule S6). */
const SPARED_MS = 20_000;
/** What a leader says of commands and consequences that throw, where they are meant to. */
const POISONED = /^(command refused|lock quarantined): /;
const NEW_YEAR_2026_MS = 1_767_225_600_000;

/** Its `kind` tells them apart. */
export type AnyGroup = LockGroup | ReplicaGroup;

/** One machine with a sidecar and its applications; in one process also with the servers. */
export interface Host {
  readonly machine: Machine;
  readonly sidecar: SidecarNode;
  /** Null while it is dead. */
  readonly applications: (Application | null)[];
}

export class Cluster {
  readonly world: World;
  readonly plan: Plan;
  readonly findings: Findings;
  readonly faultsSeen: FaultsSeen;
  readonly stops: Stops;
  readonly resource: FencedResource;
  readonly groups: readonly AnyGroup[];
  readonly hosts: readonly Host[];
  /** Sidecars that run on the copy of a state file (rule S3). */
  readonly copies = new Set<SidecarNode>();
  readonly machines: Machine[] = [];
  readonly #lateEnds: LateEnds;
  readonly #culprits: CulpritWatch;
  readonly #silence: SilenceWatch;
  readonly #orphans: OrphanWatch;
  readonly #expiries: ExpiryWatch;
  readonly #rude: RudeClient | null;
  readonly #processes: VirtualProcess[] = [];
  /** Error lines that a fault in force explains. */
  readonly #expectedErrors =
    /^(snapshot failed|the audit sink does not take|the configuration is not in force|this replica cannot follow the log)/;

  constructor(world: World, plan: Plan) {
    this.world = world;
    this.plan = plan;
    this.findings = new Findings(world);
    this.faultsSeen = new FaultsSeen(world, (part, from, to) => this.#hindered(part, from, to));
    this.stops = new Stops(world);
    this.resource = new FencedResource(this.findings);
    this.#lateEnds = new LateEnds(world, this.findings, this.faultsSeen, 1 - plan.rateSpread);
    this.#culprits = new CulpritWatch(world, this.findings, this.faultsSeen);
    this.#silence = new SilenceWatch(world, this.findings, this.faultsSeen);
    this.#orphans = new OrphanWatch(world, this.findings, this.faultsSeen);
    this.#expiries = new ExpiryWatch(world, this.findings, this.faultsSeen);
    const shared = plan.isOneProcess ? this.#process('dev', this.#machine('dev')) : null;
    this.groups = plan.aliases.map((alias) => this.#group(alias, shared));
    this.#rude = plan.rudeEveryMs === null ? null : this.#rudeClient('rude', { everyMs: plan.rudeEveryMs });
    this.hosts = Array.from({ length: plan.sidecars }, (_, i) => this.#host(`sidecar-${i}`, shared));
  }

  get sidecars(): readonly SidecarNode[] {
    return this.hosts.map(({ sidecar }) => sidecar);
  }

  /** With those that run on copies of their state. */
  get #nodes(): readonly SidecarNode[] {
    return [...this.sidecars, ...this.copies];
  }

  get applications(): readonly Application[] {
    return this.hosts.flatMap(({ applications }) => applications.filter((app) => app !== null));
  }

  /** Resolves when everything serves. */
  async start(): Promise<void> {
    this.world.mustSettle();
    if (this.plan.isOneProcess) {
      await this.startOneProcess();
    } else {
      await Promise.all(this.groups.map((group) => group.start()));
      for (const { sidecar } of this.hosts) sidecar.start();
    }
    for (const host of this.hosts) {
      for (const place of host.applications.keys()) this.startApplication(host, place);
    }
    this.#rude?.start();
    this.#lookAgain();
  }

  /** The faults are over, and those who mean harm leave. */
  calm(): void {
    for (const group of this.groups) {
      group.poison.stop();
      group.judge.audit.isCalm = true;
      // Who leads alone learns that it was deposed from its next entry, which may lie far in the quiet where nobody asks for anything.
      if (group.kind === 'single') group.submit({ type: 'unquarantine', name: 'job-0', by: 'simulator' });
    }
    this.#rude?.stop();
  }

  /** As `leasehold dev` starts: the groups' servers, then the sidecar over them. */
  async startOneProcess(): Promise<void> {
    const { sidecar } = this.hosts[0] as Host;
    const life = sidecar.process.start();
    for (const group of this.groups) await group.start(life);
    sidecar.start(life);
  }

  /** `kill -9` of `leasehold dev`. */
  killOneProcess(): void {
    for (const group of this.groups) if (group.kind === 'single') group.kill();
    (this.hosts[0] as Host).sidecar.kill();
  }

  /** An operator has begun a new lineage of this group's log (rule S10). */
  beginLineage(group: ReplicaGroup): void {
    const { alias, judge, store } = group;
    judge.beginLineage(store.lineage);
    group.poison.culprits.clear();
    store.judge = judge;
    for (const { sidecar } of this.hosts) {
      sidecar.store.forgetOwners(alias);
      sidecar.forgetAcknowledged(alias);
    }
  }

  startApplication(host: Host, place: number): void {
    const name = `app ${host.sidecar.name}-${place}`;
    host.applications[place] = new Application({
      process: this.#process(name, host.machine),
      sidecar: host.sidecar,
      groups: new Map(this.groups.map((group) => [group.alias, group])),
      resource: this.resource,
      findings: this.findings,
      plan: this.plan,
      random: this.world.random(`${name} at ${this.world.nowUs}`),
    });
  }

  /** Everything that this sidecar, or an application of it, still takes for a session. */
  sessionsOf({ sidecar, applications }: Host): readonly StoppedSession[] {
    const ofApplications = applications.flatMap((app) => [...(app?.sessionIds() ?? [])]);
    return this.stoppedSessions(sidecar, new Set([...sidecar.store.openEnvelopes, ...ofApplications]));
  }

  /** Group sessions of these sessions of a sidecar. */
  stoppedSessions(node: SidecarNode, ids: Iterable<string>): readonly StoppedSession[] {
    const stopped: StoppedSession[] = [];
    for (const id of ids) {
      for (const { alias, judge, store } of this.groups) {
        const session = node.store.groupSession(alias, id);
        if (session !== undefined) stopped.push({ judge, lineage: store.lineage, session });
      }
    }
    return stopped;
  }

  #group(alias: string, shared: VirtualProcess | null): AnyGroup {
    const { world, plan, findings, faultsSeen } = this;
    const isSingle = shared !== null || plan.replicas === 1;
    const lineage = `lineage-${alias}`;
    const store = isSingle ? new WatchedStore(lineage) : new LeasedStore(world, lineage, plan.leaseMs);
    const poison = new Poison(world, findings, plan.poisonous);
    const judge = this.#judge(alias, lineage, poison);
    store.judge = judge;
    const name = (i: number): string => `server-${alias}-${i}`;
    const count = isSingle ? SERVERS_PER_GROUP : plan.replicas;
    const processes =
      shared === null
        ? Array.from({ length: count }, (_, i) => this.#process(name(i), this.#machine(name(i))))
        : [shared];
    const common = {
      alias,
      plan,
      config: alias === plan.aliases[0] ? plan.config : { ...plan.config, ttlMs: plan.otherTtlMs },
      judge,
      findings,
      faultsSeen,
      poison,
      processes,
      onLifeEnded: (life: Life) => this.#lifeEnded(life),
    };
    if (store instanceof LeasedStore) return new ReplicaGroup(world, { ...common, store });
    const onGaveUp = shared === null ? {} : { onGaveUp: () => this.#oneProcessGaveUp() };
    return new LockGroup(world, { ...common, store, ...onGaveUp });
  }

  #judge(alias: string, lineage: string, poison: Poison): GroupJudge {
    const { world, plan, findings, faultsSeen } = this;
    return new GroupJudge(world, {
      alias,
      lineage,
      findings,
      poison,
      fastestRate: 1 + plan.rateSpread,
      isFirstStall: () => faultsSeen.clearBeforeUs(`server ${alias}`) > LONGEST_TTL_MS * 1.02 * US_PER_MS,
      isGivenUp: (over) => this.#isGivenUp(alias, over),
      onExpired: (session) => {
        const group = this.groups.find((one) => one.alias === alias);
        if (group !== undefined) this.#expiries.expired(group, session, this.sidecars);
      },
    });
  }

  /** A client that slept while a new lineage began: `mark` is of the one before. */
  sleeper(mark: Mark): RudeClient {
    return this.#rudeClient('sleeper', { everyMs: SLEEPER_EVERY_MS, mark });
  }

  #rudeClient(name: string, how: Pick<RudeClientOptions, 'everyMs' | 'mark'>): RudeClient {
    const { world, findings, groups, plan } = this;
    const process = this.#process(name, this.#machine(name));
    const random = world.random(name);
    return new RudeClient({ process, groups, findings, random, delayMs: plan.networkDelayMs, ...how });
  }

  #host(name: string, shared: VirtualProcess | null): Host {
    const { plan } = this;
    const process = shared ?? this.#process(name, this.#machine(name));
    const sidecar = this.#node(name, process, new WatchedStateStore());
    const { machine } = process;
    return { machine, sidecar, applications: Array(plan.applicationsPerSidecar).fill(null) };
  }

  /** The image of a pod is restored beside it, without its applications: a second sidecar has all that the first one has in its state file. */
  copyOf({ name, store }: SidecarNode): SidecarNode {
    const copyName = `copy of ${name}`;
    for (const { alias, judge } of this.groups)
      for (const record of store.load())
        if (record.type === 'session' && record.alias === alias) judge.attaches.copied(record.session);
    const known = this.#processes.find((process) => process.name === copyName);
    const process = known ?? this.#process(copyName, this.#machine(copyName));
    const copy = this.#node(copyName, process, store.copy(), { isCopy: true });
    this.copies.add(copy);
    return copy;
  }

  #node(
    name: string,
    process: VirtualProcess,
    store: WatchedStateStore,
    { isCopy = false } = {},
  ): SidecarNode {
    const { world, plan, findings, groups } = this;
    const { machine } = process;
    const links = new Map<string, readonly Link[]>();
    const taps = new Map<string, FrameTap>();
    const sidecar: SidecarNode = new SidecarNode({
      name,
      process,
      groups,
      links,
      taps,
      store,
      isOneProcess: plan.isOneProcess,
      http: { findings, delayMs: plan.localDelayMs },
      onLifeEnded: (life) => this.#lifeEnded(life),
    });
    for (const group of groups) {
      const tap = new FrameTap(world, {
        name: sidecar.linkPart(group.alias),
        judge: group.judge,
        machine,
        lineage: () => group.store.lineage,
        findings,
        renewalProblem: (session) => this.#silence.renewalProblem(sidecar, group.alias, session),
        leads: (life) => group.leads(life),
        isCopy,
      });
      links.set(group.alias, this.#links(sidecar.linkPart(group.alias), group, tap));
      taps.set(group.alias, tap);
    }
    return sidecar;
  }

  /** From a sidecar to each server of a group. */
  #links(name: string, group: Group, watch: FrameTap): Link[] {
    const numbers = { last: 0 };
    return Array.from(
      { length: group.endpoints },
      (_, place) =>
        new Link(this.world, {
          name: group.endpoints === 1 ? name : `${name} ${place}`,
          watch,
          listener: () => group.listener(place),
          delayMs: this.plan.networkDelayMs,
          numbers,
        }),
    );
  }

  /** Whether nobody answers "held" any more for a grant that is over, when another one is given (promise 5). */
  #isGivenUp(alias: string, before: GrantKnown): boolean {
    const group = this.groups.find((one) => one.alias === alias) as Group;
    let isGivenUp = true;
    for (const node of this.#nodes) {
      const isOfThisLife = before.lineage === group.store.lineage;
      if (isOfThisLife && node.store.envelopeOf(alias, before.session) === undefined) continue;
      const isSilent = node.sidecar === null || node.process.isPaused;
      if (isSilent) isGivenUp = false;
      if (isSilent || node.sidecar?.held(`${alias}/${before.name}`, before.token).held !== true) continue;
      isGivenUp = false;
      const { lineage, session, name, token } = before;
      const at = this.world.nowMs;
      if (!isOfThisLife) {
        this.findings.add(
          'rule S10',
          `${alias}/${name}: token ${token} of lineage ${lineage} is still believed in`,
        );
        return true;
      }
      group.judge.client({
        type: 'heldInterval',
        lineage,
        session,
        name,
        token,
        from: at,
        to: at,
      });
    }
    return isGivenUp;
  }

  #oneProcessGaveUp(): void {
    const host = this.hosts[0] as Host;
    const goOn = this.stops.begin(this.sessionsOf(host));
    this.killOneProcess();
    this.world.afterMs(500, () => {
      goOn();
      if (host.sidecar.process.life === null) void this.startOneProcess();
    });
  }

  #lifeEnded(life: Life): void {
    if (this.hosts === undefined) return;
    for (const { links } of this.#nodes)
      for (const ofGroup of links.values()) for (const link of ofGroup) link.lifeEnded(life);
  }

  #hindered(part: string, fromMs: number, toMs: number): void {
    for (const { judge } of this.groups ?? []) judge.paused(fromMs, toMs, SPARED_MS, part);
  }

  #lookAgain(): void {
    this.world.afterMs(LOOK_EVERY_MS, () => {
      for (const group of this.groups) {
        group.look();
        this.#lateEnds.look(group);
        this.#culprits.look(group);
        this.#orphans.look(group, this.sidecars);
        group.judge.attaches.look(group.judge.state, this.#nodes);
      }
      for (const { sidecar } of this.hosts) {
        sidecar.http.checkBounds();
        this.#silence.look(sidecar, this.groups);
      }
      this.#lookAgain();
    });
  }

  #machine(name: string): Machine {
    const random = this.world.random(`machine ${name}`);
    const machine = new Machine(this.world, {
      rate: 1 + this.plan.rateSpread * (random.int(2_001) / 1_000 - 1),
      monotonicAtStartMs: random.int(1_000_000_000),
      wallAtStartMs: NEW_YEAR_2026_MS + random.between(-2_000, 2_000),
    });
    this.machines.push(machine);
    return machine;
  }

  /** Made once for each name; an application that starts again runs in the process of that name. */
  #process(name: string, machine: Machine): VirtualProcess {
    const known = this.#processes.find((process) => process.name === name);
    if (known !== undefined) return known;
    const { plan } = this;
    const process = new VirtualProcess(this.world, {
      name,
      machine,
      hasJitter: this.plan.hasJitter,
      onError: ({ name: who }, message, fields) => {
        const isPoisoned = plan.poisonous > 0 || plan.faults.has('poisonName');
        if (!this.#expectedErrors.test(message) && !(isPoisoned && POISONED.test(message))) {
          this.findings.add('error-log', `${who} logged: ${message} ${JSON.stringify(fields, inWords)}`);
        }
      },
    });
    this.#processes.push(process);
    return process;
  }
}

function inWords(_key: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value;
}
