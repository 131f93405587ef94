/**
 * One lock server of a group, for as long as its process lives: it follows the log, campaigns all the while, leads when it wins, and follows
 * again when it is deposed. Its front end serves clients throughout, whoever leads.
 */
import { ok as assert } from 'node:assert';
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import type { State } from '../../core/index.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import { DeposedError, HaltedError, ReplacedError, type RollBackProof } from '../../log/port.ts';
import type { ServerGauges, SpaceGauges } from '../../platform/metrics.ts';
import { pause } from '../../platform/pause.ts';
import { FrontEnd } from '../front-end/front-end.ts';
import { LeaderLink } from '../front-end/leader-link.ts';
import { checkSameNamespace } from '../leader/configure.ts';
import { Leader } from '../leader/leader.ts';
import type { StopReason } from '../leader/leader-options.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import { RecentEvents } from '../leader/recent-events.ts';
import { floorOfBirth } from '../leader/take-over.ts';
import type { Recovered } from '../snapshots/recovery.ts';
import { SnapshotDuty } from '../snapshots/snapshot-duty.ts';
import { SpaceKeeper } from '../snapshots/space.ts';
import { DesiredConfig } from './desired-config.ts';
import { gaugesOf } from './gauges.ts';
import { haltMessage } from './halt-message.ts';
import { LeaderWatch } from './leader-watch.ts';
import { LogFate } from './log-fate.ts';
import type { MemberOptions } from './member-options.ts';
import { askLog, type MemberStatus, memberStatus } from './member-status.ts';
import { Standby } from './standby.ts';
import { type Watcher, Watchers } from './watchers.ts';

/** How long a request waits for a leader. */
const PATIENCE_MS = 5_000;
/** Pause before what failed is tried again. */
const RETRY_MS = 250;
const NOTHING = (): void => undefined;
/** After a hand-over the others get so long to win before it campaigns again. */
const HOLD_BACK_MS = 2_000;
const NEW_LINEAGE_COMMAND = 'leasehold group new-lineage';

export class Member {
  readonly frontEnd: FrontEnd;
  readonly #options: MemberOptions;
  readonly #link: LeaderLink;
  readonly #leaderWatch: LeaderWatch;
  readonly #fate: LogFate;
  readonly #desired: DesiredConfig;
  readonly #space: SpaceKeeper;
  readonly #watchers: Watchers;
  #recent = new RecentEvents();
  #standby: Standby | null = null;
  #leader: Leader | null = null;
  #isStopped = false;
  /** Ends the wait of whoever waits until this replica leads no more. */
  #endLeadership: (reason: StopReason) => void = () => undefined;
  #holdBackUntilMs = Number.NEGATIVE_INFINITY;
  /** Ends what runs beside the leader. */
  #endBeside: () => void = NOTHING;

  private constructor(options: MemberOptions) {
    const { runtime, log, serverId, dial } = options;
    this.#options = options;
    this.#watchers = new Watchers(runtime.logger);
    this.#fate = new LogFate({
      runtime,
      log,
      serverId,
      head: () => this.#leader?.head ?? this.#standby?.head,
      onRolledBack: (proof) => this.#serveNothing(proof),
      onReplaced: () => options.onReplaced?.(),
      onGivenUp: options.onHalted,
    });
    this.#desired = new DesiredConfig(options.config, runtime.logger);
    this.frontEnd = new FrontEnd(runtime, () => this.state?.config ?? this.#desired.wanted, {
      patienceMs: PATIENCE_MS,
      ...(options.shard === undefined ? {} : { shard: options.shard }),
      isLeaderless: () => this.#leaderWatch.isLeaderless,
      isLedElsewhere: () => this.#leaderWatch.isLedElsewhere,
      lineage: log.lineage,
    });
    this.#space = new SpaceKeeper({ runtime, log, leader: () => this.#leader });
    this.#link = new LeaderLink({
      runtime,
      log,
      serverId,
      frontEnd: this.frontEnd,
      dial,
      appliedIndex: () => this.#standby?.index ?? 0,
      onLost: () => this.#leaderWatch.lostStream(),
      onHeard: (index) => this.#standby?.heardOf(index),
    });
    this.#leaderWatch = new LeaderWatch({
      runtime,
      log,
      suspicion: options.suspicion,
      link: this.#link,
      standby: () => this.#standby,
      isLeading: () => this.#leader !== null,
    });
  }

  /** Serves clients from the start, though nothing is answered before a leader is found. */
  static start(options: MemberOptions): Member {
    const member = new Member(options);
    member.#live().catch((error: unknown) => member.#fate.failed(error));
    member.#fate.watch();
    return member;
  }

  /** The leader, while it is this replica. */
  get leader(): Leader | null {
    return this.#leader;
  }

  /** The state that it has built so far, for figures; null: it has not read the log yet. */
  get state(): State | null {
    return this.#leader?.state ?? this.#standby?.state ?? null;
  }

  /** Calls back for every later commit that it sees. After a change of roles some may be left out: the log has them. */
  watch(watcher: Watcher): () => void {
    return this.#watchers.add(watcher);
  }

  /** Gives the leadership to another replica, in order, and follows again. Resolves when it has resigned. */
  async handOver(successor: string): Promise<void> {
    const leader = this.#leader;
    if (leader === null) throw new NotLeadingError();
    this.#endBeside();
    try {
      await leader.stop(successor);
    } finally {
      // It has stopped in any case, and the key goes with its lease at the latest.
      this.#endLeadership({ kind: 'deposed' });
    }
  }

  async status(): Promise<MemberStatus> {
    const { log, serverId, runtime } = this.#options;
    const byLog = await askLog(log, runtime.timers);
    return memberStatus({
      serverId,
      lineage: log.lineage,
      halted: this.#fate.halted,
      leader: this.#leader,
      standby: this.#standby,
      isOnLeader: this.#link.isOnLeader,
      clients: this.frontEnd.clients,
      storageProblem: this.#space.integrity.problem,
      byLog,
    });
  }

  /** Figures for /metrics; null before the log has been read. */
  gauges(): ServerGauges | null {
    const { state } = this;
    if (state === null) return null;
    return gaugesOf(state, this.#leader?.sizes ?? { logBytes: 0, snapshotBytes: 0 });
  }

  /** What it brings into force from now on; at once when it leads. Resolves when it has tried. */
  reconfigure(config: NamespaceConfig | null): Promise<void> {
    this.#desired.want(config);
    return this.#leader === null ? Promise.resolve() : this.#desired.bringIntoForce(this.#leader);
  }

  /** The proof, if the log was rolled back. */
  get halted(): RollBackProof | null {
    return this.#fate.halted;
  }

  /** How full the log's storage is, by the last look; null: not known. */
  get space(): SpaceGauges | null {
    const { space, isRefusing } = this.#space;
    return space === null ? null : { ...space, isRefusing, corrupt: this.#space.integrity.members.length };
  }

  /** Hands over, if it leads, and closes the log. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#leaderWatch.stop();
    this.#fate.stop();
    this.#endBeside();
    this.#space.stop();
    await this.#leader?.stop();
    this.#options.onDeposed?.();
    this.#link.stop();
    this.#standby?.stop();
    this.frontEnd.close();
    await this.#options.log.close();
  }

  async #live(): Promise<void> {
    while (this.#fate.isOn) {
      const standby = await this.#follow();
      if (standby === null) continue;
      await this.#holdBack();
      const led = await this.#campaign(standby);
      standby.stop();
      this.#fate.remember(standby.head);
      if (led?.kind === 'failed') {
        this.#options.runtime.logger.error({ error: led.error }, 'this leader has failed; it follows again');
      }
      if (led?.kind === 'halted') this.#fate.rolledBack(led.proof);
    }
  }

  /** Null: the log does not answer. */
  async #follow(): Promise<Standby | null> {
    const { runtime, log, serverId } = this.#options;
    this.#recent = new RecentEvents();
    try {
      await this.#fate.check('entry');
      const standby = await Standby.start({
        runtime,
        log,
        snapshots: new SnapshotDuty(runtime, log, serverId),
        onEntry: (entry) => this.#saw(entry),
        heardForMs: () => this.#link.heardForMs,
        onHalted: (error) => this.#fate.failed(error),
      });
      this.#checkNamespace(standby);
      this.#standby = standby;
      if (standby.state.configVersion > 0) this.#desired.saw(standby.state.config);
      // It may have been stopped, or found the log rolled back, while it read.
      if (this.#fate.isOn) this.#leaderWatch.start();
      return standby;
    } catch (error) {
      if (!(error instanceof LogUnavailableError)) throw error;
      await this.#pause();
      return null;
    }
  }

  /** Until it has led and leads no more, or has lost what it had won before it could. Null: it never led. */
  async #campaign(standby: Standby): Promise<StopReason | null> {
    let hasWon = false;
    const stopped = Promise.withResolvers<StopReason>();
    this.#endLeadership = stopped.resolve;
    while (this.#fate.isOn && !hasWon) {
      try {
        const leader = await this.#win(() => {
          hasWon = true;
          return this.#finish(standby);
        }, stopped.resolve);
        return await this.#lead(leader, stopped.promise);
      } catch (error) {
        if (this.#isStopped) return null;
        if (error instanceof HaltedError || error instanceof ReplacedError) throw error;
        const isTransient = error instanceof LogUnavailableError || error instanceof DeposedError || hasWon;
        if (!isTransient) throw error;
        this.#options.runtime.logger.warn({ error }, 'not won; this replica follows and tries again');
        await this.#pause();
      }
    }
    return null;
  }

  #win(recover: () => Promise<Recovered>, onStopped: (reason: StopReason) => void): Promise<Leader> {
    const { runtime, log, serverId, replicas, onMark, snapshotDueBytes, probe } = this.#options;
    return Leader.start({
      runtime,
      log,
      serverId,
      replicas,
      reason: () => this.#leaderWatch.reasonToLead,
      tokenFloor: floorOfBirth(runtime.clock.wallMs()),
      beatWhenIdle: true,
      recover,
      recent: this.#recent,
      onCommitted: (entry, stats) => {
        this.#space.appended(stats.bytes);
        this.#options.onCommitted?.(entry, stats);
        this.#watchers.tell(entry);
      },
      ...(snapshotDueBytes === undefined ? {} : { snapshotDueBytes }),
      ...(onMark === undefined ? {} : { onMark }),
      ...(probe === undefined ? {} : { probe }),
      onOverstalled: () => this.#yield(),
      onStopped,
    });
  }

  async #lead(leader: Leader, stopped: Promise<StopReason>): Promise<StopReason> {
    assert(this.#leader === null, 'one replica leads once at a time');
    if (this.#isStopped) {
      await leader.stop();
      return { kind: 'deposed' };
    }
    // Another group may have taken the empty log for its own meanwhile.
    this.#checkNamespace(leader);
    this.#leaderWatch.led();
    this.#standby = null;
    this.#leader = leader;
    const { logger } = this.#options.runtime;
    logger.info({ epoch: leader.position.epoch, index: leader.position.index }, 'leads');
    this.#link.lead(leader);
    this.#endBeside = this.#options.whileLeading?.(leader) ?? NOTHING;
    // Of entries that were trimmed before it could read them it has seen only what they led to.
    if (leader.state.configVersion > 0) this.#desired.saw(leader.state.config);
    const isOwnConfig = this.#options.configuredBy !== 'admin' || leader.state.configVersion === 0;
    if (this.#desired.isBehind && isOwnConfig) {
      logger.warn({}, 'the manifest of this server is behind the configuration in force');
    } else if (isOwnConfig) await this.#desired.bringIntoForce(leader);
    const reason = await stopped;
    logger.warn({ kind: reason.kind }, 'leads no more');
    this.#fate.remember(leader.head);
    this.#endBeside();
    this.#leader = null;
    this.#options.onDeposed?.();
    this.#link.seekAnew();
    return reason;
  }

  /** @throws Error this log is that of another LockNamespace; what has read it is stopped */
  #checkNamespace(reader: Standby | Leader): void {
    try {
      checkSameNamespace(reader.state.config, this.#options.config);
    } catch (error) {
      void reader.stop();
      throw error;
    }
  }

  /** Won: reads to the end of the log, however often that takes. */
  async #finish(standby: Standby): Promise<Recovered> {
    this.#leaderWatch.stop();
    for (;;) {
      try {
        return await standby.finish();
      } catch (error) {
        if (!(error instanceof LogUnavailableError) || this.#isStopped) throw error;
        await this.#pause();
      }
    }
  }

  #saw(entry: HistoryEntry): void {
    const { epoch, index, events } = entry;
    this.#watchers.tell(entry);
    this.#recent.add(index, events);
    this.#link.sawEpoch(epoch);
    for (const event of events) {
      if (event.type === 'configured') this.#desired.saw(this.#standby?.state.config ?? null);
      if (event.type === 'tookOver') this.#leaderWatch.sawTakeOver(event.reason);
    }
  }

  /** Rule S6: to another replica, if one is here to take over; it gets a while to win first. */
  #yield(): boolean {
    const leader = this.#leader;
    // One of its front ends is this replica's own.
    if (leader === null || leader.frontEnds < 2) return false;
    const { logger } = this.#options.runtime;
    logger.warn({ epoch: leader.position.epoch }, 'this leader stood still too often; it hands over');
    this.#holdBackUntilMs = this.#nowMs() + HOLD_BACK_MS;
    const end = this.#endLeadership;
    leader.stop().then(
      () => end({ kind: 'handedOver' }),
      (error: unknown) => end({ kind: 'failed', error }),
    );
    return true;
  }

  async #holdBack(): Promise<void> {
    while (this.#fate.isOn && this.#nowMs() < this.#holdBackUntilMs && !this.#link.isOnLeader)
      await this.#pause();
  }

  /** Rule S10: stays up, so that clients and people are told. */
  #serveNothing(proof: RollBackProof): void {
    this.#leaderWatch.stop();
    this.#standby?.stop();
    this.#link.stop();
    this.frontEnd.halt(haltMessage(proof, NEW_LINEAGE_COMMAND));
    this.#options.onDeposed?.();
    this.#options.onRolledBack?.(proof);
  }

  #pause(): Promise<void> {
    return pause(this.#options.runtime.timers, RETRY_MS);
  }

  #nowMs(): number {
    return this.#options.runtime.clock.monotonicMs();
  }
}
