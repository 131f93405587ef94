/**
 * What becomes of a replica when its log may be served no more (rule S10): rolled back, it stays and serves nothing; begun anew, another
 * replica has to take its place; damaged, it gives up. It looks every second, and whenever something failed, since what looks like damage may
 * be a log that was rolled back or begun anew.
 */
import { ok as assert } from 'node:assert';
import {
  HaltedError,
  type LockLog,
  type LogPosition,
  ReplacedError,
  type RollBackProof,
} from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { LogStanding, type StandingDepth } from './log-standing.ts';

const LOOK_MS = 1_000;

export interface LogFateOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  /** The newest entry that this replica knows to be committed. */
  readonly head: () => LogPosition | undefined;
  readonly onRolledBack: (proof: RollBackProof) => void;
  readonly onReplaced: () => void;
  readonly onGivenUp: (error: unknown) => void;
}

export class LogFate {
  readonly #options: LogFateOptions;
  readonly #standing: LogStanding;
  #halted: RollBackProof | null = null;
  #isReplaced = false;
  #isStopped = false;
  #timer: Timer | null = null;

  constructor(options: LogFateOptions) {
    const { runtime, log, serverId } = options;
    this.#options = options;
    this.#standing = new LogStanding(runtime, log, serverId);
  }

  /** The proof, if the log was rolled back. */
  get halted(): RollBackProof | null {
    return this.#halted;
  }

  /** Neither stopped nor at an end with this log. */
  get isOn(): boolean {
    return !this.#isStopped && !this.#isReplaced && this.#halted === null;
  }

  watch(): void {
    if (this.#isStopped || this.#isReplaced) return;
    this.#timer = this.#options.runtime.timers.after(LOOK_MS, () => {
      this.check('head')
        .catch((error: unknown) => {
          if (isVerdict(error)) this.failed(error);
        })
        .finally(() => this.watch());
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** @throws HaltedError, ReplacedError */
  check(depth: StandingDepth): Promise<void> {
    this.remember(this.#options.head());
    return this.#standing.check(depth);
  }

  /** Seen committed: a log without it was rolled back. */
  remember(head: LogPosition | undefined): void {
    if (head !== undefined) this.#standing.remember(head);
  }

  /** It cannot go on as it is. */
  failed(error: unknown): void {
    if (this.#isStopped || this.#isReplaced) return;
    if (error instanceof HaltedError) this.rolledBack(error.proof);
    else if (error instanceof ReplacedError) this.#replaced();
    else {
      this.check('entry').then(
        () => this.#giveUp(error),
        (found: unknown) => (isVerdict(found) ? this.failed(found) : this.#giveUp(error)),
      );
    }
  }

  rolledBack(proof: RollBackProof): void {
    if (this.#halted !== null) return;
    this.#halted = proof;
    assert(!this.isOn, 'a halted replica neither follows nor leads');
    this.#options.runtime.logger.error({ proof }, 'the log was rolled back; this replica serves nothing');
    this.#options.onRolledBack(proof);
  }

  #replaced(): void {
    this.#isReplaced = true;
    this.#options.runtime.logger.warn({}, 'a new lineage of the log has begun');
    this.#options.onReplaced();
  }

  #giveUp(error: unknown): void {
    if (!this.#isStopped) this.#options.onGivenUp(error);
  }
}

function isVerdict(error: unknown): error is HaltedError | ReplacedError {
  return error instanceof HaltedError || error instanceof ReplacedError;
}
