/**
 * Commands of the leader, the operator and administrators.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type {
  Break,
  CommandResult,
  Configure,
  LockEvent,
  Quarantine,
  RaiseBehaviour,
  ReportStale,
  TakeOver,
  Unquarantine,
} from '../api/entry.ts';
import {
  BEHAVIOUR_LEVEL_MAX,
  TOKEN_MAX,
  TOKEN_RAISE_MAX,
  TOKENS_PER_SECOND,
  UNIX_SECONDS_MAX,
} from '../api/limits.ts';
import { actingSession, DONE, invalid, notHeld } from './answers.ts';
import { assert } from './assert.ts';
import { joinToEnd, joinToServe, joinToStrip, lookAgain } from './backlog.ts';
import { canonicalJson } from './codec/commands.ts';
import { holdsOf, holdWithToken } from './crowd.ts';
import { endHold } from './ends.ts';
import { revoke } from './holds.ts';
import { isAlive, isForeign } from './policy.ts';
import { dequeue, dropIfIdle, lockOf, refuse } from './queue.ts';
import type { Session, State } from './state.ts';

/** Rule C11: versions only grow; existing grants keep mode and TTL. What must give way does so through the backlog. */
export function configure(state: State, command: Configure, events: LockEvent[]): CommandResult {
  if (command.version <= state.configVersion) {
    return invalid('version', `version ${state.configVersion} is in force already`, state.configVersion);
  }
  const before = state.config;
  state.configVersion = command.version;
  state.config = command.config;
  events.push({ type: 'configured', version: command.version });
  for (const session of state.sessions.values()) if (isForeign(state, session)) joinToStrip(state, session);
  for (const name of namesToServe(state, before)) joinToServe(state, name);
  return DONE;
}

/**
 * Names at whose queue something else may be possible now: permits were added or cut, or the head is not allowed any more and
 * would keep those behind it. In order of UTF-16 units.
 */
function namesToServe(state: State, before: NamespaceConfig | null): string[] {
  // The common case of a change: nothing about modes. It must not cost a look at a million locks.
  if (hasSameModes(before, state.config)) return [];
  const names: string[] = [];
  for (const { name, hold, queue } of state.locks.values()) {
    if (queue !== null || hold?.record.request.mode === 'semaphore') names.push(name);
  }
  return names.sort();
}

function hasSameModes(a: NamespaceConfig | null, b: NamespaceConfig | null): boolean {
  const modesOf = (config: NamespaceConfig | null): string =>
    canonicalJson([config?.modes ?? [], config?.semaphores ?? []]);
  return modesOf(a) === modesOf(b);
}

/**
 * A new leadership. Raises the token counter to what the wall clock allows (rule C12), so that even a log restored from
 * an old backup cannot hand out a token that somebody has seen.
 */
export function takeOver(state: State, command: TakeOver, events: LockEvent[]): CommandResult {
  assert(command.epoch === state.epoch, 'a take-over names another epoch than its entry');
  assert(
    command.tokenFloor === 0 || state.index === 1,
    'only the first entry of a log may set a token floor',
  );
  assert(command.tokenFloor <= TOKEN_MAX, 'the token floor is over 2^53');
  const before = state.lastToken;
  state.lastToken = Math.max(state.lastToken, command.tokenFloor);
  if (command.unixSeconds <= UNIX_SECONDS_MAX) {
    const raised = Math.min(command.unixSeconds * TOKENS_PER_SECOND, state.lastToken + TOKEN_RAISE_MAX);
    state.lastToken = Math.max(state.lastToken, Math.min(raised, TOKEN_MAX));
  }
  assert(state.lastToken >= before, 'the token counter goes back');
  events.push({ type: 'tookOver', epoch: command.epoch, token: state.lastToken, reason: command.reason });
  return DONE;
}

export function raiseBehaviour(state: State, command: RaiseBehaviour): CommandResult {
  if (command.level <= state.behaviour || command.level > BEHAVIOUR_LEVEL_MAX) {
    return invalid('level', `the level must be over ${state.behaviour} and at most ${BEHAVIOUR_LEVEL_MAX}`);
  }
  state.behaviour = command.level;
  return DONE;
}

/** Takes a grant away (rule C9). Refused when the holder has changed, since the reason was about another one. */
export function breakLock(state: State, command: Break, events: LockEvent[]): CommandResult {
  const lock = state.locks.get(command.name);
  const hold = lock === undefined ? null : holdWithToken(lock, command.token);
  if (hold === null) return notHeld(state, command.name, command.token);
  const grant = { name: command.name, session: hold.record.session.id, token: hold.token };
  const { now, reason, by } = command;
  events.push({ type: 'broken', ...grant, now, reason, by });
  if (now) {
    events.push({ type: 'revoked', ...grant, cause: 'break', unsafe: true });
    endHold(state, hold, 'REVOKED', true, events);
  } else {
    revoke(state, hold, 'break', events);
  }
  return DONE;
}

/** Takes a name out of service after a fault: nobody is granted it until `unquarantine` (rule C13). */
export function quarantine(state: State, command: Quarantine, events: LockEvent[]): CommandResult {
  const lock = lockOf(state, command.name);
  if (lock.quarantined) return DONE;
  lock.quarantined = true;
  // Its timers may be what failed, so none of them may fire again.
  if (lock.delay !== null) state.timers.cancel(lock.delay);
  lock.delay = null;
  for (const hold of holdsOf(lock)) state.timers.cancel(hold);
  events.push({ type: 'quarantined', name: command.name, reason: command.reason });
  for (const wait of [...(lock.queue ?? [])]) {
    dequeue(state, wait);
    refuse(wait.record, 'QUARANTINED', events, true);
  }
  assert(lock.queue === null, 'a quarantined name has waiters');
  return DONE;
}

export function unquarantine(state: State, command: Unquarantine, events: LockEvent[]): CommandResult {
  const lock = state.locks.get(command.name);
  if (lock === undefined || !lock.quarantined) return invalid('name', 'the name is not quarantined');
  lock.quarantined = false;
  events.push({ type: 'unquarantined', name: command.name, by: command.by });
  for (const hold of holdsOf(lock)) state.timers.set(hold, Math.max(state.at, hold.due));
  for (const hold of holdsOf(lock)) resumeSession(state, hold.record.session);
  joinToServe(state, lock.name);
  dropIfIdle(state, lock);
  return DONE;
}

/** What was left aside on account of the quarantine is work again. */
function resumeSession(state: State, session: Session): void {
  if (!isAlive(session)) joinToEnd(state, session);
  else if (isForeign(state, session)) joinToStrip(state, session);
  lookAgain(session.endItem);
  lookAgain(session.stripItem);
}

export function reportStale(state: State, command: ReportStale, events: LockEvent[]): CommandResult {
  const { session, name, token, resource } = command;
  const acting = session === 0 ? null : actingSession(state, session, null);
  if (acting !== null && 'type' in acting) return acting;
  events.push({ type: 'fencingRejected', name, session, token, resource });
  return DONE;
}
