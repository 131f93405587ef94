/**
 * The commands with which a client asks for, gives back and takes back a lock: acquire, release, cancel.
 * The order of the checks is part of the contract (src/core/README.md), so it is spelled out, not shared.
 */
import type { Acquire, Cancel, CommandResult, RefusalCode, Release } from '../../api/entry.ts';
import {
  KEY_BYTES_MAX,
  OWNER_BYTES_MAX,
  PURPOSE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../../api/limits.ts';
import { nameProblem, utf8Length } from '../../api/names.ts';
import { endHold, grant, grantOf, removeWait } from './locks.ts';
import {
  aliveSession,
  forgetKey,
  holdOf,
  isConsumer,
  isFree,
  isQuarantined,
  type NaiveKey,
  type NaiveSession,
  type NaiveState,
  queueOf,
  setTimer,
} from './state.ts';

type Refused = CommandResult & { type: 'refused' };

export function refused(code: Refused['code']): Refused {
  return { type: 'refused', code, message: `naive model: ${code}` };
}

/** The session a command speaks for, or why it may not (rules C10, S3). */
export function speaker(
  state: NaiveState,
  command: { readonly session: number; readonly attach: number },
): { readonly session: NaiveSession } | { readonly refusal: Refused } {
  const session = aliveSession(state, command.session);
  if (session === undefined) return { refusal: refused('SESSION_EXPIRED') };
  if (session.attach !== command.attach) return { refusal: refused('SUPERSEDED') };
  return { session };
}

/** Acks: held and ended keys become settled, settled ended ones are forgotten (rule C5). */
function settle(session: NaiveSession, acks: readonly string[]): void {
  for (const ack of acks) {
    const record = session.keys.find((other) => other.key === ack);
    if (record === undefined || record.state.is === 'waiting') continue;
    record.settled = true;
    if (record.state.is === 'ended') forgetKey(session, ack);
  }
}

export function acquire(state: NaiveState, command: Acquire): CommandResult {
  const speaking = speaker(state, command);
  if ('refusal' in speaking) return speaking.refusal;
  const { session } = speaking;
  settle(session, command.acks);
  const known = session.keys.find((other) => other.key === command.key);
  if (known !== undefined) return repeat(state, session, known, command);
  const unsettled = session.keys.filter((other) => other.state.is !== 'waiting' && !other.settled);
  if (unsettled.length >= UNSETTLED_OUTCOMES_MAX) return refused('QUOTA_EXCEEDED');
  if (isMalformed(command)) return refused('INVALID');
  const code = whyRefusedForGood(state, session, command);
  session.keys.push({
    key: command.key,
    body: {
      name: command.name,
      mode: command.mode,
      permits: command.permits,
      owner: command.owner,
      reentrant: command.reentrant,
    },
    state: code === null ? { is: 'waiting' } : { is: 'ended', by: code, token: 0 },
    settled: false,
  });
  if (code !== null) {
    state.events.push({ type: 'refused', ...requestOf(command), code, fromQueue: false });
    return refused(code);
  }
  if (isFree(state, command.name)) {
    return { type: 'granted', token: grant(state, session, command.key, null) };
  }
  return enqueue(state, command);
}

function requestOf(command: Acquire): { name: string; session: number; key: string } {
  return { name: command.name, session: command.session, key: command.key };
}

/** The key is known: answered from the state now, without an event (rule C4). */
function repeat(state: NaiveState, session: NaiveSession, known: NaiveKey, command: Acquire): CommandResult {
  const { body } = known;
  const same =
    body.name === command.name &&
    body.mode === command.mode &&
    body.permits === command.permits &&
    body.owner === command.owner &&
    body.reentrant === command.reentrant;
  if (!same) return refused('INVALID');
  switch (known.state.is) {
    case 'waiting':
      return { type: 'queued', position: positionOf(state, body.name, session.id, known.key) };
    case 'held':
      return { type: 'granted', token: known.state.token };
    case 'ended':
      return { type: 'ended', by: known.state.by, token: known.state.token };
  }
}

export function positionOf(state: NaiveState, name: string, session: number, key: string): number {
  return 1 + queueOf(state, name).findIndex((wait) => wait.session === session && wait.key === key);
}

function isMalformed(command: Acquire): boolean {
  const keyBytes = utf8Length(command.key);
  return (
    keyBytes < 1 ||
    keyBytes > KEY_BYTES_MAX ||
    !command.key.isWellFormed() ||
    nameProblem(command.name) !== null ||
    command.mode !== 'exclusive' ||
    command.permits !== 1 ||
    command.reentrant ||
    !command.owner.isWellFormed() ||
    utf8Length(command.owner) > OWNER_BYTES_MAX ||
    !command.purpose.isWellFormed() ||
    utf8Length(command.purpose) > PURPOSE_BYTES_MAX ||
    !Number.isInteger(command.waitMs) ||
    command.waitMs < 0 ||
    command.waitMs > WAIT_MS_MAX
  );
}

/** README "acquire" 5 to 7: refusals that are outcomes. Null: it is granted or queued. */
function whyRefusedForGood(state: NaiveState, session: NaiveSession, command: Acquire): RefusalCode | null {
  const { config } = state;
  if (config === null) return 'NAMESPACE_NOT_FOUND';
  if (!isConsumer(config, session.identity)) return 'FORBIDDEN';
  if (!config.modes.includes(command.mode)) return 'INVALID';
  if (command.waitMs > config.maxWaitMs) return 'INVALID';
  if (isQuarantined(state, command.name)) return 'QUARANTINED';
  const live = session.keys.filter((other) => other.state.is !== 'ended');
  if (live.length >= config.locksPerClient) return 'QUOTA_EXCEEDED';
  if (isFree(state, command.name)) return state.holds.length >= config.heldLocks ? 'QUOTA_EXCEEDED' : null;
  if (command.waitMs === 0) return 'HELD';
  if (queueOf(state, command.name).length >= config.maxWaitersPerName) return 'QUEUE_FULL';
  if (state.waits.length >= config.waiters) return 'QUEUE_FULL';
  return null;
}

function enqueue(state: NaiveState, command: Acquire): CommandResult {
  const { name, session, key } = command;
  const due = state.at + command.waitMs;
  state.waits.push({ name, session, key, queuedAt: state.at, due });
  setTimer(state, due, { of: 'wait', session, key });
  const position = positionOf(state, name, session, key);
  state.events.push({
    type: 'queued',
    ...requestOf(command),
    mode: command.mode,
    permits: command.permits,
    position,
    waitUntil: due,
  });
  return { type: 'queued', position };
}

export function release(state: NaiveState, command: Release): CommandResult {
  const speaking = speaker(state, command);
  if ('refusal' in speaking) return speaking.refusal;
  settle(speaking.session, command.acks);
  const hold = holdOf(state, command.name);
  if (hold?.token !== command.token || hold.session !== command.session) {
    return notHeld(state, command.name, command.token);
  }
  state.events.push({ type: 'released', ...grantOf(hold), cause: 'release' });
  endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
  return { type: 'done' };
}

/** Rule C7: an older token changes nothing and is told so. */
export function notHeld(state: NaiveState, name: string, token: number): Refused {
  const hold = holdOf(state, name);
  return refused(hold !== undefined && hold.token > token ? 'STALE_TOKEN' : 'NOT_HELD');
}

export function cancel(state: NaiveState, command: Cancel): CommandResult {
  const speaking = speaker(state, command);
  if ('refusal' in speaking) return speaking.refusal;
  const { session } = speaking;
  settle(session, command.acks);
  const record = session.keys.find((other) => other.key === command.key);
  if (record === undefined) return { type: 'done' };
  const request = { name: record.body.name, session: session.id, key: record.key };
  const wait = state.waits.find((other) => other.session === session.id && other.key === record.key);
  const hold = state.holds.find((other) => other.session === session.id && other.key === record.key);
  if (wait !== undefined) {
    removeWait(state, wait);
    state.events.push({ type: 'cancelled', ...request, token: 0 });
  } else if (hold !== undefined) {
    state.events.push({ type: 'cancelled', ...request, token: hold.token });
    endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
  }
  forgetKey(session, command.key);
  return { type: 'done' };
}
