/**
 * One leadership: how it begins, what comes to it from front ends and from inside the process, and how it ends. What it does in between,
 * entry by entry, is entry-loop.ts.
 */
import type { Command, CommandResult } from '../../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, TTL_MS_MAX } from '../../api/limits.ts';
import type { Position, ReadQuery, ReadResult, RelayFrame } from '../../api/wire.ts';
import type { State } from '../../core/index.ts';
import {
  type Birth,
  DeposedError,
  type Leadership,
  type LogPosition,
  type RollBackProof,
} from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { recover } from '../snapshots/recovery.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import { Behaviour } from './behaviour.ts';
import { EntryLoop, type Won } from './entry-loop.ts';
import { Faults } from './faults.ts';
import { Inbox } from './inbox.ts';
import { Inquiries } from './inquiries.ts';
import type { LeaderOptions, StopReason } from './leader-options.ts';
import { Marks } from './marks.ts';
import type { FrontEndLink } from './outbox.ts';
import { Publisher } from './publisher.ts';
import { RecentEvents } from './recent-events.ts';
import { Reception } from './reception.ts';
import { giveBack, resigned } from './resigned.ts';
import { refuseUnservable, writeProof } from './servable.ts';
import { Stalls } from './stalls.ts';
import { takeOverCommand } from './take-over.ts';

export class Leader {
  readonly #options: LeaderOptions;
  readonly #runtime: Runtime;
  readonly #leadership: Leadership;
  readonly #publisher = new Publisher(() => this.#marks.make(this.position));
  readonly #marks: Marks;
  readonly #stalls: Stalls;
  readonly #inquiries: Inquiries;
  readonly #snapshots: Snapshots;
  readonly #reception: Reception;
  readonly #behaviour: Behaviour;
  readonly #loop: EntryLoop;
  #isHandingOver = false;
  #stopping: Promise<void> | null = null;

  private constructor(options: LeaderOptions, won: Won, sealKey: string) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#leadership = won.leadership;
    const { runtime } = options;
    this.#stalls = new Stalls(this.#nowMs());
    this.#marks = this.#makeMarks(won, sealKey);
    this.#snapshots = this.#makeSnapshots(won);
    const parts = {
      inbox: new Inbox(),
      publisher: this.#publisher,
      faults: new Faults(runtime.logger),
      marks: this.#marks,
      recent: options.recent ?? new RecentEvents(),
      snapshots: this.#snapshots,
    };
    this.#loop = new EntryLoop(options, won, parts, {
      stalled: (forMs, nowMs) => this.#stalled(forMs, nowMs),
      published: () => this.#reception.committed(),
      rolledBack: (proof) => this.#halt(proof),
      ended: (reason) => this.#ended(reason),
    });
    this.#reception = new Reception(this.#loop, parts);
    this.#inquiries = new Inquiries({ ...parts, onAsked: () => this.#loop.arrived() });
    this.#behaviour = new Behaviour({
      logger: runtime.logger,
      replicas: options.replicas,
      current: () => this.state.behaviour,
      submit: (command) => this.#inquiries.submitOwn(command),
    });
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
    const won = { leadership, recovered, quietMs: birth.quietMs };
    const leader = new Leader(options, won, birth.sealKey);
    await leader.#takeOver(birth);
    if (options.replicas === 1) await leader.#behaviour.raise([BEHAVIOUR_LEVEL_MAX]);
    return leader;
  }

  /** For writes to the log beside the loop's own. */
  get leadership(): Leadership {
    return this.#leadership;
  }

  get position(): Position {
    return this.#loop.position;
  }

  /** False once it has stopped, for whatever reason. */
  get isLeading(): boolean {
    return this.#loop.isLeading;
  }

  /** Front ends that are connected by a stream, the one in this process included. */
  get frontEnds(): number {
    return this.#reception.frontEnds;
  }

  /** The last committed entry. */
  get head(): LogPosition {
    return this.#loop.head;
  }

  /** So long nothing is granted yet; 0 = no wait. */
  get quietMs(): number {
    return this.#loop.quietMs;
  }

  /** The state at the last commit or one entry ahead of it: for limits and figures, never for answers. */
  get state(): State {
    return this.#loop.state;
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
    this.#loop.arrived();
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
    if (!this.isLeading) return;
    const resigning = this.submit([{ type: 'resign', epoch: this.#leadership.epoch }]);
    const isResigned = await resigned(resigning, this.#runtime, () => {
      this.#loop.giveUp();
      this.#stopServing();
    });
    this.#stopServing();
    if (!isResigned) return;
    await this.#loop.idle();
    const { logger } = this.#runtime;
    await giveBack(this.#options.log, this.#leadership, { logger, successor });
  }

  async #takeOver(birth: Birth): Promise<void> {
    const { reason } = this.#options;
    const tokenFloor = Math.max(this.#options.tokenFloor, birth.tokenFloor);
    const { epoch } = this.#leadership;
    const wallMs = this.#runtime.clock.wallMs();
    const isBirth = this.head.index === 0;
    const why = typeof reason === 'string' ? reason : reason();
    const takeOver = takeOverCommand({ epoch, wallMs, isBirth, tokenFloor, reason: why });
    await this.#inquiries.submitOwn(takeOver);
    this.#publisher.startLeases(this.state, this.#nowMs());
    this.#loop.arm();
  }

  /** Rule S6: whoever was silent meanwhile is spared for a while, and a leader that stands still too often goes. */
  #stalled(forMs: number, nowMs: number): void {
    this.#publisher.leases.stalled(forMs, nowMs);
    this.#stalls.add(forMs, nowMs);
    const pauseMs = 2 * (this.state.config?.ttlMsMax ?? TTL_MS_MAX);
    if (this.#isHandingOver || !this.#stalls.callForHandOver(nowMs, pauseMs)) return;
    this.#isHandingOver = this.#options.onOverstalled?.() === true;
  }

  /** Rule S10: serves no more from this moment on, and sees to it that nobody else does. */
  #halt(proof: RollBackProof): void {
    if (this.#loop.isHalted) return;
    const wasStopped = !this.isLeading;
    this.#loop.halt();
    this.#stopServing();
    this.#runtime.logger.error({ proof }, 'the log was rolled back; this group halts');
    writeProof(this.#options.log, this.#runtime.timers, proof).then(
      () => void (wasStopped || this.#options.onStopped({ kind: 'halted', proof })),
      (error: unknown) => void (wasStopped || this.#options.onStopped({ kind: 'failed', error })),
    );
  }

  #ended(reason: StopReason): void {
    this.#stopServing();
    this.#options.onStopped(reason);
  }

  /** From now on nothing is appended, and whoever waits for an answer of ours is told. */
  #stopServing(): void {
    this.#loop.stop();
    this.#snapshots.stop();
    this.#marks.stop();
    this.#inquiries.close();
  }

  #makeMarks({ recovered }: Won, sealKey: string): Marks {
    const { runtime, log, serverId, onMark: onOutcome = () => undefined } = this.#options;
    const onProof = (proof: RollBackProof): void => this.#halt(proof);
    return new Marks({ runtime, log, serverId, sealKey, onOutcome, onProof }, recovered.head);
  }

  #makeSnapshots({ leadership, recovered: { snapshot, bytes } }: Won): Snapshots {
    const { runtime, log, snapshotDueBytes: dueBytes } = this.#options;
    return new Snapshots({
      ...{ runtime, log, leadership, logBytes: bytes, lastBytes: snapshot?.bytes ?? 0 },
      ...(dueBytes === undefined ? {} : { dueBytes }),
      standbys: () => this.#reception.standbys,
    });
  }

  #nowMs(): number {
    return this.#runtime.clock.monotonicMs();
  }
}
