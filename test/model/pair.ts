/**
 * The state machine and the naive model side by side. Each entry goes through both; events, answers and state must be equal,
 * the invariants must hold, and the history checker must find nothing to object to.
 */
import type { NamespaceConfig } from '../../src/api/config.ts';
import type { Command, Entry, LockEvent } from '../../src/api/entry.ts';
import { FORMAT_VERSION } from '../../src/api/limits.ts';
import {
  apply,
  createState,
  type Draft,
  decodeEntry,
  encodeEntry,
  hasBacklog,
} from '../../src/core/index.ts';
import { SnapshotReader, writeSnapshot } from '../../src/core/snapshot.ts';
import type { Session, State } from '../../src/core/state.ts';
import { HistoryChecker } from '../../src/history/checker.ts';
import { NaiveModel, type NaiveView } from '../../src/history/naive-model.ts';
import { compareWithModel, sameValue } from '../../src/history/replay.ts';
import type { Violation } from '../../src/history/verdict.ts';
import { traceOf } from '../support/core.ts';
import { checkInvariants } from '../support/core-invariants.ts';
import type { PlannedEntry } from './generator.ts';

const LINEAGE = 'model';

export interface PairOptions {
  /** Apply what was read back from bytes instead of the entry itself. */
  readonly throughBytes: boolean;
  /** Go on from a snapshot of the state after every so many entries; 0 = never. */
  readonly snapshotEvery: number;
  /** Compare the whole state after every so many entries. */
  readonly viewEvery: number;
  /** Let the history checker judge as well: only for runs whose clients use each key for one request. */
  readonly checked: boolean;
  /** Kinds of events that came up. */
  readonly seen: Set<string>;
}

/** What is the leader's part, and random here: when a session has been silent too long. */
function isOfTheLeader({ property, excerpt }: Violation): boolean {
  return property === 'no-early-expiry' && excerpt.some(({ event }) => event.type === 'sessionEnding');
}

/** `kind` tells one mistake from another, so that shortening a run does not wander off to a different one. */
export class Disagreement extends Error {
  readonly kind: string;

  constructor(kind: string, message: string) {
    super(`${kind}: ${message}`);
    this.name = 'Disagreement';
    this.kind = kind;
  }
}

export class Pair {
  #state: State = createState(LINEAGE);
  readonly #model = new NaiveModel(LINEAGE);
  readonly #configs = new Map<number, NamespaceConfig | null>();
  readonly #checker: HistoryChecker | null;
  readonly #options: PairOptions;

  constructor(options: PairOptions) {
    this.#options = options;
    const judging = { configs: this.#configs, violationsMax: Number.POSITIVE_INFINITY };
    this.#checker = options.checked ? new HistoryChecker(judging) : null;
  }

  get state(): State {
    return this.#state;
  }

  /** Throws Disagreement. */
  entry({ afterMs, commands }: PlannedEntry): void {
    const draft = this.#draft(afterMs, commands);
    this.#rememberConfigs(commands);
    const { events, results } = this.#apply(draft);
    for (const event of events) this.#options.seen.add(kindOf(event));
    const difference = compareWithModel(this.#model, draft, events, results);
    if (difference !== null) throw new Disagreement(difference.what, difference.message);
    const { lineage, epoch, index, at } = draft;
    this.#checker?.entry({ lineage, epoch, index, at, wallMs: 0, eventHash: this.#state.eventHash, events });
    this.#expectQuietChecker();
    this.#compareStates(index);
    const { snapshotEvery } = this.#options;
    if (snapshotEvery > 0 && index % snapshotEvery === 0) this.#goOnFromSnapshot();
  }

  /** Ends every session and waits for every delay: nothing may be left. Throws Disagreement. */
  finish(): void {
    const names = [...this.#state.locks.values()].filter(({ quarantined }) => quarantined);
    const unquarantine = names.map(({ name }): Command => ({ type: 'unquarantine', name, by: 'end' }));
    const sessions = [...this.#state.sessions.keys()];
    this.entry({
      afterMs: 0,
      commands: [{ type: 'expireSessions', sessions, cause: 'expired' }, ...unquarantine],
    });
    for (let i = 0; i < 10_000 && this.#isBusy(); i++) {
      const due = this.#state.timers.first()?.due ?? this.#state.at;
      this.entry({ afterMs: hasBacklog(this.#state) ? 0 : due - this.#state.at, commands: [] });
    }
    const { sessions: left, locks, timers, holds, waits, revoking } = this.#state;
    const isEmpty = left.size + locks.size + timers.size + holds + waits + revoking === 0;
    if (!isEmpty) throw new Disagreement('end', `something remains:\n${traceOf(this.#state).join('\n')}`);
    this.#checker?.finish({ quiet: true, clientsGone: true });
    this.#expectQuietChecker();
  }

  #isBusy(): boolean {
    return hasBacklog(this.#state) || this.#state.timers.size > 0;
  }

  #draft(afterMs: number, commands: readonly Command[]): Draft {
    const { epoch, index, at } = this.#state;
    const [first] = commands;
    return {
      format: FORMAT_VERSION,
      behaviour: this.#state.behaviour,
      lineage: LINEAGE,
      epoch: first?.type === 'takeOver' ? first.epoch : epoch,
      index: index + 1,
      at: at + afterMs,
      commands,
    };
  }

  #apply(draft: Draft) {
    return attempt('core', draft.index, () =>
      apply(this.#state, this.#options.throughBytes ? throughBytes(draft) : draft),
    );
  }

  #rememberConfigs(commands: readonly Command[]): void {
    let version = this.#state.configVersion;
    for (const command of commands) {
      if (command.type !== 'configure' || command.version <= version) continue;
      version = command.version;
      this.#configs.set(version, command.config);
    }
  }

  #expectQuietChecker(): void {
    if (this.#checker === null || this.#checker.verdict().ok) return;
    const { violations } = this.#checker.verdict();
    const violation = violations.find((one) => !isOfTheLeader(one));
    if (violation !== undefined) {
      throw new Disagreement(`checker, ${violation.property}`, JSON.stringify(violation));
    }
  }

  #compareStates(index: number): void {
    attempt('invariant', index, () => checkInvariants(this.#state));
    if (hasBacklog(this.#state) !== this.#model.hasWork) {
      throw new Disagreement(
        'work',
        `entry ${index}: core and model disagree whether something is left to do`,
      );
    }
    if (index % this.#options.viewEvery !== 0) return;
    const core = viewOf(this.#state);
    const seen = this.#model.view();
    // The order in which names were quarantined means nothing.
    const naive = { ...seen, quarantined: seen.quarantined.toSorted() };
    for (const part of Object.keys(core) as (keyof NaiveView)[]) {
      if (sameValue(core[part], naive[part])) continue;
      const shown = `${JSON.stringify(core[part])}\n  naive model: ${JSON.stringify(naive[part])}`;
      throw new Disagreement(`state, ${part}`, `entry ${index}:\n  core: ${shown}`);
    }
  }

  #goOnFromSnapshot(): void {
    const reader = new SnapshotReader();
    for (const line of writeSnapshot(this.#state)) reader.line(line);
    const copy = reader.finish();
    if (!sameValue(traceOf(copy).toSorted(), traceOf(this.#state).toSorted())) {
      throw new Disagreement('snapshot', `entry ${this.#state.index}: read back it is another state`);
    }
    this.#state = copy;
  }
}

/** By what the rules treat differently. */
function kindOf(event: LockEvent): string {
  switch (event.type) {
    case 'granted': {
      const origin = event.fromQueue ? ' from the queue' : '';
      return event.joined ? `joined${origin}` : `granted ${event.mode}${origin}`;
    }
    case 'released':
    case 'cancelled':
      return event.remaining > 0 ? `${event.type}, others remain` : event.type;
    case 'revoking':
    case 'revoked':
      return `${event.type} ${event.cause}`;
    case 'refused':
      return `refused ${event.code}${event.fromQueue ? ' from the queue' : ''}`;
    default:
      return event.type;
  }
}

/** What is thrown here is a finding, and is shown with where it was thrown. */
function attempt<T>(kind: string, index: number, action: () => T): T {
  try {
    return action();
  } catch (error) {
    const shown = error instanceof Error ? error.stack : String(error);
    throw Object.assign(new Disagreement(kind, `entry ${index}: ${shown}`), { cause: error });
  }
}

function throughBytes(draft: Draft): Draft {
  const entry: Entry = { ...draft, previous: '', eventHash: '', wallMs: 0 };
  return decodeEntry(encodeEntry(entry).bytes);
}

/** The state of the core in the terms of the naive model. */
function viewOf(state: State): NaiveView {
  const holds = [...state.sessions.values()].flatMap((session) => [...session.holds.values()]);
  const queues = [...state.locks.values()].filter(({ queue }) => queue !== null);
  const firstSequence = ({ queue }: (typeof queues)[number]): number =>
    queue?.values().next().value?.sequence ?? 0;
  const delays = [...state.locks.values()].flatMap(({ delay }) => (delay === null ? [] : [delay]));
  return {
    held: holds
      .sort((a, b) => a.token - b.token)
      .map(({ lock, token, record, keys, revoking }) => ({
        name: lock.name,
        token,
        session: record.session.id,
        mode: record.request.mode,
        permits: record.request.permits,
        keys: (keys ?? [record]).map(({ request }) => request.key),
        revoking,
      })),
    queues: queues
      .sort((a, b) => firstSequence(a) - firstSequence(b))
      .map(({ name, queue }) => ({
        name,
        waits: [...(queue ?? [])].map(({ record, due }) => ({
          session: record.session.id,
          key: record.request.key,
          due,
        })),
      })),
    sessions: [...state.sessions.values()].map(viewOfSession),
    delayed: delays
      .sort((a, b) => a.sequence - b.sequence)
      .map(({ lock, due }) => ({ name: lock.name, until: due })),
    quarantined: [...state.locks.values()]
      .flatMap(({ name, quarantined }) => (quarantined ? [name] : []))
      .sort(),
    counter: state.lastToken,
    version: state.configVersion,
    timers: state.timers.size,
    behaviour: state.behaviour,
    backlog: state.backlog.map((item) =>
      item.kind === 'serve' ? `serve ${item.name}` : `${item.kind} ${item.session.id}`,
    ),
  };
}

function viewOfSession({ id, attach, ending, keys }: Session): NaiveView['sessions'][number] {
  return {
    id,
    attach,
    ending: ending !== null,
    keys: [...keys].map(([key, { state, settled }]) => ({ key, is: state.kind, settled })),
  };
}
