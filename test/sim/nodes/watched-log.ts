/** The memory engine under the judge's eyes: what becomes durable, what is sent, who leads. */
import { MemoryLog, type MemoryLogFaults } from '../../../src/log/memory-log.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import type { AppendOutcome, Leadership, SnapshotManifest, StoredEntry } from '../../../src/log/port.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Life } from '../world/process.ts';
import { US_PER_MS } from '../world/world.ts';

/** An append that takes longer counts as a stall of the leader, which spares sessions for a while (rule S6). */
const STALL_MS = 400;

/** Tells the judge of every entry in the moment in which it becomes durable. */
export class WatchedStore extends MemoryStore {
  judge: GroupJudge | null = null;

  override append(leadership: Leadership, entry: StoredEntry): AppendOutcome {
    const before = this.head().index;
    const outcome = super.append(leadership, entry);
    if (this.head().index === before) return outcome;
    this.#fenced(leadership, 'append');
    this.judge?.durable(entry);
    return outcome;
  }

  override commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): void {
    super.commitSnapshot(leadership, manifest, keepFrom);
    this.#fenced(leadership, 'commit of a snapshot');
  }

  override trimStep(leadership: Leadership, upTo: number): boolean {
    const hasMore = super.trimStep(leadership, upTo);
    this.#fenced(leadership, 'trim');
    return hasMore;
  }

  override setAuditCursor(leadership: Leadership, index: number | null): void {
    super.setAuditCursor(leadership, index);
    this.#fenced(leadership, 'cursor of the audit');
    if (index !== null) this.judge?.audit.cursorAt(index);
  }

  /** Rules L1, L3, L4: what got through is of the leader in office. */
  #fenced({ epoch }: Leadership, what: string): void {
    const leader = super.leader()?.epoch ?? null;
    if (leader !== epoch) this.judge?.unfenced(what, epoch, leader);
  }
}

export interface LogWatch {
  readonly life: Life;
  readonly judge: GroupJudge;
  readonly onStall: (fromUs: number) => void;
}

/** Tells the judge when an entry is sent for the first time, and of appends that took long. */
export class WatchedLog extends MemoryLog {
  readonly watch: LogWatch;

  constructor(store: WatchedStore, faults: MemoryLogFaults, watch: LogWatch) {
    super(store, faults);
    this.watch = watch;
  }

  override async append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome> {
    const { judge, life, onStall } = this.watch;
    const { world } = life.process;
    const fromUs = world.nowUs;
    judge.built(life, entry);
    const outcome = await super.append(leadership, entry);
    if (world.nowUs - fromUs > STALL_MS * US_PER_MS) onStall(fromUs);
    return outcome;
  }

  override async campaign(serverId: string): Promise<Leadership> {
    const leadership = await super.campaign(serverId);
    this.watch.judge.epochLed(leadership.epoch, serverId);
    return leadership;
  }
}
