/**
 * Whether the log is still the one that this replica opened, may be served, and has what this process has seen committed (rule S10). A
 * replica's own memory is a mark like a client's: it outlives a leadership and a standby, so it is kept apart from both.
 */
import { ok as assert } from 'node:assert';
import { HaltedError, type LockLog, type LogPosition, ReplacedError, TrimmedError } from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';

/** How much is read for a check. `head`: only as far as the log's head shows it. */
export type StandingDepth = 'head' | 'entry';

export class LogStanding {
  readonly #runtime: Runtime;
  readonly #log: LockLog;
  readonly #serverId: string;
  /** The newest entry that this process has seen committed. */
  #seen: LogPosition = { index: 0, hash: '' };

  constructor(runtime: Runtime, log: LockLog, serverId: string) {
    this.#runtime = runtime;
    this.#log = log;
    this.#serverId = serverId;
  }

  /** An entry that was seen committed; an older one than the newest says nothing more. */
  remember(head: LogPosition): void {
    if (head.index > this.#seen.index) this.#seen = head;
  }

  /** Halts the log when it lacks what was seen. @throws HaltedError, ReplacedError */
  async check(depth: StandingDepth): Promise<void> {
    const seen = this.#seen;
    const { lineage, head, halted } = await this.#log.standing();
    if (lineage !== this.#log.lineage) throw new ReplacedError();
    if (halted !== null) throw new HaltedError(halted);
    const found = await this.#hashAt(seen.index, head, depth);
    if (found === null || found === seen.hash) return;
    // Begun between the two reads: what stands there now says nothing of this life.
    if ((await this.#log.standing()).lineage !== lineage) throw new ReplacedError();
    assert(seen.index > 0, 'whoever has seen nothing proves nothing');
    const about = { lineage, seenBy: 'replica', seen, found, headIndex: head.index } as const;
    const proof = { ...about, serverId: this.#serverId, wallMs: this.#runtime.clock.wallMs() };
    await this.#log.halt(proof);
    throw new HaltedError(proof);
  }

  /** Empty: the log ends before it. Null: it cannot be told. */
  async #hashAt(index: number, head: LogPosition, depth: StandingDepth): Promise<string | null> {
    if (index === 0) return null;
    if (index > head.index) return '';
    if (index === head.index) return head.hash;
    if (depth === 'head') return null;
    try {
      return await this.#log.entryHash(index);
    } catch (error) {
      if (error instanceof TrimmedError) return null;
      throw error;
    }
  }
}
