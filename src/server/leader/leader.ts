/**
 * The leader's loop: everything that waits -> one entry -> apply -> append -> publish, then again. One append is in flight
 * at a time; what arrives meanwhile forms the next entry, which is group commit without a timer. No promise, JSON or log
 * line for a single operation in here.
 *
 * The state runs ahead of the log by the one entry in flight: `apply` comes before the append, so that a command that
 * throws never gets into the log (rule C13), and nothing is published before the commit (rule S1).
 */
import type { Command, CommandResult } from '../../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, FORMAT_VERSION, TTL_MS_MAX } from '../../api/limits.ts';
import type { Position, ReadQuery, ReadResult, RelayFrame } from '../../api/wire.ts';
import {
  type Applied,
  apply,
  assert,
  CoreFault,
  type Draft,
  hasBacklog,
  nextDue,
  type State,
} from '../../core/index.ts';
import {
  type Birth,
  DeposedError,
  type Leadership,
  type LogPosition,
  type RollBackProof,
} from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { type Recovered, recover } from '../snapshots/recovery.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import { Appender } from './appender.ts';
import { Behaviour } from './behaviour.ts';
import { Faults } from './faults.ts';
import { GroupTime } from './group-time.ts';
import { type Batch, Inbox, prepend, strike } from './inbox.ts';
import { Inquiries } from './inquiries.ts';
import type { LeaderOptions, StopReason } from './leader-options.ts';
import { verdicts } from './leases.ts';
import { Marks } from './marks.ts';
import type { FrontEndLink } from './outbox.ts';
import { Publisher } from './publisher.ts';
import { Pulse } from './pulse.ts';
import { leaveOut, recoverPatiently } from './rebuild.ts';
import { RecentEvents } from './recent-events.ts';
import { Reception } from './reception.ts';
import { giveBack, resigned } from './resigned.ts';
import { refuseUnservable, writeProof } from './servable.ts';
import { Stalls } from './stalls.ts';
import { takeOverCommand } from './take-over.ts';

/** An entry that is applied and on its way to the log. */
interface Proposal {
  readonly draft: Draft;
  readonly batch: Batch;
  readonly applied: Applied;
  readonly keepalives: ReturnType<Publisher['takeKeepalives']>;
  readonly marks: ReturnType<Marks['take']>;
  readonly startedMs: number;
}

export class Leader {
  readonly #options: LeaderOptions;
  readonly #runtime: Runtime;
  readonly #leadership: Leadership;
  readonly #publisher = new Publisher(() => this.#marks.make(this.position));
  readonly #marks: Marks;
  readonly #stalls: Stalls;
  readonly #inbox = new Inbox();
  readonly #inquiries: Inquiries;
  readonly #faults: Faults;
  readonly #snapshots: Snapshots;
  readonly #appender: Appender;
  readonly #pulse: Pulse;
  readonly #reception: Reception;
  readonly #recent: RecentEvents;
  readonly #behaviour: Behaviour;
  #state: State;
  readonly #time: GroupTime;
  #isHandingOver = false;
  /** A roll-back is proven: nothing is published any more. */
  #isHalted = false;
  /** An append is in flight, or the state is being rebuilt. */
  #isBusy = false;
  #isTurnPlanned = false;
  #isStopped = false;
  #whenIdle: (() => void) | null = null;
  #stopping: Promise<void> | null = null;

  private constructor(
    options: LeaderOptions,
    leadership: Leadership,
    { state, head, snapshot, bytes }: Recovered,
    birth: Birth,
  ) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#leadership = leadership;
    this.#state = state;
    this.#appender = new Appender(options.runtime, options.log, leadership, head);
    this.#faults = new Faults(options.runtime.logger);
    this.#recent = options.recent ?? new RecentEvents();
    const { log, serverId, runtime, onMark = () => undefined } = options;
    this.#marks = new Marks(
      {
        runtime,
        log,
        serverId,
        sealKey: birth.sealKey,
        onOutcome: onMark,
        onProof: (proof) => this.#halt(proof),
      },
      head,
    );
    this.#time = new GroupTime(runtime.clock, state.at, birth.quietMs);
    this.#stalls = new Stalls(this.#nowMs());
    const parts = { inbox: this.#inbox, publisher: this.#publisher, faults: this.#faults };
    this.#reception = new Reception(this, { ...parts, recent: this.#recent, marks: this.#marks });
    const { snapshotDueBytes: dueBytes } = options;
    this.#snapshots = new Snapshots({
      ...{ runtime, log, leadership, logBytes: bytes, lastBytes: snapshot?.bytes ?? 0 },
      ...(dueBytes === undefined ? {} : { dueBytes }),
      standbys: () => this.#reception.standbys,
    });
    this.#behaviour = new Behaviour({
      logger: runtime.logger,
      replicas: options.replicas,
      current: () => this.#state.behaviour,
      submit: (command) => this.#inquiries.submitOwn(command),
    });
    this.#inquiries = new Inquiries({ ...parts, onAsked: () => this.#planTurn() });
    this.#pulse = new Pulse(options.runtime, () => this.#turn(true));
  }

  /**
   * Wins the log, reads it to the end and commits the take-over; serves from then on (rule S5). One that is alone raises the behaviour
   * level at once; in a group that waits until all replicas have said what they support (rule C15).
   */
  static async start(options: LeaderOptions): Promise<Leader> {
    const { log, runtime } = options;
    const leadership = await log.campaign(options.serverId);
    await refuseUnservable(log, leadership);
    const birth = await log.birth();
    const recovered = await (options.recover?.() ?? recover(log, runtime.logger));
    // Another one has won the log and begun to lead while this one was still reading.
    if (recovered.state.epoch > leadership.epoch) throw new DeposedError('take over');
    const leader = new Leader(options, leadership, recovered, birth);
    await leader.#takeOver(birth);
    if (options.replicas === 1) await leader.#behaviour.raise([BEHAVIOUR_LEVEL_MAX]);
    return leader;
  }

  /** For writes to the log beside the loop's own. */
  get leadership(): Leadership {
    return this.#leadership;
  }

  get position(): Position {
    return { lineage: this.#state.lineage, epoch: this.#leadership.epoch, index: this.#appender.head.index };
  }

  /** False once it has stopped, for whatever reason. */
  get isLeading(): boolean {
    return !this.#isStopped;
  }

  /** Front ends that are connected by a stream, the one in this process included. */
  get frontEnds(): number {
    return this.#reception.frontEnds;
  }

  /** The last committed entry. */
  get head(): LogPosition {
    return this.#appender.head;
  }

  /** So long nothing is granted yet; 0 = no wait. */
  get quietMs(): number {
    return this.#time.quietMs(this.#state.at);
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
    if (frame.behaviour !== undefined) this.#behaviour.said(this.#reception.behaviourLevels);
    if (this.#inbox.size > 0) this.#planTurn();
    else if (this.#awaitsCommit && !this.#isStopped) this.#pulse.hasten(this.#due());
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

  /** Has a snapshot written after the next commit, whatever the size of the log. */
  demandSnapshot(): void {
    this.#snapshots.demand();
  }

  /** From now on acquires, and new sessions if these too, are refused UNAVAILABLE with this text; null: they are taken again (rule L5). */
  refuseAcquires(why: string | null, sessionsToo = false): void {
    this.#reception.refuseAcquires(why, sessionsToo);
  }

  /** A read like any client's: answered after a commit that began after this call (rule S1). */
  read(query: ReadQuery): Promise<ReadResult> {
    return this.#inquiries.read(query);
  }

  /**
   * Hands over in order: finish what is in flight, say so in the log, give the leadership back. When nothing can be committed
   * it stops after a while all the same, and a successor has to wait until this leadership runs out. `successor`: who should lead next.
   */
  stop(successor?: string): Promise<void> {
    this.#stopping ??= this.#handOver(successor);
    return this.#stopping;
  }

  async #handOver(successor?: string): Promise<void> {
    if (this.#isStopped) return;
    const resigning = this.submit([{ type: 'resign', epoch: this.#leadership.epoch }]);
    const isResigned = await resigned(resigning, this.#runtime, () => {
      this.#appender.giveUp();
      this.#stopServing();
    });
    this.#stopServing();
    if (!isResigned) return;
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    const { logger } = this.#runtime;
    await giveBack(this.#options.log, this.#leadership, { logger, successor });
  }

  async #takeOver(birth: Birth): Promise<void> {
    const { reason } = this.#options;
    const tokenFloor = Math.max(this.#options.tokenFloor, birth.tokenFloor);
    const { epoch } = this.#leadership;
    const wallMs = this.#runtime.clock.wallMs();
    const isBirth = this.#appender.head.index === 0;
    const why = typeof reason === 'string' ? reason : reason();
    const takeOver = takeOverCommand({ epoch, wallMs, isBirth, tokenFloor, reason: why });
    await this.#inquiries.submitOwn(takeOver);
    this.#publisher.startLeases(this.#state, this.#nowMs());
    this.#arm();
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
    this.#stalled(this.#pulse.latenessMs(), now);
    const batch = this.#faults.takeRetry() ?? this.#inbox.take();
    strike(batch, this.#publisher.leases);
    // The verdict over silent sessions goes first; what has arrived from them has renewed their leases (rule S6).
    for (const command of verdicts(this.#publisher.leases, now)) prepend(batch, command);
    const isDue = nextDue(this.#state) <= this.#groupMs() || hasBacklog(this.#state);
    const hasWork = batch.commands.length > 0 || batch.reads.length > 0 || this.#awaitsCommit;
    // While nothing may be granted the time that has passed is kept in the log, for whoever leads next.
    const isBeatDue = isBeat && (this.#options.beatWhenIdle || this.quietMs > 0);
    if (hasWork || isDue || isBeatDue) this.#append(batch, now);
    else this.#arm();
  }

  #append(batch: Batch, startedMs: number): void {
    const keepalives = this.#publisher.takeKeepalives();
    const marks = this.#marks.take();
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
      this.#marks.giveBack(marks);
      this.#rebuild(batch, fault).catch((error: unknown) => this.#stopBecause({ kind: 'failed', error }));
      return;
    }
    assert(
      !this.#time.isQuietAt(draft.at) || applied.events.every(({ type }) => type !== 'granted'),
      'nothing is granted while holders of the lineage before may believe',
    );
    const commit = { draft, batch, applied, keepalives, marks, startedMs };
    this.#commit(commit).catch((error: unknown) => this.#stopBecause({ kind: 'failed', error }));
  }

  async #commit({ draft, batch, applied, keepalives, marks, startedMs }: Proposal): Promise<void> {
    const entry = { ...draft, wallMs: this.#runtime.clock.wallMs(), eventHash: this.#state.eventHash };
    const { outcome, bytes } = await this.#appender.append(entry);
    if (outcome === 'deposed') {
      this.#stopBecause({ kind: 'deposed' });
      return;
    }
    const proof = this.#marks.committed(this.#appender.head, marks);
    if (proof !== null) this.#halt(proof);
    if (this.#isHalted) {
      this.#isBusy = false;
      this.#whenIdle?.();
      return;
    }
    const now = this.#nowMs();
    this.#snapshots.appended(bytes);
    this.#stalled(now - startedMs, now);
    this.#recent.add(entry.index, applied.events);
    this.#publisher.publish(this.#state, { position: this.position, batch, applied, keepalives }, now);
    this.#reception.committed();
    const stats = {
      commands: batch.commands.length,
      bytes,
      commitMs: now - startedMs,
      stalledMs: this.#publisher.leases.takeStall(),
    };
    this.#options.onCommitted?.({ ...entry, events: applied.events }, stats);
    this.#next();
  }

  /** Rule S6: whoever was silent meanwhile is spared for a while, and a leader that stands still too often goes. */
  #stalled(forMs: number, nowMs: number): void {
    this.#publisher.leases.stalled(forMs, nowMs);
    this.#stalls.add(forMs, nowMs);
    const pauseMs = 2 * (this.#state.config?.ttlMsMax ?? TTL_MS_MAX);
    if (this.#isHandingOver || !this.#stalls.callForHandOver(nowMs, pauseMs)) return;
    this.#isHandingOver = this.#options.onOverstalled?.() === true;
  }

  /** Rule S10: serves no more from this moment on, and sees to it that nobody else does. */
  #halt(proof: RollBackProof): void {
    if (this.#isHalted) return;
    this.#isHalted = true;
    const wasStopped = this.#isStopped;
    this.#stopServing();
    this.#runtime.logger.error({ proof }, 'the log was rolled back; this group halts');
    writeProof(this.#options.log, this.#runtime.timers, proof).then(
      () => void (wasStopped || this.#options.onStopped({ kind: 'halted', proof })),
      (error: unknown) => void (wasStopped || this.#options.onStopped({ kind: 'failed', error })),
    );
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
    const { state, head } = await recoverPatiently(this.#options.log, this.#runtime, () => this.#isStopped);
    if (head.hash !== this.#appender.head.hash) {
      // Entries that this leader has not written: another one leads, and the log would say so at the next append (rule L1).
      this.#stopBecause({ kind: 'deposed' });
      return;
    }
    this.#state = state;
    const parts = { faults: this.#faults, publisher: this.#publisher, inbox: this.#inbox };
    leaveOut(batch, fault, { ...parts, position: this.position });
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
    this.#marks.stop();
    this.#inquiries.close();
  }

  /** Wakes up for the next beat, or for the timer that falls due before it. */
  #arm(): void {
    if (!this.#isStopped) this.#pulse.plan(this.#due());
  }

  /** What needs no command waits for a commit. */
  get #awaitsCommit(): boolean {
    return this.#publisher.hasKeepalives || this.#marks.isWaiting;
  }

  #due(): { readonly isBusyHour: boolean; readonly dueInMs: number } {
    return {
      // Sessions that are ending count: standbys cannot tell which of them still have a lease, and wait for beats as long as there are any.
      isBusyHour: this.#state.sessions.size > 0 || this.#awaitsCommit,
      dueInMs: nextDue(this.#state) - this.#groupMs(),
    };
  }

  #nowMs(): number {
    return this.#runtime.clock.monotonicMs();
  }

  #groupMs(): number {
    return this.#time.nowMs(this.#state.at);
  }
}
