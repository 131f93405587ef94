/**
 * The commands with which a client asks for, gives back and takes back a lock: acquire, release, cancel.
 * The order of the checks is part of the contract (src/core/README.md), so it is spelled out, not shared.
 */
import { MODES } from '../../api/config.ts';
import type { Acquire, Cancel, CommandResult, HolderView, RefusalCode, Release } from '../../api/entry.ts';
import {
  KEY_BYTES_MAX,
  KEYS_PER_GRANT_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../../api/limits.ts';
import { nameProblem } from '../../api/names.ts';
import { utf8Length } from '../../api/text.ts';
import {
  endHold,
  endKey,
  fits,
  grant,
  grantOf,
  join,
  joinable,
  modeProblem,
  removeWait,
  serve,
} from './locks.ts';
import {
  aliveSession,
  forgetKey,
  holdsOf,
  holdsOfSession,
  isConsumer,
  isQuarantined,
  type NaiveHold,
  type NaiveKey,
  type NaiveSession,
  type NaiveState,
  permitsOf,
  queueOf,
  setTimer,
} from './state.ts';

type Refused = CommandResult & { type: 'refused' };

export function refused(
  code: Refused['code'],
  details: Pick<Refused, 'field' | 'limit' | 'waiters' | 'lockDelayMs'> & { holder?: HolderView | null } = {},
): Refused {
  return { type: 'refused', code, message: `naive model: ${code}`, ...details };
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
  if (isMalformed(command) || isAboveLevel(state, command)) return refused('INVALID');
  const { key, name, mode, permits, owner, reentrant, purpose } = command;
  const refusal = whyRefusedForGood(state, session, command);
  const body = { name, mode, permits, owner, reentrant };
  if (refusal !== null) {
    const by = refusal.code as RefusalCode;
    session.keys.push({ key, body, purpose, state: { is: 'ended', by, token: 0 }, settled: false });
    state.events.push({ type: 'refused', ...requestOf(command), code: by, fromQueue: false });
    return refusal;
  }
  session.keys.push({ key, body, purpose, state: { is: 'waiting' }, settled: false });
  const hold = joinable(state, session.id, command);
  if (hold !== undefined) return { type: 'granted', token: join(state, hold, key, null) };
  if (isGrantedAtOnce(state, command)) {
    return { type: 'granted', token: grant(state, session, key, null) };
  }
  return enqueue(state, command);
}

function isGrantedAtOnce(state: NaiveState, command: Acquire): boolean {
  return queueOf(state, command.name).length === 0 && fits(state, command);
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
    !MODES.includes(command.mode) ||
    !Number.isInteger(command.permits) ||
    command.permits < 1 ||
    command.permits > PERMITS_MAX ||
    (command.mode !== 'semaphore' && command.permits !== 1) ||
    !command.owner.isWellFormed() ||
    utf8Length(command.owner) > OWNER_BYTES_MAX ||
    !command.purpose.isWellFormed() ||
    utf8Length(command.purpose) > PURPOSE_BYTES_MAX ||
    !Number.isInteger(command.waitMs) ||
    command.waitMs < 0 ||
    command.waitMs > WAIT_MS_MAX
  );
}

/** Level 1 knows exclusive locks only (rule C15). */
function isAboveLevel(state: NaiveState, command: Acquire): boolean {
  return state.behaviour < 2 && (command.mode !== 'exclusive' || command.reentrant);
}

/** README "acquire" 5 to 7: refusals that are outcomes. Null: it joins, is granted or is queued. */
function whyRefusedForGood(state: NaiveState, session: NaiveSession, command: Acquire): Refused | null {
  const { config } = state;
  const { name } = command;
  if (config === null) return refused('NAMESPACE_NOT_FOUND');
  if (!isConsumer(config, session.identity)) return refused('FORBIDDEN');
  const problem = modeProblem(state, command);
  if (problem === 'mode') return refused('INVALID', { field: 'mode' });
  if (problem === 'permits') {
    return refused('INVALID', { field: 'permits', limit: permitsOf(config, name) ?? 0 });
  }
  if (command.waitMs > config.maxWaitMs) return refused('INVALID');
  if (isQuarantined(state, name)) return refused('QUARANTINED');
  const hold = joinable(state, session.id, command);
  if (hold !== undefined) return hold.keys.length >= KEYS_PER_GRANT_MAX ? refused('QUOTA_EXCEEDED') : null;
  const waits = state.waits.filter((wait) => wait.session === session.id);
  const inUse = holdsOfSession(state, session.id).length + waits.length;
  if (inUse >= config.locksPerClient) return refused('QUOTA_EXCEEDED');
  if (isGrantedAtOnce(state, command)) {
    return state.holds.length >= config.heldLocks ? refused('QUOTA_EXCEEDED') : null;
  }
  if (command.waitMs === 0) return refused('HELD', whoIsInTheWay(state, name));
  const isFull = queueOf(state, name).length >= config.maxWaitersPerName;
  if (isFull || state.waits.length >= config.waiters)
    return refused('QUEUE_FULL', whoIsInTheWay(state, name));
  return null;
}

/** README: the holder with the lowest token. */
function whoIsInTheWay(state: NaiveState, name: string) {
  const [hold] = holdsOf(state, name);
  const until = state.delays.find((other) => other.name === name)?.until ?? state.at;
  return {
    holder: hold === undefined ? null : holderView(state, hold),
    waiters: queueOf(state, name).length,
    lockDelayMs: until - state.at,
  };
}

function holderView(state: NaiveState, hold: NaiveHold): HolderView {
  const { session, owner, token, mode, permits, purpose, since, revoking } = hold;
  const client = state.sessions.find((other) => other.id === session)?.client ?? '';
  const heldForMs = state.at - since;
  return {
    session,
    client,
    owner,
    purpose,
    token,
    mode,
    permits,
    heldForMs,
    revoking: revoking?.cause ?? null,
  };
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
  const hold = holdsOf(state, command.name).find(
    ({ token, session }) => token === command.token && session === command.session,
  );
  if (hold === undefined) return notHeld(state, command.name, command.token);
  if (hold.reentrant && command.key === '') return refused('INVALID', { field: 'key' });
  if (hold.reentrant && !hold.keys.includes(command.key)) return refused('NOT_HELD');
  const key = hold.reentrant ? command.key : (hold.keys[0] ?? '');
  const remaining = hold.keys.length - 1;
  state.events.push({ type: 'released', ...grantOf(hold), cause: 'release', key, remaining });
  if (remaining > 0) {
    hold.keys = hold.keys.filter((other) => other !== key);
    endKey(state, hold, key, 'RELEASED');
  } else endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
  return { type: 'done' };
}

/** Rule C7: an older token changes nothing and is told so. */
export function notHeld(state: NaiveState, name: string, token: number): Refused {
  return refused(holdsOf(state, name).some((hold) => hold.token > token) ? 'STALE_TOKEN' : 'NOT_HELD');
}

export function cancel(state: NaiveState, command: Cancel): CommandResult {
  const speaking = speaker(state, command);
  if ('refusal' in speaking) return speaking.refusal;
  const { session } = speaking;
  settle(session, command.acks);
  const { key } = command;
  const record = session.keys.find((other) => other.key === key);
  if (record === undefined) return { type: 'done' };
  const { name } = record.body;
  const request = { name, session: session.id, key };
  const wait = state.waits.find((other) => other.session === session.id && other.key === key);
  const hold = state.holds.find((other) => other.session === session.id && other.keys.includes(key));
  if (wait !== undefined) {
    removeWait(state, wait);
    state.events.push({ type: 'cancelled', ...request, token: 0, remaining: 0 });
    serve(state, name);
  } else if (hold !== undefined) {
    const remaining = hold.keys.length - 1;
    state.events.push({ type: 'cancelled', ...request, token: hold.token, remaining });
    if (remaining > 0) hold.keys = hold.keys.filter((other) => other !== key);
    else endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
  }
  forgetKey(session, key);
  return { type: 'done' };
}
