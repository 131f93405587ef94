/**
 * `apply`: one entry in, events and answers out. The order of the steps is the contract of README.md.
 */
import type { Command, CommandResult, Entry, LockEvent } from '../api/entry.ts';
import { FORMAT_VERSION, TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { acquire } from './acquire.ts';
import {
  breakLock,
  configure,
  quarantine,
  raiseBehaviour,
  reportStale,
  takeOver,
  unquarantine,
} from './admin.ts';
import { DONE } from './answers.ts';
import { assert, CoreFault, type FaultStep, unreachable } from './assert.ts';
import { type Work, workOffBacklog } from './backlog-steps.ts';
import { chainEvents } from './codec/entry.ts';
import { endHold } from './ends.ts';
import { revoke } from './holds.ts';
import { dropWait, serve } from './queue.ts';
import { cancel, release } from './release.ts';
import { attach, closeSession, expireSessions, openSession } from './sessions.ts';
import type { Hold, State, TimerNode } from './state.ts';

export interface Applied {
  readonly events: LockEvent[];
  /** One for each command, in their order. */
  readonly results: CommandResult[];
}

/** An entry before its hashes are known: what a leader is about to append. */
export type Draft = Omit<Entry, 'previous' | 'eventHash' | 'wallMs'>;

/**
 * Lets a test break the machine on purpose at a chosen step (rule C13); production passes none.
 */
export interface FaultProbe {
  beforeCommand?(command: Command): void;
  beforeConsequence?(name: string): void;
}

/** Whether the next entry has consequences to carry on with, so that the leader keeps appending (rule C1). */
export function hasBacklog(state: State): boolean {
  const first = state.timers.first();
  return state.backlog.length > 0 || (first !== undefined && first.due <= state.at);
}

/** Group time at which the next timer falls due; Infinity when none is set. */
export function nextDue(state: State): number {
  return state.timers.first()?.due ?? Number.POSITIVE_INFINITY;
}

/**
 * Changes `state` by one entry. Throws CoreFault, and leaves the state unusable, when the entry does not fit the state or
 * an assertion fails. `state.eventHash` is the entry's event hash afterwards.
 */
export function apply(state: State, entry: Draft, probe?: FaultProbe): Applied {
  const run = new Run(state, entry, probe);
  try {
    run.all();
  } catch (error) {
    throw new CoreFault(run.step, { cause: error });
  }
  return { events: run.events, results: run.results };
}

const AT_ENTRY: FaultStep = { kind: 'entry' };

/** One application: what the steps of an entry share. */
class Run implements Work {
  readonly state: State;
  readonly events: LockEvent[] = [];
  readonly results: CommandResult[] = [];
  step: FaultStep = AT_ENTRY;
  budget = TRANSITIONS_PER_ENTRY_MAX;
  readonly #entry: Draft;
  readonly #probe: FaultProbe | undefined;

  constructor(state: State, entry: Draft, probe: FaultProbe | undefined) {
    this.state = state;
    this.#entry = entry;
    this.#probe = probe;
  }

  all(): void {
    const { commands } = this.#entry;
    this.#begin();
    let next = 0;
    while (commands[next]?.type === 'quarantine') this.#command(commands[next] as Command, next++);
    this.#backlog();
    this.#timers();
    for (; next < commands.length; next++) {
      this.#command(commands[next] as Command, next);
      this.#backlog();
    }
    this.step = AT_ENTRY;
    this.state.eventHash = chainEvents(this.state.eventHash, this.events);
  }

  #begin(): void {
    const { state } = this;
    const entry = this.#entry;
    assert(entry.format === FORMAT_VERSION, `entry format ${entry.format} is unknown`);
    assert(entry.behaviour === state.behaviour, `behaviour level ${entry.behaviour} is not the one in force`);
    assert(entry.lineage === state.lineage, 'the entry belongs to another lineage');
    assert(entry.index === state.index + 1, `entry ${entry.index} does not follow ${state.index}`);
    const isTakeOver = entry.commands.find(({ type }) => type !== 'quarantine')?.type === 'takeOver';
    assert(
      entry.epoch === state.epoch || (entry.epoch > state.epoch && isTakeOver),
      'the epoch does not fit',
    );
    assert(Number.isSafeInteger(entry.at) && entry.at >= state.at, 'group time goes back');
    state.epoch = entry.epoch;
    state.index = entry.index;
    state.at = entry.at;
  }

  about(name: string | null): void {
    this.step = name === null ? AT_ENTRY : { kind: 'consequence', name };
  }

  consequence(name: string): void {
    this.about(name);
    this.#probe?.beforeConsequence?.(name);
  }

  #backlog(): void {
    if (this.state.backlog.length > 0) workOffBacklog(this);
  }

  #timers(): void {
    const { timers, at } = this.state;
    for (; this.budget > 0; this.budget--) {
      this.about(null);
      const node = timers.first();
      if (node === undefined || node.due > at) return;
      this.consequence(node.lock.name);
      timers.cancel(node);
      fire(this.state, node, this.events);
    }
  }

  #command(command: Command, position: number): void {
    this.step = { kind: 'command', position };
    this.#probe?.beforeCommand?.(command);
    this.results.push(execute(this.state, command, this.events));
  }
}

function fire(state: State, node: TimerNode, events: LockEvent[]): void {
  const { lock } = node;
  switch (node.kind) {
    case 'waiting':
      dropWait(state, node, 'WAIT_TIMEOUT', events);
      return;
    case 'delay':
      assert(lock.delay === node, 'a lock-delay ends that its lock does not know');
      lock.delay = null;
      serve(state, lock, events);
      return;
    case 'held':
      fireHold(state, node, events);
      return;
    default:
      unreachable(node);
  }
}

/** Max hold is over: the revoke starts. The revoke is over: the grant ends. */
function fireHold(state: State, hold: Hold, events: LockEvent[]): void {
  if (hold.revoking === null) {
    revoke(state, hold, 'maxHold', events);
    return;
  }
  const { lock, token, revoking } = hold;
  const session = hold.record.session.id;
  events.push({ type: 'revoked', name: lock.name, session, token, cause: revoking, unsafe: false });
  endHold(state, hold, 'REVOKED', false, events);
}

function execute(state: State, command: Command, events: LockEvent[]): CommandResult {
  switch (command.type) {
    case 'acquire':
      return acquire(state, command, events);
    case 'release':
      return release(state, command, events);
    case 'cancel':
      return cancel(state, command, events);
    case 'openSession':
      return openSession(state, command, events);
    case 'attach':
      return attach(state, command);
    case 'closeSession':
      return closeSession(state, command, events);
    case 'expireSessions':
      return expireSessions(state, command, events);
    case 'configure':
      return configure(state, command, events);
    case 'break':
      return breakLock(state, command, events);
    case 'takeOver':
      return takeOver(state, command, events);
    case 'resign':
      return DONE;
    case 'raiseBehaviour':
      return raiseBehaviour(state, command);
    case 'quarantine':
      return quarantine(state, command, events);
    case 'unquarantine':
      return unquarantine(state, command, events);
    case 'reportStale':
      return reportStale(state, command, events);
    default:
      return unreachable(command);
  }
}
