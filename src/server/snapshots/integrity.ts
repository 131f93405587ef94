/**
 * Whether the members of the storage hold the same data (case G16). The storage's own alarm is heeded by every replica; the one that leads
 * compares the members as well, when it begins to lead, when a member comes back, and when an alarm is raised: whose data were changed
 * while it was down may raise none. While anything is wrong nothing new is granted. What is held can be kept and given back: a fenced commit is
 * still the decision of a majority, told by a member that agrees with it.
 */
import type { LockLog, LogSpace } from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';

export interface IntegrityOptions {
  readonly runtime: Runtime;
  readonly log: Pick<LockLog, 'compareMembers'>;
}

const RUNBOOK = 'docs/runbooks/corrupt.md';

export class Integrity {
  readonly #options: IntegrityOptions;
  /** As of the last look. */
  #alarmed: readonly string[] = [];
  #differing: readonly string[] = [];
  #answering = 0;
  #wasLeading = false;
  /** This replica has members that it does not ask, and must learn when they can be asked again. */
  #hasDiffered = false;
  /** They are to be compared; stays so until they could be. */
  #isDue = false;
  #isComparing = false;

  constructor(options: IntegrityOptions) {
    this.#options = options;
  }

  /** Members that are corrupt or differ. */
  get members(): readonly string[] {
    return [...new Set([...this.#alarmed, ...this.#differing])];
  }

  /** In words, for whoever is refused and for operators; null: nothing is known to be wrong. */
  get problem(): string | null {
    if (this.#alarmed.length > 0) {
      const differing =
        this.#differing.length > 0 ? `; those that differ: ${this.#differing.join(', ')}` : '';
      return (
        `the storage has raised the alarm CORRUPT for ${this.#alarmed.join(', ')}${differing} and refuses all writes: ` +
        `nothing is granted and nothing expires until an operator has replaced what is corrupt and cleared the alarm (${RUNBOOK})`
      );
    }
    if (this.#differing.length === 0) return null;
    return (
      `a member of the storage holds other data than the rest (${this.#differing.join(', ')}): nothing new is granted ` +
      `until it is stopped or replaced; keepalives and releases go on while a majority agrees (${RUNBOOK})`
    );
  }

  /** Told what the members have just said of themselves. */
  look({ answering, corrupt }: Pick<LogSpace, 'answering' | 'corrupt'>, isLeading: boolean): void {
    const isNewAlarm = corrupt.some((member) => !this.#alarmed.includes(member));
    this.#isDue ||= (isLeading && !this.#wasLeading) || answering > this.#answering || isNewAlarm;
    const isCompared = (this.#isDue && (isLeading || this.#hasDiffered)) || this.#differing.length > 0;
    if (isNewAlarm || corrupt.length < this.#alarmed.length) this.#sayAlarm(corrupt);
    this.#alarmed = corrupt;
    this.#answering = answering;
    this.#wasLeading = isLeading;
    if (isCompared && !this.#isComparing) this.#compare();
  }

  /** In the background: the members read all that they hold. */
  #compare(): void {
    const { runtime, log } = this.#options;
    this.#isComparing = true;
    log
      .compareMembers()
      .then(
        (differing) => this.#compared(differing),
        (error: unknown) =>
          runtime.logger.warn({ error }, 'the members of the storage could not be compared'),
      )
      .finally(() => {
        this.#isComparing = false;
      });
  }

  #compared(differing: readonly string[] | null): void {
    if (differing === null) return;
    this.#isDue = false;
    this.#hasDiffered ||= differing.length > 0;
    const { logger } = this.#options.runtime;
    if (differing.length > 0 && this.#differing.length === 0)
      logger.error({ members: differing }, 'members of the storage differ: acquires are refused');
    if (differing.length === 0 && this.#differing.length > 0)
      logger.info({}, 'the members of the storage that answer agree again');
    this.#differing = differing;
  }

  #sayAlarm(corrupt: readonly string[]): void {
    const { logger } = this.#options.runtime;
    if (corrupt.length > 0)
      logger.error({ members: corrupt }, 'the storage has raised the alarm CORRUPT: acquires are refused');
    else logger.info({}, 'the alarm CORRUPT of the storage is cleared');
  }
}
