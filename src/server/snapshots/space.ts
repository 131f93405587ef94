/**
 * Keeps the log within the quota of its storage (rule L5). From 70 % on it has snapshots written, the log trimmed and the storage
 * compacted at once; from 85 % on acquires are refused, and nothing else: whatever gives something back, or keeps it, goes on, and
 * what gives back is what makes room. Should the storage refuse all writes, nobody expires, because nothing can be committed
 * (rule S11), and space is made without the log's help.
 */
import { LogUnavailableError } from '../../log/errors.ts';
import type { LockLog, LogSpace } from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { Integrity } from './integrity.ts';

/** From here on space is made. */
export const TIGHT_SHARE = 0.7;
/** From here on acquires are refused. */
const REFUSE_SHARE = 0.85;
/** A file this full is about to make the storage refuse writes, however much of it is free. */
const REFUSE_FILE_SHARE = 0.95;
/** A log smaller than this is not worth a snapshot: what is full is something else. */
const WORTH_SHARE = 0.05;
/** How often it looks: one small call to each member. */
const LOOK_MS = 2_000;
/** It looks at once when so much of the quota has been appended since the last look. */
const LOOK_SHARE = 0.02;
/** Space is not made twice within this time. */
const RECLAIM_EVERY_MS = 10_000;

export interface SpacePlan {
  readonly refusesAcquires: boolean;
  /** Snapshot, then trim. */
  readonly snapshot: boolean;
  /** Compact, and what else the storage can do. */
  readonly reclaim: boolean;
}

/** `logBytes`: of the entries that two more snapshots let go. */
export function planSpace(
  { quotaBytes, usedBytes, fileBytes, isFull }: LogSpace,
  logBytes: number,
): SpacePlan {
  const used = usedBytes / quotaBytes;
  const file = fileBytes / quotaBytes;
  return {
    refusesAcquires: isFull || used >= REFUSE_SHARE || file >= REFUSE_FILE_SHARE,
    snapshot: used >= TIGHT_SHARE && logBytes >= WORTH_SHARE * quotaBytes,
    reclaim: isFull || used >= TIGHT_SHARE || file >= TIGHT_SHARE,
  };
}

/** What the leader of this process, if there is one, is told to do. */
export interface SpaceLeader {
  demandSnapshot(): void;
  /** Null: acquires are accepted again. */
  refuseAcquires(why: string | null, sessionsToo?: boolean): void;
}

export interface SpaceKeeperOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly leader: () => SpaceLeader | null;
}

export class SpaceKeeper {
  readonly #options: SpaceKeeperOptions;
  readonly #integrity: Integrity;
  #timer: Timer | null = null;
  #isStopped = false;
  #space: LogSpace | null = null;
  #isRefusing = false;
  #isReclaiming = false;
  #isLooking = false;
  #appendedBytes = 0;
  #reclaimedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SpaceKeeperOptions) {
    this.#options = options;
    this.#integrity = new Integrity(options);
    this.#plan(0);
  }

  /** As it was at the last look; null before the first, and where there is no quota. */
  get space(): LogSpace | null {
    return this.#space;
  }

  get isRefusing(): boolean {
    return this.#isRefusing;
  }

  /** Whether what the members of the storage hold can be trusted (case G16). */
  get integrity(): Pick<Integrity, 'problem' | 'members'> {
    return this.#integrity;
  }

  /** The leader of this process has appended an entry. */
  appended(bytes: number): void {
    this.#appendedBytes += bytes;
    const quotaBytes = this.#space?.quotaBytes ?? Number.POSITIVE_INFINITY;
    if (this.#appendedBytes < LOOK_SHARE * quotaBytes || this.#isLooking) return;
    this.#timer?.cancel();
    this.#lookAndPlan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #plan(delayMs = LOOK_MS): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.runtime.timers.after(delayMs, () => this.#lookAndPlan());
  }

  #lookAndPlan(): void {
    this.#isLooking = true;
    this.#appendedBytes = 0;
    void this.#look()
      .catch((error: unknown) => this.#failed(error))
      .then(() => {
        this.#isLooking = false;
        this.#plan();
      });
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return;
    const { logger } = this.#options.runtime;
    // While the log does not answer, that is told elsewhere.
    if (!(error instanceof LogUnavailableError)) logger.error({ error }, 'the space of the log is not known');
  }

  async #look(): Promise<void> {
    const { log } = this.#options;
    const space = await log.space();
    this.#space = space;
    if (space === null) return;
    const leader = this.#options.leader();
    this.#integrity.look(space, leader !== null);
    // First: when members contradict each other, the log may not answer what comes next.
    if (this.#integrity.problem !== null) leader?.refuseAcquires(this.#integrity.problem, true);
    const older = (await log.snapshots())[1];
    const plan = planSpace(space, await log.retainedBytes(older?.index));
    if (leader === null) {
      this.#isRefusing = false;
      // A standby leaves this to the leader, unless nobody can become one because writes are refused.
      if (space.isFull && (await log.leader()) === null) this.#reclaim(space);
      return;
    }
    this.#refuse(leader, space, plan.refusesAcquires);
    if (plan.snapshot) leader.demandSnapshot();
    if (plan.reclaim) this.#reclaim(space);
  }

  #refuse(leader: SpaceLeader, space: LogSpace, isRefusing: boolean): void {
    const { logger } = this.#options.runtime;
    const { problem } = this.#integrity;
    leader.refuseAcquires(problem ?? (isRefusing ? whyRefused(space) : null), problem !== null);
    if (isRefusing === this.#isRefusing) return;
    this.#isRefusing = isRefusing;
    const { quotaBytes, usedBytes, fileBytes } = space;
    const fields = { quotaBytes, usedBytes, fileBytes };
    if (isRefusing) logger.error(fields, 'the quota of the log is nearly used up: acquires are refused');
    else logger.info(fields, 'there is space in the log again: acquires are accepted');
  }

  /** In the background: it may take minutes, and looking goes on meanwhile. */
  #reclaim({ quotaBytes, usedBytes, fileBytes, isFull }: LogSpace): void {
    const { runtime, log } = this.#options;
    const now = runtime.clock.monotonicMs();
    if (this.#isReclaiming || (!isFull && now - this.#reclaimedAtMs < RECLAIM_EVERY_MS)) return;
    this.#isReclaiming = true;
    const fields = { quotaBytes, usedBytes, fileBytes };
    if (isFull) runtime.logger.error(fields, 'the storage refuses writes for want of space; space is made');
    log
      .reclaim()
      .catch((error: unknown) => runtime.logger.warn({ error }, 'no space could be made in the log'))
      .finally(() => {
        this.#isReclaiming = false;
        this.#reclaimedAtMs = runtime.clock.monotonicMs();
      });
  }
}

function whyRefused({ quotaBytes, usedBytes, fileBytes }: LogSpace): string {
  const mib = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;
  return (
    `the storage quota of this lock group is nearly used up (${mib(usedBytes)} in use, ${mib(fileBytes)} on disk, ` +
    `quota ${mib(quotaBytes)}): acquires are refused until there is space again; releases go on`
  );
}
