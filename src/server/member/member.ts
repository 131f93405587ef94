/**
 * One lock server of a group, for as long as its process lives: it follows the log, campaigns all the while, leads when it wins, and follows
 * again when it is deposed. Its front end serves clients throughout, whoever leads.
 */
import { ok as assert } from 'node:assert';
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import type { State } from '../../core/index.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import {
  DeposedError,
  HaltedError,
  type LockLog,
  ReplacedError,
  type RollBackProof,
} from '../../log/port.ts';
import type { MarkOutcome, ServerGauges, SpaceGauges } from '../../platform/metrics.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import type { Shard } from '../front-end/admission.ts';
import { FrontEnd } from '../front-end/front-end.ts';
import { type DialLeader, LeaderLink } from '../front-end/leader-link.ts';
import { configure } from '../leader/configure.ts';
import { Leader } from '../leader/leader.ts';
import type { CommitStats, StopReason } from '../leader/leader-options.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import { IDLE_BEAT_MS } from '../leader/pulse.ts';
import { RecentEvents } from '../leader/recent-events.ts';
import { floorOfBirth } from '../leader/take-over.ts';
import type { Recovered } from '../snapshots/recovery.ts';
import { SnapshotDuty } from '../snapshots/snapshot-duty.ts';
import { SpaceKeeper } from '../snapshots/space.ts';
import { DesiredConfig } from './desired-config.ts';
import { gaugesOf } from './gauges.ts';
import { haltMessage } from './halt-message.ts';
import { LeaderWatch } from './leader-watch.ts';
import { LogStanding, type StandingDepth } from './log-standing.ts';
import { askLog, type MemberStatus, memberStatus } from './member-status.ts';
import { Standby } from './standby.ts';
import type { SuspicionSettings } from './suspicion.ts';
import { type Watcher, Watchers } from './watchers.ts';

/** How long a request waits for a leader. */
const PATIENCE_MS = 5_000;
/** While entries come, somebody leads, whether this replica can reach it or not. */
const LEADER_SEEN_MS = 700;
/** An answer of the log about who leads counts for so long. */
const ANSWER_MS = 1_000;
/** Pause before what failed is tried again. */
const RETRY_MS = 250;
const NOTHING = (): void => undefined;
/** How often a replica looks whether its log may still be served. */
const STANDING_MS = 1_000;
/** After a hand-over the others get so long to win before it campaigns again. */
const HOLD_BACK_MS = 2_000;
const NEW_LINEAGE_COMMAND = 'leasehold group new-lineage';
export interface MemberOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  /** What it brings into force when it leads. */
  readonly config: NamespaceConfig | null;
  /** `admin`: only at the birth of the log; from then on the configuration comes by Admin.Configure. Default: `file`. */
  readonly configuredBy?: 'file' | 'admin';
  readonly dial: DialLeader;
  readonly suspicion: SuspicionSettings;
  /** Left out: this group serves all names. */
  readonly shard?: () => Shard;
  readonly snapshotDueBytes?: number;
  readonly onCommitted?: (entry: HistoryEntry, stats: CommitStats) => void;
  /** What became of a client's mark (rule S10). */
  readonly onMark?: (outcome: MarkOutcome) => void;
  /** A new lineage of the log has begun: this member is of no more use, and one that opens the log anew should take its place. */
  readonly onReplaced?: () => void;
  /** The log was rolled back: this replica stays, and serves nothing (rule S10). */
  readonly onRolledBack?: (proof: RollBackProof) => void;
  /** What runs beside the leader, as the audit exporter; the answer ends it. */
  readonly whileLeading?: (leader: Leader) => () => void;
  /** This replica leads no more: streams of other front ends must end. */
  readonly onDeposed?: () => void;
  /** It cannot go on: the log contradicts itself or this program (rule C14). The process should say why and end. */
  readonly onHalted: (error: unknown) => void;
}

export class Member {
  readonly frontEnd: FrontEnd;
  readonly #options: MemberOptions;
  readonly #link: LeaderLink;
  readonly #leaderWatch: LeaderWatch;
  readonly #standing: LogStanding;
  readonly #desired: DesiredConfig;
  /** Configurations are brought into force one after the other. */
  #configuring: Promise<void> = Promise.resolve();
  readonly #space: SpaceKeeper;
  readonly #watchers: Watchers;
  #recent = new RecentEvents();
  #standby: Standby | null = null;
  #leader: Leader | null = null;
  #isStopped = false;
  /** Ends the wait of whoever waits until this replica leads no more. */
  #endLeadership: (reason: StopReason) => void = () => undefined;
  #holdBackUntilMs = Number.NEGATIVE_INFINITY;
  #halted: RollBackProof | null = null;
  #isReplaced = false;
  #standingCheck: Timer | null = null;
  /** Ends what runs beside the leader. */
  #endBeside: () => void = NOTHING;

  private constructor(options: MemberOptions) {
    const { runtime, log, serverId, dial } = options;
    this.#options = options;
    this.#watchers = new Watchers(runtime.logger);
    this.#standing = new LogStanding(runtime, log, serverId);
    this.#desired = new DesiredConfig(options.config);
    this.frontEnd = new FrontEnd(runtime, () => this.state?.config ?? this.#desired.wanted, {
      patienceMs: PATIENCE_MS,
      ...(options.shard === undefined ? {} : { shard: options.shard }),
      isLeaderless: () => this.#isLeaderless,
      isLedElsewhere: () => this.#isLedElsewhere,
      lineage: log.lineage,
    });
    this.#space = new SpaceKeeper({ runtime, log, leader: () => this.#leader });
    const appliedIndex = (): number => this.#standby?.index ?? 0;
    this.#link = new LeaderLink({ runtime, log, serverId, frontEnd: this.frontEnd, dial, appliedIndex });
    this.#leaderWatch = new LeaderWatch({
      runtime,
      log,
      suspicion: options.suspicion,
      link: this.#link,
      silenceMs: () => this.#silenceMs,
      isLeading: () => this.#leader !== null,
    });
  }

  /** Serves clients from the start, though nothing is answered before a leader is found. */
  static start(options: MemberOptions): Member {
    const member = new Member(options);
    member.#live().catch((error: unknown) => member.#failed(error));
    member.#watchStanding();
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
      halted: this.#halted,
      leader: this.#leader,
      standby: this.#standby,
      isOnLeader: this.#link.isOnLeader,
      clients: this.frontEnd.clients,
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
    return this.#leader === null ? Promise.resolve() : this.#configure(this.#leader);
  }

  /** The proof, if the log was rolled back. */
  get halted(): RollBackProof | null {
    return this.#halted;
  }

  /** How full the log's storage is, by the last look; null: not known. */
  get space(): SpaceGauges | null {
    const { space, isRefusing } = this.#space;
    return space === null ? null : { ...space, isRefusing };
  }

  /** Hands over, if it leads, and closes the log. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#leaderWatch.stop();
    this.#standingCheck?.cancel();
    this.#endBeside();
    this.#space.stop();
    await this.#leader?.stop();
    this.#options.onDeposed?.();
    this.#link.stop();
    this.#standby?.stop();
    this.frontEnd.close();
    await this.#options.log.close();
  }

  /**
   * Whether this replica knows that nobody leads. One that is cut off from the log knows nothing, and its clients must go elsewhere
   * (rule S8).
   */
  get #isLeaderless(): boolean {
    if (this.#link.answerAgeMs > ANSWER_MS) return false;
    return this.#link.epoch === 0 || (this.#standby !== null && this.#silenceMs >= LEADER_SEEN_MS);
  }

  /** Whether the log names a leader, and entries of it keep coming. */
  get #isLedElsewhere(): boolean {
    if (this.#link.answerAgeMs > ANSWER_MS || this.#link.epoch === 0) return false;
    return this.#standby !== null && this.#standby.silentMs < LEADER_SEEN_MS;
  }

  /** How long no entry has been seen, beyond the time in which none is due: without sessions a leader has little to write. */
  get #silenceMs(): number {
    if (this.#standby === null) return 0;
    const { silentMs, state } = this.#standby;
    return state.sessions.size > 0 ? silentMs : silentMs - IDLE_BEAT_MS;
  }

  /** Neither stopped nor at an end with this log. */
  get #isOn(): boolean {
    return !this.#isStopped && !this.#isReplaced && this.#halted === null;
  }

  async #live(): Promise<void> {
    while (this.#isOn) {
      const standby = await this.#follow();
      if (standby === null) continue;
      await this.#holdBack();
      const led = await this.#campaign(standby);
      standby.stop();
      this.#standing.remember(standby.head);
      if (led?.kind === 'failed') {
        this.#options.runtime.logger.error({ error: led.error }, 'this leader has failed; it follows again');
      }
      if (led?.kind === 'halted') this.#rolledBack(led.proof);
    }
  }

  /** Null: the log does not answer. */
  async #follow(): Promise<Standby | null> {
    const { runtime, log, serverId } = this.#options;
    this.#recent = new RecentEvents();
    try {
      await this.#checkLog('entry');
      const standby = await Standby.start({
        runtime,
        log,
        snapshots: new SnapshotDuty(runtime, log, serverId),
        onEntry: (entry) => this.#saw(entry),
        onHalted: (error) => this.#failed(error),
      });
      this.#standby = standby;
      if (standby.state.configVersion > 0) this.#desired.saw(standby.state.config);
      this.#leaderWatch.start();
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
    while (this.#isOn && !hasWon) {
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
    const { runtime, log, serverId, onMark, snapshotDueBytes } = this.#options;
    return Leader.start({
      runtime,
      log,
      serverId,
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
      onOverstalled: () => this.#handOver(),
      onStopped,
    });
  }

  async #lead(leader: Leader, stopped: Promise<StopReason>): Promise<StopReason> {
    assert(this.#leader === null, 'one replica leads once at a time');
    if (this.#isStopped) {
      await leader.stop();
      return { kind: 'deposed' };
    }
    this.#leaderWatch.led();
    this.#standby = null;
    this.#leader = leader;
    const { logger } = this.#options.runtime;
    logger.info({ epoch: leader.position.epoch, index: leader.position.index }, 'leads');
    this.#link.lead(leader);
    this.#endBeside = this.#options.whileLeading?.(leader) ?? NOTHING;
    const isOwnConfig = this.#options.configuredBy !== 'admin' || leader.state.configVersion === 0;
    if (this.#desired.isBehind && isOwnConfig) {
      logger.warn({}, 'the manifest of this server is behind the configuration in force');
    } else if (isOwnConfig) await this.#configure(leader);
    const reason = await stopped;
    logger.warn({ kind: reason.kind }, 'leads no more');
    this.#standing.remember(leader.head);
    this.#endBeside();
    this.#leader = null;
    this.#options.onDeposed?.();
    this.#link.seekAnew();
    return reason;
  }

  #configure(leader: Leader): Promise<void> {
    const { logger } = this.#options.runtime;
    this.#configuring = this.#configuring.then(async () => {
      try {
        const { wanted } = this.#desired;
        if (await configure(leader, wanted)) logger.info({}, 'a new configuration is in force');
        this.#desired.saw(wanted);
      } catch (error) {
        logger.error({ error }, 'the configuration is not in force');
      }
    });
    return this.#configuring;
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
  #handOver(): boolean {
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
    while (this.#isOn && this.#nowMs() < this.#holdBackUntilMs && !this.#link.isOnLeader) await this.#pause();
  }

  #watchStanding(): void {
    if (this.#isStopped || this.#isReplaced) return;
    this.#standingCheck = this.#options.runtime.timers.after(STANDING_MS, () => {
      this.#checkLog('head')
        .catch((error: unknown) => {
          if (error instanceof HaltedError || error instanceof ReplacedError) this.#failed(error);
        })
        .finally(() => this.#watchStanding());
    });
  }

  /** @throws HaltedError, ReplacedError */
  #checkLog(depth: StandingDepth): Promise<void> {
    const current = this.#leader?.head ?? this.#standby?.head;
    if (current !== undefined) this.#standing.remember(current);
    return this.#standing.check(depth);
  }

  /** It cannot go on as it is. What looks like damage may be a log that was rolled back or begun anew. */
  #failed(error: unknown): void {
    if (this.#isStopped || this.#isReplaced) return;
    if (error instanceof HaltedError) this.#rolledBack(error.proof);
    else if (error instanceof ReplacedError) this.#replaced();
    else {
      this.#checkLog('entry').then(
        () => this.#giveUp(error),
        (found: unknown) => {
          const isKnown = found instanceof HaltedError || found instanceof ReplacedError;
          if (isKnown) this.#failed(found);
          else this.#giveUp(error);
        },
      );
    }
  }

  #giveUp(error: unknown): void {
    if (!this.#isStopped) this.#options.onHalted(error);
  }

  /** Rule S10: stays up, so that clients and people are told, and serves nothing. */
  #rolledBack(proof: RollBackProof): void {
    if (this.#halted !== null) return;
    this.#halted = proof;
    assert(!this.#isOn, 'a halted replica neither follows nor leads');
    this.#options.runtime.logger.error({ proof }, 'the log was rolled back; this replica serves nothing');
    this.#leaderWatch.stop();
    this.#standby?.stop();
    this.#link.stop();
    this.frontEnd.halt(haltMessage(proof, NEW_LINEAGE_COMMAND));
    this.#options.onDeposed?.();
    this.#options.onRolledBack?.(proof);
  }

  #replaced(): void {
    this.#isReplaced = true;
    this.#options.runtime.logger.warn({}, 'a new lineage of the log has begun');
    this.#options.onReplaced?.();
  }

  #pause(): Promise<void> {
    return pause(this.#options.runtime.timers, RETRY_MS);
  }

  #nowMs(): number {
    return this.#options.runtime.clock.monotonicMs();
  }
}
