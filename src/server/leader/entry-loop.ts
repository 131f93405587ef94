/**
 * The leader's loop: everything that waits -> one entry -> apply -> append -> publish, then again. One append is in flight
 * at a time; what arrives meanwhile forms the next entry, which is group commit without a timer. No promise, JSON or log
 * line for a single operation in here.
 *
 * The state runs ahead of the log by the one entry in flight: `apply` comes before the append, so that a command that
 * throws never gets into the log (rule C13), and nothing is published before the commit (rule S1).
 */
import { FORMAT_VERSION } from '../../api/limits.ts';
import type { Position } from '../../api/wire.ts';
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
import type { Leadership, LogPosition, RollBackProof } from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Recovered } from '../snapshots/recovery.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import { Appender } from './appender.ts';
import type { Faults } from './faults.ts';
import { GroupTime } from './group-time.ts';
import { type Batch, type Inbox, prepend } from './inbox.ts';
import type { LeaderOptions, StopReason } from './leader-options.ts';
import { verdicts } from './leases.ts';
import type { Marks } from './marks.ts';
import type { Publisher } from './publisher.ts';
import { Pulse } from './pulse.ts';
import { leaveOut, recoverPatiently, strikeOut } from './rebuild.ts';
import type { RecentEvents } from './recent-events.ts';

/** What it works on and with. */
export interface LoopParts {
  readonly inbox: Inbox;
  readonly publisher: Publisher;
  readonly faults: Faults;
  readonly marks: Marks;
  readonly recent: RecentEvents;
  readonly snapshots: Snapshots;
}

/** What it tells the leadership of. */
export interface LoopListener {
  /** The loop or the commits stood still for so long, until now (rule S6). */
  stalled(forMs: number, nowMs: number): void;
  /** An entry is committed and published. */
  published(): void;
  /** A client's mark does not fit the log (rule S10): called before anything of that commit is published. */
  rolledBack(proof: RollBackProof): void;
  /** It cannot go on. */
  ended(reason: StopReason): void;
}

/** An entry that is applied and on its way to the log. */
interface Proposal {
  readonly draft: Draft;
  readonly batch: Batch;
  readonly applied: Applied;
  readonly keepalives: ReturnType<Publisher['takeKeepalives']>;
  readonly marks: ReturnType<Marks['take']>;
  readonly startedMs: number;
}

export class EntryLoop {
  readonly #options: LeaderOptions;
  readonly #runtime: Runtime;
  readonly #leadership: Leadership;
  readonly #parts: LoopParts;
  readonly #listener: LoopListener;
  readonly #appender: Appender;
  readonly #pulse: Pulse;
  readonly #time: GroupTime;
  #state: State;
  /** A roll-back is proven: nothing is published any more. */
  #isHalted = false;
  /** An append is in flight, or the state is being rebuilt. */
  #isBusy = false;
  #isTurnPlanned = false;
  #isStopped = false;
  #whenIdle: (() => void) | null = null;

  /** `quietMs`: group time before which nothing is granted. */
  constructor(
    options: LeaderOptions,
    { leadership, recovered, quietMs }: Won,
    parts: LoopParts,
    listener: LoopListener,
  ) {
    const { runtime, log } = options;
    this.#options = options;
    this.#runtime = runtime;
    this.#leadership = leadership;
    this.#parts = parts;
    this.#listener = listener;
    this.#state = recovered.state;
    this.#appender = new Appender(runtime, log, leadership, recovered.head);
    this.#time = new GroupTime(runtime.clock, recovered.state.at, quietMs);
    this.#pulse = new Pulse(runtime, () => this.#turn(true));
  }

  get position(): Position {
    return { lineage: this.#state.lineage, epoch: this.#leadership.epoch, index: this.#appender.head.index };
  }

  /** False once it has stopped, for whatever reason. */
  get isLeading(): boolean {
    return !this.#isStopped;
  }

  get isHalted(): boolean {
    return this.#isHalted;
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

  /** Something has arrived: in the inbox, or as what only waits for a commit. */
  arrived(): void {
    if (this.#parts.inbox.size > 0) this.#planTurn();
    else if (this.#awaitsCommit && !this.#isStopped) this.#pulse.hasten(this.#due());
  }

  /** Wakes up for the next beat, or for the timer that falls due before it. */
  arm(): void {
    if (!this.#isStopped) this.#pulse.plan(this.#due());
  }

  /** From now on nothing is appended. */
  stop(): void {
    this.#isStopped = true;
    this.#pulse.stop();
  }

  /** Nor is anything published any more, what is in flight included. */
  halt(): void {
    this.#isHalted = true;
    this.stop();
  }

  /** What is in flight is not sent again: its outcome stays unknown. */
  giveUp(): void {
    this.#appender.giveUp();
  }

  /** Resolves when nothing is in flight. */
  async idle(): Promise<void> {
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
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
    const { faults, inbox, publisher } = this.#parts;
    const now = this.#nowMs();
    this.#listener.stalled(this.#pulse.latenessMs(), now);
    const batch = faults.takeRetry() ?? inbox.take();
    strikeOut(batch, { ...this.#parts, position: this.position });
    // The verdict over silent sessions goes first; what has arrived from them has renewed their leases (rule S6).
    for (const command of verdicts(publisher.leases, now)) prepend(batch, command);
    const isDue = nextDue(this.#state) <= this.#groupMs() || hasBacklog(this.#state);
    const hasWork = batch.commands.length > 0 || batch.reads.length > 0 || this.#awaitsCommit;
    // While nothing may be granted the time that has passed is kept in the log, for whoever leads next.
    const isBeatDue = isBeat && (this.#options.beatWhenIdle || this.quietMs > 0);
    if (hasWork || isDue || isBeatDue) this.#append(batch, now);
    else this.arm();
  }

  #append(batch: Batch, startedMs: number): void {
    const { publisher } = this.#parts;
    const keepalives = publisher.takeKeepalives();
    const marks = this.#parts.marks.take();
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
      publisher.returnKeepalives(keepalives);
      this.#parts.marks.giveBack(marks);
      this.#rebuild(batch, fault).catch((error: unknown) => this.#end({ kind: 'failed', error }));
      return;
    }
    assert(
      !this.#time.isQuietAt(draft.at) || applied.events.every(({ type }) => type !== 'granted'),
      'nothing is granted while holders of the lineage before may believe',
    );
    const commit = { draft, batch, applied, keepalives, marks, startedMs };
    this.#commit(commit).catch((error: unknown) => this.#end({ kind: 'failed', error }));
  }

  async #commit({ draft, batch, applied, keepalives, marks, startedMs }: Proposal): Promise<void> {
    const entry = { ...draft, wallMs: this.#runtime.clock.wallMs(), eventHash: this.#state.eventHash };
    const { outcome, bytes } = await this.#appender.append(entry);
    if (outcome === 'deposed') {
      this.#end({ kind: 'deposed' });
      return;
    }
    const { publisher, recent, snapshots } = this.#parts;
    const proof = this.#parts.marks.committed(this.#appender.head, marks);
    if (proof !== null) this.#listener.rolledBack(proof);
    if (this.#isHalted) {
      this.#rest();
      return;
    }
    const now = this.#nowMs();
    snapshots.appended(bytes);
    this.#listener.stalled(now - startedMs, now);
    recent.add(entry.index, applied.events);
    publisher.publish(this.#state, { position: this.position, batch, applied, keepalives }, now);
    this.#listener.published();
    const stats = {
      commands: batch.commands.length,
      bytes,
      commitMs: now - startedMs,
      stalledMs: publisher.leases.takeStall(),
    };
    this.#options.onCommitted?.({ ...entry, events: applied.events }, stats);
    this.#next();
  }

  /** An entry is done: what came meanwhile makes the next one. */
  #next(): void {
    const { inbox, snapshots } = this.#parts;
    if (snapshots.isDue) {
      snapshots.write(this.#state, this.#appender.head).catch((error: unknown) => {
        this.#runtime.logger.error({ error }, 'snapshot failed; the log keeps growing');
      });
    }
    this.#rest();
    if (inbox.size > 0 || hasBacklog(this.#state)) this.#planTurn();
    this.arm();
  }

  /** The state threw and is unusable: make it again from the log, without what made it throw (rule C13). */
  async #rebuild(batch: Batch, fault: unknown): Promise<void> {
    if (!(fault instanceof CoreFault)) throw fault;
    const { state, head } = await recoverPatiently(this.#options.log, this.#runtime, () => this.#isStopped);
    if (head.hash !== this.#appender.head.hash) {
      // Entries that this leader has not written: another one leads, and the log would say so at the next append (rule L1).
      this.#end({ kind: 'deposed' });
      return;
    }
    this.#state = state;
    leaveOut(batch, fault, { ...this.#parts, position: this.position });
    this.#isBusy = false;
    this.#planTurn();
  }

  #end(reason: StopReason): void {
    this.#rest();
    if (!this.#isStopped) this.#listener.ended(reason);
  }

  /** Nothing is in flight any more. */
  #rest(): void {
    this.#isBusy = false;
    this.#whenIdle?.();
  }

  /** What needs no command waits for a commit. */
  get #awaitsCommit(): boolean {
    return this.#parts.publisher.hasKeepalives || this.#parts.marks.isWaiting;
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

/** The leadership that was won, and the log as it was then. */
export interface Won {
  readonly leadership: Leadership;
  readonly recovered: Recovered;
  readonly quietMs: number;
}
