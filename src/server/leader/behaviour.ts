/**
 * Which behaviour level a group may be at (rule C15): the highest that each of its replicas can apply. A replica of an older
 * program holds the level back, so two versions side by side never compute different states.
 */
import type { Command, RaiseBehaviour } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';
import type { Logger } from '../../platform/runtime.ts';

/**
 * The command that brings a group of so many replicas from `current` to what they support, by their reports; null: it is there, or a
 * replica is missing. One that does not report may be of any version, or about to come back as one.
 */
export function raiseTo(
  current: number,
  supported: readonly number[],
  replicas: number,
): RaiseBehaviour | null {
  assert(replicas >= 1, 'a group has at least one replica');
  if (supported.length < replicas) return null;
  const level = Math.min(...supported);
  assert(Number.isSafeInteger(level) && level >= 1, `a replica supports behaviour level ${level}`);
  return level > current ? { type: 'raiseBehaviour', level } : null;
}

export interface BehaviourOptions {
  readonly logger: Logger;
  readonly replicas: number;
  /** Of the state. */
  readonly current: () => number;
  /** Resolves after the commit. */
  readonly submit: (command: Command) => Promise<void>;
}

/** Has the level of the group raised as soon as it may be. */
export class Behaviour {
  readonly #options: BehaviourOptions;
  /** A higher level is on its way to the log. */
  #isRaising = false;

  constructor(options: BehaviourOptions) {
    this.#options = options;
  }

  /** A replica has said what it supports; these are the levels of all that have. */
  said(supported: readonly number[]): void {
    this.raise(supported).catch((error: unknown) =>
      this.#options.logger.warn({ error }, 'the behaviour level was not raised'),
    );
  }

  async raise(supported: readonly number[]): Promise<void> {
    const { logger, replicas, current, submit } = this.#options;
    const raise = raiseTo(current(), supported, replicas);
    if (raise === null || this.#isRaising) return;
    this.#isRaising = true;
    await submit(raise).finally(() => (this.#isRaising = false));
    logger.info({ behaviourLevel: raise.level }, 'all replicas support a higher behaviour level; raised');
  }
}
