/**
 * The leader's loop: everything that waits -> one entry -> apply -> append -> publish, then again. One append is in flight
 * at a time; what arrives meanwhile forms the next entry, which is group commit without a timer. No promise, JSON or log
 * line for a single operation in here.
 *
 * The state runs ahead of the log by the one entry in flight: `apply` comes before the append, so that a command that
 * throws never gets into the log (rule C13), and nothing is published before the commit (rule S1).
 */
import type { Command, CommandResult, HistoryEntry } from '../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, FORMAT_VERSION } from '../api/limits.ts';
import type { Position, ReadQuery, ReadResult, RelayFrame } from '../api/wire.ts';
import {
  type Applied,
  apply,
  CoreFault,
  type Draft,
  type FaultProbe,
  hasBacklog,
  nextDue,
  type State,
} from '../core/index.ts';
import { DeposedError, type Leadership, type LockLog, type LogPosition } from '../log/port.ts';
import type { Runtime } from '../platform/runtime.ts';
import { Appender } from './appender.ts';
import { raiseTo } from './behaviour.ts';
import { Faults } from './faults.ts';
import { type Batch, Inbox, prepend } from './inbox.ts';
import { Inquiries } from './inquiries.ts';
import type { FrontEndLink } from './outbox.ts';
import { Publisher } from './publisher.ts';
import { Pulse } from './pulse.ts';
import { RecentEvents } from './recent-events.ts';
import { Reception } from './reception.ts';
import { type Recovered, recover } from './recovery.ts';
import { Snapshots } from './snapshots.ts';
import { takeOverCommand } from './take-over.ts';

/** How long an orderly stop may wait for commits. */
const HAND_OVER_MS_MAX = 5_000;

export interface LeaderOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  /** Why this server took over; goes into the log. Asked once it has won. */
  readonly reason: string | (() => string);
  /** Token floor of a new lineage (rule C12); ignored when the log has entries. */
  readonly tokenFloor: number;
  /** True in a group: entries also prove to standbys that the leader lives. A lone replica writes nothing without a reason. */
  readonly beatWhenIdle: boolean;
  /** Behaviour levels that the replicas of the group support, this one's included (rule C15). Left out: it is alone. */
  readonly behaviourLevels?: () => readonly number[];
  /** What a standby knows, read to the end of the log once it is won. Left out: the log is read from its start (rule S5). */
  readonly recover?: () => Promise<Recovered>;
  /** Events before this leadership, for front ends that missed them; the leader adds its own. */
  readonly recent?: RecentEvents;
  /** Told of every commit, after its answers are out. */
  readonly onCommitted?: (entry: HistoryEntry, stats: CommitStats) => void;
  /** The leader has stopped by itself: deposed, or it cannot go on. */
  readonly onStopped: (reason: StopReason) => void;
  readonly snapshotDueBytes?: number;
  readonly probe?: FaultProbe;
}

export type StopReason = { readonly kind: 'deposed' } | { readonly kind: 'failed'; readonly error: unknown };

export interface CommitStats {
  readonly commands: number;
  readonly bytes: number;
  readonly commitMs: number;
  /** A standstill of the loop or of the commits before this one (rule S6); 0 = none. */
  readonly stalledMs: number;
}

/** An entry that is applied and on its way to the log. */
interface Proposal {
  readonly draft: Draft;
  readonly batch: Batch;
  readonly applied: Applied;
  readonly keepalives: ReturnType<Publisher['takeKeepalives']>;
  readonly startedMs: number;
}

export class Leader {
  readonly #options: LeaderOptions;
  readonly #runtime: Runtime;
  readonly #leadership: Leadership;
  readonly #publisher = new Publisher();
  readonly #inbox = new Inbox();
  readonly #inquiries: Inquiries;
  readonly #faults: Faults;
  readonly #snapshots: Snapshots;
  readonly #appender: Appender;
  readonly #pulse: Pulse;
  readonly #reception: Reception;
  readonly #recent: RecentEvents;
  #state: State;
  /** Group time minus monotonic time (rule S6). */
  readonly #groupOffsetMs: number;
  /** An append is in flight, or the state is being rebuilt. */
  #isBusy = false;
  #isTurnPlanned = false;
  #isStopped = false;
  #whenIdle: (() => void) | null = null;
  #stopping: Promise<void> | null = null;

  private constructor(
    options: LeaderOptions,
    leadership: Leadership,
    {
      state,
      head,
      sizes,
    }: { state: State; head: LogPosition; sizes: { logBytes: number; lastBytes: number } },
  ) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#leadership = leadership;
    this.#state = state;
    this.#appender = new Appender(options.runtime, options.log, leadership, head);
    this.#faults = new Faults(options.runtime.logger);
    this.#recent = options.recent ?? new RecentEvents();
    const parts = { inbox: this.#inbox, publisher: this.#publisher, faults: this.#faults };
    this.#reception = new Reception(this, { ...parts, recent: this.#recent });
    const { runtime, log, snapshotDueBytes: dueBytes } = options;
    this.#snapshots = new Snapshots({
      ...{ runtime, log, leadership, ...sizes },
      ...(dueBytes === undefined ? {} : { dueBytes }),
      standbys: () => this.#reception.standbys,
    });
    this.#inquiries = new Inquiries({ ...parts, onAsked: () => this.#planTurn() });
    this.#groupOffsetMs = state.at - this.#nowMs();
    this.#pulse = new Pulse(options.runtime, () => this.#turn(true));
  }

  /**
   * Wins the log, reads it to the end and commits the take-over; serves from then on (rule S5), at the behaviour level that
   * all replicas support (rule C15).
   */
  static async start(options: LeaderOptions): Promise<Leader> {
    const { log, runtime } = options;
    const leadership = await log.campaign(options.serverId);
    const recovering = options.recover?.() ?? recover(log, runtime.logger);
    const { state, head, snapshot, bytes } = await recovering;
    // Another one has won the log and begun to lead while this one was still reading.
    if (state.epoch > leadership.epoch) throw new DeposedError('take over');
    const sizes = { logBytes: bytes, lastBytes: snapshot?.bytes ?? 0 };
    const leader = new Leader(options, leadership, { state, head, sizes });
    await leader.#takeOver();
    await leader.#raiseBehaviour();
    return leader;
  }

  get position(): Position {
    return { lineage: this.#state.lineage, epoch: this.#leadership.epoch, index: this.#appender.head.index };
  }

  /** False once it has stopped, for whatever reason. */
  get isLeading(): boolean {
    return !this.#isStopped;
  }

  /** The state at the last commit or one entry ahead of it: for limits and figures, never for answers. */
  get state(): State {
    return this.#state;
  }

  /** Bytes in the log since the last snapshot, and of that snapshot. */
  get sizes(): { readonly logBytes: number; readonly snapshotBytes: number } {
    return this.#snapshots.sizes;
  }

  /**
   * A front end's stream begins. Its first frames re-attach its sessions, ended by `allAttached`; only a front end in the leader's own
   * process, which has had no other leader, may leave both out.
   */
  connect(link: FrontEndLink): void {
    this.#reception.connect(link);
  }

  /** Takes a frame of a front end. Answers come over `link`, later. */
  receive(link: FrontEndLink, frame: RelayFrame): void {
    this.#reception.receive(link, frame, this.#nowMs());
    if (this.#inbox.size > 0) this.#planTurn();
    else if (this.#publisher.hasKeepalives && !this.#isStopped) this.#pulse.hasten(this.#due());
  }

  disconnect(link: FrontEndLink): void {
    this.#reception.disconnect(link);
  }

  /**
   * Runs administrative commands through the log; resolves after their commit. One that cannot be written into an entry is
   * refused INVALID, with all that came with it.
   */
  submit(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    return this.#inquiries.submit(commands);
  }

  /** A read like any client's: answered after a commit that began after this call (rule S1). */
  read(query: ReadQuery): Promise<ReadResult> {
    return this.#inquiries.read(query);
  }

  /**
   * Hands over in order: finish what is in flight, say so in the log, give the leadership back. When nothing can be committed
   * it stops after a while all the same, and a successor has to wait until this leadership runs out.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#handOver();
    return this.#stopping;
  }

  async #handOver(): Promise<void> {
    if (this.#isStopped) return;
    const { timers, logger } = this.#runtime;
    const limit = timers.after(HAND_OVER_MS_MAX, () => {
      logger.warn({}, 'nothing can be committed: stopped without handing over');
      this.#appender.giveUp();
      this.#stopServing();
    });
    // Rejected when this server has stopped in the meantime: nothing is left to hand over.
    const isResigned = await this.submit([{ type: 'resign', epoch: this.#leadership.epoch }]).then(
      () => true,
      () => false,
    );
    limit.cancel();
    this.#stopServing();
    if (!isResigned) return;
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    await this.#options.log.resign(this.#leadership);
  }

  async #takeOver(): Promise<void> {
    const { tokenFloor, reason } = this.#options;
    const { epoch } = this.#leadership;
    const wallMs = this.#runtime.clock.wallMs();
    const isBirth = this.#appender.head.index === 0;
    const why = typeof reason === 'string' ? reason : reason();
    const takeOver = takeOverCommand({ epoch, wallMs, isBirth, tokenFloor, reason: why });
    const [result] = await this.submit([takeOver]);
    if (result?.type !== 'done') throw new Error(`the take-over was refused: ${JSON.stringify(result)}`);
    this.#publisher.startLeases(this.#state, this.#nowMs());
    this.#arm();
  }

  async #raiseBehaviour(): Promise<void> {
    const supported = this.#options.behaviourLevels?.() ?? [BEHAVIOUR_LEVEL_MAX];
    const raise = raiseTo(this.#state.behaviour, supported);
    if (raise === null) return;
    const [result] = await this.submit([raise]);
    if (result?.type !== 'done') throw new Error(`the behaviour was not raised: ${JSON.stringify(result)}`);
  }

  #planTurn(): void {
    if (this.#isTurnPlanned || this.#isBusy || this.#isStopped) return;
    this.#isTurnPlanned = true;
    this.#runtime.timers.soon(() => {
      this.#isTurnPlanned = false;
      this.#turn();
    });
  }

  /** Builds and appends the next entry, if there is a reason for one. */
  #turn(isBeat = false): void {
    if (this.#isBusy || this.#isStopped) return;
    const now = this.#nowMs();
    this.#publisher.leases.stalled(this.#pulse.latenessMs(), now);
    const batch = this.#faults.takeRetry() ?? this.#inbox.take();
    this.#expire(batch, now);
    const isDue = nextDue(this.#state) <= this.#groupMs() || hasBacklog(this.#state);
    const hasWork = batch.commands.length > 0 || batch.reads.length > 0 || this.#publisher.hasKeepalives;
    if (hasWork || isDue || (isBeat && this.#options.beatWhenIdle)) this.#append(batch, now);
    else this.#arm();
  }

  /** The verdict over silent sessions goes first; what has arrived from them has renewed their leases (rule S6). */
  #expire(batch: Batch, nowMs: number): void {
    const sessions = this.#publisher.leases.expired(nowMs);
    if (sessions.length > 0) prepend(batch, { type: 'expireSessions', sessions, cause: 'expired' });
  }

  #append(batch: Batch, startedMs: number): void {
    const keepalives = this.#publisher.takeKeepalives();
    const draft: Draft = {
      format: FORMAT_VERSION,
      behaviour: this.#state.behaviour,
      lineage: this.#state.lineage,
      epoch: this.#leadership.epoch,
      index: this.#appender.head.index + 1,
      at: this.#groupMs(),
      commands: batch.commands,
    };
    let applied: Applied;
    this.#isBusy = true;
    try {
      applied = apply(this.#state, draft, this.#options.probe);
    } catch (fault) {
      this.#publisher.returnKeepalives(keepalives);
      this.#rebuild(batch, fault).catch((error: unknown) => this.#stopBecause({ kind: 'failed', error }));
      return;
    }
    const commit = { draft, batch, applied, keepalives, startedMs };
    this.#commit(commit).catch((error: unknown) => this.#stopBecause({ kind: 'failed', error }));
  }

  async #commit({ draft, batch, applied, keepalives, startedMs }: Proposal): Promise<void> {
    const entry = { ...draft, wallMs: this.#runtime.clock.wallMs(), eventHash: this.#state.eventHash };
    const { outcome, bytes } = await this.#appender.append(entry);
    if (outcome === 'deposed') {
      this.#stopBecause({ kind: 'deposed' });
      return;
    }
    const now = this.#nowMs();
    this.#snapshots.appended(bytes);
    this.#publisher.leases.stalled(now - startedMs, now);
    this.#recent.add(entry.index, applied.events);
    this.#publisher.publish(this.#state, { position: this.position, batch, applied, keepalives }, now);
    const stats = {
      commands: batch.commands.length,
      bytes,
      commitMs: now - startedMs,
      stalledMs: this.#publisher.leases.takeStall(),
    };
    this.#options.onCommitted?.({ ...entry, events: applied.events }, stats);
    this.#next();
  }

  /** An entry is done: what came meanwhile makes the next one. */
  #next(): void {
    if (this.#snapshots.isDue) {
      this.#snapshots.write(this.#state, this.#appender.head).catch((error: unknown) => {
        this.#runtime.logger.error({ error }, 'snapshot failed; the log keeps growing');
      });
    }
    this.#isBusy = false;
    this.#whenIdle?.();
    if (this.#inbox.size > 0 || hasBacklog(this.#state)) this.#planTurn();
    this.#arm();
  }

  /** The state threw and is unusable: make it again from the log, without what made it throw (rule C13). */
  async #rebuild(batch: Batch, fault: unknown): Promise<void> {
    if (!(fault instanceof CoreFault)) throw fault;
    const { state } = await recover(this.#options.log, this.#runtime.logger);
    this.#state = state;
    const culprit = this.#faults.blame(fault.step, batch, fault);
    if (culprit !== null) {
      this.#publisher.reject(culprit.from, culprit.id, this.position, 'INVALID', culprit.message);
    }
    this.#isBusy = false;
    this.#planTurn();
  }

  #stopBecause(reason: StopReason): void {
    this.#isBusy = false;
    this.#whenIdle?.();
    if (this.#isStopped) return;
    this.#stopServing();
    this.#options.onStopped(reason);
  }

  /** From now on nothing is appended, and whoever waits for an answer of ours is told. */
  #stopServing(): void {
    this.#isStopped = true;
    this.#pulse.stop();
    this.#snapshots.stop();
    this.#inquiries.close();
  }

  /** Wakes up for the next beat, or for the timer that falls due before it. */
  #arm(): void {
    if (!this.#isStopped) this.#pulse.plan(this.#due());
  }

  #due(): { readonly isBusyHour: boolean; readonly dueInMs: number } {
    return {
      isBusyHour: this.#publisher.leases.size > 0 || this.#publisher.hasKeepalives,
      dueInMs: nextDue(this.#state) - this.#groupMs(),
    };
  }

  #nowMs(): number {
    return this.#runtime.clock.monotonicMs();
  }

  #groupMs(): number {
    return Math.max(this.#state.at, Math.floor(this.#nowMs() + this.#groupOffsetMs));
  }
}
