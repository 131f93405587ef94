/**
 * Commands of the leader, the operator and administrators.
 */
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
import { actingSession, DONE, invalid, notHeld } from './acquire.ts';
import { assert } from './assert.ts';
import { stripForeignSessions } from './sessions.ts';
import type { State } from './state.ts';
import { dequeue, endHold, grantNext, lockOf, refuse, revoke } from './transitions.ts';

/** Rule C11: versions only grow; existing grants keep mode and TTL. */
export function configure(state: State, command: Configure, events: LockEvent[]): CommandResult {
  if (command.version <= state.configVersion) {
    return invalid('version', `version ${state.configVersion} is in force already`, state.configVersion);
  }
  state.configVersion = command.version;
  state.config = command.config;
  events.push({ type: 'configured', version: command.version });
  stripForeignSessions(state);
  return DONE;
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
  const hold = state.locks.get(command.name)?.hold ?? null;
  if (hold === null || hold.token !== command.token) return notHeld(state, command.name, command.token);
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
  if (lock.hold !== null) state.timers.cancel(lock.hold);
  events.push({ type: 'quarantined', name: command.name, reason: command.reason });
  for (const wait of [...(lock.queue ?? [])]) {
    dequeue(state, wait);
    refuse(wait.record, lock.name, 'QUARANTINED', events, true);
  }
  assert(lock.queue === null, 'a quarantined name has waiters');
  return DONE;
}

export function unquarantine(state: State, command: Unquarantine, events: LockEvent[]): CommandResult {
  const lock = state.locks.get(command.name);
  if (lock === undefined || !lock.quarantined) return invalid('name', 'the name is not quarantined');
  lock.quarantined = false;
  events.push({ type: 'unquarantined', name: command.name, by: command.by });
  if (lock.hold !== null) state.timers.set(lock.hold, Math.max(state.at, lock.hold.due));
  grantNext(state, lock, events);
  return DONE;
}

export function reportStale(state: State, command: ReportStale, events: LockEvent[]): CommandResult {
  const { session, name, token, resource } = command;
  const acting = session === 0 ? null : actingSession(state, session, null);
  if (acting !== null && 'type' in acting) return acting;
  events.push({ type: 'fencingRejected', name, session, token, resource });
  return DONE;
}
