/**
 * One lock server of a group of several: the shipped Member with its front end, its handle on the group's log, and its streams to whoever
 * leads. It can be killed, stopped and started again at any moment.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import { silentAuditMetrics } from '../../../src/platform/metrics.fixture.ts';
import { AuditExporter } from '../../../src/server/audit/exporter.ts';
import type { Leader } from '../../../src/server/leader/leader.ts';
import type { Member } from '../../../src/server/member/member.ts';
import { SUSPICION_DEFAULTS } from '../../../src/server/member/suspicion.ts';
import type { Poison } from '../faults/poison.ts';
import type { FaultsSeen } from '../judge/faults-seen.ts';
import type { Findings } from '../judge/findings.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Plan } from '../plan.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import type { RelayLink, RelayPeer } from '../world/relay-link.ts';
import { US_PER_MS } from '../world/world.ts';
import { VirtualSink } from './audit-sink.ts';
import { LeasedLog, type LeasedStore, STEADY_MS } from './leased-store.ts';
import { memberOf, type Program } from './programs.ts';

/** Where the storage answers more slowly, a standby may see entries come with gaps. */
const LATENCY_MS_MAX = 6;

export interface ReplicaGroupOptions {
  readonly alias: string;
  readonly plan: Plan;
  /** To begin with. */
  readonly config: NamespaceConfig | null;
  readonly store: LeasedStore;
  readonly judge: GroupJudge;
  readonly findings: Findings;
  readonly faultsSeen: FaultsSeen;
  readonly poison: Poison;
  readonly processes: readonly VirtualProcess[];
  readonly onLifeEnded: (life: Life) => void;
}

export interface ReplicaServerOptions {
  readonly process: VirtualProcess;
  readonly group: ReplicaGroupOptions;
  /** To begin with. */
  readonly program: Program;
  /** Configuration to bring into force when it leads. */
  readonly config: () => ReplicaGroupOptions['config'];
  /** Its ways to the others, by their names. */
  readonly relays: ReadonlyMap<string, RelayLink>;
  readonly onDeposed: (life: Life) => void;
  /** Its log has begun anew: one that opens it again should take its place. */
  readonly onReplaced: (server: ReplicaServer) => void;
  /** It cannot go on. */
  readonly onHalted: (server: ReplicaServer, error: unknown) => void;
}

export class ReplicaServer {
  readonly process: VirtualProcess;
  readonly part: string;
  /** Hindered while its calls to the storage are not answered. */
  readonly storePart: string;
  readonly #options: ReplicaServerOptions;
  #log: LeasedLog | null = null;
  #member: Member | null = null;
  #slowMs = 0;
  #outages = 0;
  #program: Program;
  #nextProgram: Program;
  /** Since when it runs this program, µs. */
  programSinceUs = Number.NEGATIVE_INFINITY;

  constructor(options: ReplicaServerOptions) {
    this.#options = options;
    this.process = options.process;
    this.part = options.process.name;
    this.storePart = `store of ${options.process.name}`;
    this.#program = options.program;
    this.#nextProgram = options.program;
  }

  /** That it runs, or ran last. */
  get program(): Program {
    return this.#program;
  }

  /** What it starts with from its next start on. */
  runNext(program: Program): void {
    this.#nextProgram = program;
  }

  /** Null while it does not run. */
  get member(): Member | null {
    return this.#member;
  }

  get isLeading(): boolean {
    return this.#member?.leader?.isLeading === true;
  }

  /** Its log answers it. */
  get isOnStore(): boolean {
    return this.#outages === 0;
  }

  peer(): RelayPeer | null {
    const { life } = this.process;
    const member = this.#member;
    return life === null || member === null ? null : { life, leader: () => member.leader };
  }

  start(): void {
    const { group, relays, onDeposed, onReplaced, onHalted, config } = this.#options;
    const { store, judge, plan } = group;
    const life = this.process.start();
    const { timers, random } = life.runtime;
    const { from, to } = plan.logLatencyMs;
    const faults = {
      timers,
      random,
      latencyMs: (drawn: typeof random) => this.#slowMs + from + (to - from) * drawn.fraction() ** 3,
      unknownOutcomes: plan.unknownOutcomes,
    };
    const watch = { life, judge, onStall: () => undefined };
    const log = new LeasedLog(store, faults, watch, () => this.#evictsSteady());
    log.setOutage(this.#outages > 0);
    this.#log = log;
    if (this.#nextProgram !== this.#program) this.programSinceUs = this.process.world.nowUs;
    this.#program = this.#nextProgram;
    this.#member = memberOf(this.#program).start({
      runtime: life.runtime,
      log,
      serverId: this.process.name,
      probe: group.poison.probe(life),
      get config() {
        return config();
      },
      replicas: plan.replicas,
      suspicion: SUSPICION_DEFAULTS,
      dial: (to, handler) => relays.get(to)?.dial(life, handler) ?? null,
      onCommitted: (entry) => judge.reported(entry),
      onDeposed: () => {
        group.poison.leadsNoMore(life);
        onDeposed(life);
      },
      onReplaced: () => {
        if (!life.isOver) onReplaced(this);
      },
      onHalted: (error) => {
        if (!life.isOver) onHalted(this, error);
      },
      ...(plan.snapshotDueBytes === undefined ? {} : { snapshotDueBytes: plan.snapshotDueBytes }),
      ...(plan.isAudited ? { whileLeading: (leader) => this.#audit(leader, life, log) } : {}),
    });
  }

  /** As `auditBeside` does it. */
  #audit(leader: Leader, life: Life, log: LeasedLog): () => void {
    const { alias, judge } = this.#options.group;
    const exporter = new AuditExporter({
      runtime: life.runtime,
      log,
      leadership: leader.leadership,
      group: alias,
      sink: new VirtualSink(life, judge.audit),
      metrics: silentAuditMetrics,
      head: () => leader.position.index,
    });
    return () => exporter.stop();
  }

  /** Rule S7: only who has seen no entry for 400 ms may do that, not who was stopped himself. */
  #evictsSteady(): void {
    const { alias, faultsSeen, findings, plan } = this.#options.group;
    const { world, name } = this.process;
    const parts = [`server ${alias}`, this.storePart];
    const sinceUs = world.nowUs - 2 * STEADY_MS * US_PER_MS;
    if (plan.logLatencyMs.to > LATENCY_MS_MAX || !faultsSeen.isClear(parts, sinceUs)) return;
    findings.add('rule S7', `${name} ends a leadership whose entries come all the while`);
  }

  kill(): void {
    this.#log?.crash();
    this.#log = null;
    this.#member = null;
    this.process.kill();
  }

  /** Its calls to the storage are not answered until as many `false` as `true` have come. */
  setOutage(outage: boolean): void {
    this.#outages += outage ? 1 : -1;
    this.#log?.setOutage(this.#outages > 0);
  }

  setSlow(slowMs: number): void {
    this.#slowMs = slowMs;
  }
}
