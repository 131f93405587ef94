/**
 * The second model of the lock state machine: the text of src/core/README.md with plain lists and linear scans.
 * It shares nothing with src/core, so that a mistake in one of the two shows as a difference (see replay.ts).
 * Slow on purpose: some thousand commands a second on small states. It does not compute the event hash.
 */
import type { Mode } from '../api/config.ts';
import type { CommandResult, Entry, LockEvent, RevokeCause } from '../api/entry.ts';
import { FORMAT_VERSION, TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { applyCommand } from './naive/commands.ts';
import { fireTimers, workOnBacklog } from './naive/consequences.ts';
import { assert, dutyName, emptyState, type NaiveState } from './naive/state.ts';

export type NaiveEntry = Pick<
  Entry,
  'lineage' | 'epoch' | 'index' | 'at' | 'behaviour' | 'format' | 'commands'
>;

export interface NaiveOutcome {
  readonly events: LockEvent[];
  readonly results: CommandResult[];
}

/** A copy of the state for comparisons, every list in a fixed order. */
export interface NaiveView {
  /** By rising token. */
  readonly held: readonly {
    readonly name: string;
    readonly token: number;
    readonly session: number;
    readonly mode: Mode;
    readonly permits: number;
    readonly keys: readonly string[];
    readonly revoking: RevokeCause | null;
  }[];
  /** Names with waiters, in order of the first's queueing; each queue from its head. */
  readonly queues: readonly {
    readonly name: string;
    readonly waits: readonly { readonly session: number; readonly key: string; readonly due: number }[];
  }[];
  /** By rising id; keys in order of their acquires. */
  readonly sessions: readonly {
    readonly id: number;
    readonly attach: number;
    readonly ending: boolean;
    readonly keys: readonly {
      readonly key: string;
      readonly is: 'waiting' | 'held' | 'ended';
      readonly settled: boolean;
    }[];
  }[];
  readonly delayed: readonly { readonly name: string; readonly until: number }[];
  readonly quarantined: readonly string[];
  readonly counter: number;
  readonly version: number;
  readonly behaviour: number;
  /** How many are set. */
  readonly timers: number;
  /** What is still to be done, in its order: `end 3`, `strip 4`, `serve some/name`. */
  readonly backlog: readonly string[];
}

export class NaiveModel {
  readonly #state: NaiveState;

  constructor(lineage: string) {
    this.#state = emptyState(lineage);
  }

  /** Throws, and changes nothing, when the entry does not follow the last one (README, step 0). */
  apply(entry: NaiveEntry): NaiveOutcome {
    const state = this.#state;
    checkEntry(state, entry);
    state.index = entry.index;
    state.epoch = entry.epoch;
    state.at = entry.at;
    state.budget = TRANSITIONS_PER_ENTRY_MAX;
    state.events = [];
    const results: CommandResult[] = [];
    const commands = [...entry.commands];
    while (commands[0]?.type === 'quarantine') {
      results.push(applyCommand(state, commands[0]));
      commands.shift();
    }
    workOnBacklog(state);
    fireTimers(state);
    for (const command of commands) {
      results.push(applyCommand(state, command));
      workOnBacklog(state);
    }
    return { events: state.events, results };
  }

  /** True while something is left that the next entry carries on with: the leader then keeps appending (rule C1). */
  get hasWork(): boolean {
    const { backlog, timers, at } = this.#state;
    return backlog.length > 0 || timers.some((timer) => timer.due <= at);
  }

  /** The level that the next entry must name (rule C15). */
  get behaviour(): number {
    return this.#state.behaviour;
  }

  view(): NaiveView {
    const state = this.#state;
    const queued = [...new Set(state.waits.map((wait) => wait.name))];
    return {
      held: [...state.holds]
        .sort((a, b) => a.token - b.token)
        .map(({ name, token, session, mode, permits, keys, revoking }) => ({
          name,
          token,
          session,
          mode,
          permits,
          keys: [...keys],
          revoking: revoking?.cause ?? null,
        })),
      queues: queued.map((name) => ({
        name,
        waits: state.waits
          .filter((wait) => wait.name === name)
          .map(({ session, key, due }) => ({ session, key, due })),
      })),
      sessions: state.sessions.map((session) => ({
        id: session.id,
        attach: session.attach,
        ending: session.ending !== null,
        keys: session.keys.map(({ key, state: { is }, settled }) => ({ key, is, settled })),
      })),
      delayed: state.delays.map(({ name, until }) => ({ name, until })),
      quarantined: [...state.quarantined],
      counter: state.counter,
      version: state.version,
      behaviour: state.behaviour,
      timers: state.timers.length,
      backlog: state.backlog.map(dutyName),
    };
  }
}

function checkEntry(state: NaiveState, entry: NaiveEntry): void {
  assert(entry.lineage === state.lineage, 'the entry is of another lineage');
  assert(entry.index === state.index + 1, `entry ${entry.index} does not follow ${state.index}`);
  assert(entry.epoch >= state.epoch, 'the epoch went back');
  assert(
    entry.epoch === state.epoch ||
      entry.commands.find(({ type }) => type !== 'quarantine')?.type === 'takeOver',
    'a higher epoch without takeOver as its first command',
  );
  assert(entry.at >= state.at, 'group time went back');
  assert(entry.format === FORMAT_VERSION, `unknown format ${entry.format}`);
  assert(entry.behaviour === state.behaviour, `behaviour ${entry.behaviour} is not the state's`);
}
