/**
 * How a group notices that its log was rolled back: clients keep marks, places that they have seen committed, and show them when they
 * connect; the leader compares them with the log it has (rule S10). What a leader knows by heart is compared before anything else of that
 * commit is published; older entries are asked for in the log, beside the loop.
 */
import { ok as assert } from 'node:assert';
import type { Mark, Position } from '../../api/wire.ts';
import { LogClosedError, LogUnavailableError } from '../../log/errors.ts';
import { type LockLog, type LogPosition, type RollBackProof, TrimmedError } from '../../log/port.ts';
import type { MarkOutcome } from '../../platform/metrics.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { RecentHashes } from './recent-hashes.ts';
import { Seals } from './seals.ts';

/** Marks that wait for a commit, and those that wait for the log. Every client shows one when it connects. */
const WAITING_MAX = 20_000;
/** Pause before the log is asked again. */
const RETRY_MS = 500;

export interface MarksOptions {
  readonly runtime: Runtime;
  readonly log: Pick<LockLog, 'lineage' | 'entryHash' | 'standing'>;
  readonly serverId: string;
  readonly sealKey: string;
  readonly onOutcome: (outcome: MarkOutcome) => void;
  /** Proven by an entry that had to be asked for. */
  readonly onProof: (proof: RollBackProof) => void;
}

export class Marks {
  readonly #options: MarksOptions;
  readonly #seals: Seals;
  readonly #recent = new RecentHashes();
  #shown: Mark[] = [];
  /** By index and hash: what many clients saw is asked for once. */
  readonly #toAsk = new Map<string, Mark>();
  #isAsking = false;
  #isStopped = false;
  #head: LogPosition;

  constructor(options: MarksOptions, head: LogPosition) {
    this.#options = options;
    this.#seals = new Seals(options.sealKey);
    this.#head = head;
    if (head.index > 0) this.#recent.add(head.index, head.hash);
  }

  /** Marks wait for a commit. */
  get isWaiting(): boolean {
    return this.#shown.length > 0;
  }

  /** The mark to give out for the last commit. */
  make({ lineage, epoch }: Position): Mark {
    return this.#seals.seal({ lineage, epoch, ...this.#head });
  }

  /** A client showed it, now. It is compared after the next commit that is first sent from now on. */
  show(mark: Mark): void {
    const { log, onOutcome } = this.#options;
    if (mark.lineage !== log.lineage) onOutcome('otherLineage');
    else if (!this.#seals.isGenuine(mark)) onOutcome('forged');
    else if (this.#shown.length >= WAITING_MAX) onOutcome('unchecked');
    else this.#shown.push(mark);
  }

  /** Those that have been shown by now. */
  take(): readonly Mark[] {
    const taken = this.#shown;
    this.#shown = [];
    return taken;
  }

  /** Their entry was not appended. */
  giveBack(taken: readonly Mark[]): void {
    this.#shown = [...taken, ...this.#shown];
  }

  /**
   * The entry at `head` is committed: compares the marks that were taken before it was sent. Returns the proof, if there is one already.
   */
  committed(head: LogPosition, marks: readonly Mark[]): RollBackProof | null {
    assert(head.index > this.#head.index, 'the head only moves upwards');
    this.#head = head;
    this.#recent.add(head.index, head.hash);
    for (const mark of marks) {
      const found = mark.index > head.index ? '' : this.#recent.at(mark.index);
      const proof = found === undefined ? null : this.#judge(mark, found);
      if (proof !== null) return proof;
      if (found === undefined) this.#askLater(mark);
    }
    return null;
  }

  stop(): void {
    this.#isStopped = true;
    this.#shown = [];
    this.#toAsk.clear();
  }

  /** `found`: hash of the entry there; empty: none. */
  #judge({ lineage, index, hash }: Mark, found: string): RollBackProof | null {
    const { runtime, serverId, onOutcome } = this.#options;
    if (found === hash) {
      onOutcome('matched');
      return null;
    }
    assert(index > this.#head.index === (found === ''), 'only above the head there is no entry');
    onOutcome('rolledBack');
    const seen = { index, hash };
    const wallMs = runtime.clock.wallMs();
    return { lineage, seenBy: 'client', seen, found, headIndex: this.#head.index, serverId, wallMs };
  }

  #askLater(mark: Mark): void {
    if (this.#toAsk.size >= WAITING_MAX) {
      this.#options.onOutcome('unchecked');
      return;
    }
    this.#toAsk.set(`${mark.index} ${mark.hash}`, mark);
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#ask().catch((error: unknown) => {
      this.#isAsking = false;
      if (error instanceof LogClosedError) return;
      this.#options.runtime.logger.error({ error }, 'marks of clients cannot be compared');
    });
  }

  /** One after the other, until none is left. */
  async #ask(): Promise<void> {
    for (const [key, mark] of this.#toAsk) {
      const found = await this.#hashAt(mark);
      if (this.#isStopped) return;
      this.#toAsk.delete(key);
      if (found === null) this.#options.onOutcome('trimmed');
      else {
        const proof = this.#judge(mark, found);
        if (proof !== null) this.#options.onProof(proof);
      }
    }
    this.#isAsking = false;
  }

  /** Null: it lies below the start of the log, or this life of the log is over: what stands there now says nothing of it. */
  async #hashAt({ index, hash }: Mark): Promise<string | null> {
    const { log } = this.#options;
    while (!this.#isStopped) {
      try {
        const found = (await log.entryHash(index)) ?? '';
        if (found === hash || (await log.standing()).lineage === log.lineage) return found;
        this.stop();
      } catch (error) {
        if (error instanceof TrimmedError) return null;
        if (!(error instanceof LogUnavailableError)) throw error;
      }
      await pause(this.#options.runtime.timers, RETRY_MS);
    }
    return null;
  }
}
