/**
 * acquire: what a session asks for. The order of the checks is the contract of README.md.
 */
import { MODES, type NamespaceConfig } from '../api/config.ts';
import type { Acquire, CommandResult, LockEvent } from '../api/entry.ts';
import {
  KEY_BYTES_MAX,
  KEYS_PER_GRANT_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../api/limits.ts';
import { nameProblem } from '../api/names.ts';
import { textProblem } from '../api/text.ts';
import { actingSession, invalid, type Refused, settle } from './answers.ts';
import { assert, unreachable } from './assert.ts';
import { grant, join, keyCount } from './holds.ts';
import { fitsNow, holdToJoin, policyRefusal, type Refusal } from './policy.ts';
import { enqueue, lockOf, refuse } from './queue.ts';
import type { Ended, KeyRecord, Lock, Session, State, Wait } from './state.ts';
import { viewHolder } from './views.ts';

/** The level at which shared and semaphore locks and re-entrant acquires came (rule C15). */
const ALL_MODES_LEVEL = 2;
/** A key's state until its request is decided, which is at once. */
const UNDECIDED: Ended = { kind: 'ended', by: 'INVALID', token: 0 };
/** A request is kept for as long as its key; what it settled, up to 16 KiB, is not, unless it is so little that a copy would cost more. */
const ACKS_KEPT_MAX = 4;
const NO_ACKS: readonly string[] = [];
const KEY_BOUNDS = { min: 1, max: KEY_BYTES_MAX } as const;
const OWNER_BOUNDS = { min: 0, max: OWNER_BYTES_MAX } as const;
const PURPOSE_BOUNDS = { min: 0, max: PURPOSE_BYTES_MAX } as const;

export function acquire(state: State, command: Acquire, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const known = session.keys.get(command.key);
  if (known !== undefined) return repeat(known, command);
  const problem = acquireProblem(state, session, command);
  if (problem !== null) return problem;

  const request = command.acks.length <= ACKS_KEPT_MAX ? command : { ...command, acks: NO_ACKS };
  const record: KeyRecord = { session, request, state: UNDECIDED, settled: false };
  session.keys.set(command.key, record);
  return answer(state, record, events);
}

/** What is wrong with the request itself: answered, but nothing is remembered of it. */
function acquireProblem(state: State, session: Session, command: Acquire): Refused | null {
  if (session.unsettled >= UNSETTLED_OUTCOMES_MAX) {
    return {
      type: 'refused',
      code: 'QUOTA_EXCEEDED',
      message: `the session has ${UNSETTLED_OUTCOMES_MAX} outcomes that it has not acknowledged`,
      limit: UNSETTLED_OUTCOMES_MAX,
    };
  }
  return wordProblem(command) ?? modeProblem(state, command);
}

function wordProblem({ name, key, owner, purpose }: Acquire): Refused | null {
  const problem = nameProblem(name);
  if (problem !== null) return invalid('name', problem);
  if (textProblem(key, KEY_BOUNDS) !== null) {
    return invalid('key', `the key must have 1 to ${KEY_BYTES_MAX} bytes`, KEY_BYTES_MAX);
  }
  if (textProblem(owner, OWNER_BOUNDS) !== null) {
    return invalid('owner', `the owner is longer than ${OWNER_BYTES_MAX} bytes`, OWNER_BYTES_MAX);
  }
  if (textProblem(purpose, PURPOSE_BOUNDS) !== null) {
    return invalid('purpose', `the purpose is longer than ${PURPOSE_BYTES_MAX} bytes`, PURPOSE_BYTES_MAX);
  }
  return null;
}

/** The behaviour level from which on this can be asked for (rule C15). */
export function levelOf({ mode, reentrant }: Pick<Acquire, 'mode' | 'reentrant'>): number {
  return mode === 'exclusive' && !reentrant ? 1 : ALL_MODES_LEVEL;
}

function modeProblem(state: State, { mode, permits, reentrant, waitMs }: Acquire): Refused | null {
  if (!MODES.includes(mode)) return invalid('mode', `the mode must be one of ${MODES.join(', ')}`);
  if (!Number.isSafeInteger(permits) || permits < 1 || permits > PERMITS_MAX) {
    return invalid('permits', `the permits must be 1 to ${PERMITS_MAX}`, PERMITS_MAX);
  }
  if (permits !== 1 && mode !== 'semaphore') {
    return invalid('permits', 'only a semaphore has more than one permit', 1);
  }
  if (!Number.isSafeInteger(waitMs) || waitMs < 0 || waitMs > WAIT_MS_MAX) {
    return invalid('wait_ms', `the wait must be 0 to ${WAIT_MS_MAX} ms`, WAIT_MS_MAX);
  }
  if (state.behaviour >= ALL_MODES_LEVEL) return null;
  if (mode !== 'exclusive') return invalid('mode', 'only exclusive locks are available yet');
  return reentrant ? invalid('reentrant', 're-entrancy is not available yet') : null;
}

/** Grants, queues or refuses a request that is in order; whatever it is told is remembered under its key (rule C5). */
function answer(state: State, record: KeyRecord, events: LockEvent[]): CommandResult {
  const { session, request } = record;
  const refusal = refusalOfName(state, session, request);
  if (refusal !== null) return refuseNow(record, refusal, events);
  const config = state.config as NamespaceConfig;
  const hold = holdToJoin(session, request);
  if (hold !== null) {
    if (keyCount(hold) >= KEYS_PER_GRANT_MAX) {
      return refuseNow(record, overLimit('keys that share one grant', KEYS_PER_GRANT_MAX), events);
    }
    join(state, record, hold, events, null);
    return { type: 'granted', token: hold.token };
  }
  if (session.holds.size + session.waits.size >= config.locksPerClient) {
    const what = 'locks held or waited for by this session';
    return refuseNow(record, overLimit(what, config.locksPerClient), events);
  }
  return take(state, config, record, events);
}

function refusalOfName(state: State, session: Session, request: Acquire): Refusal | null {
  const { config } = state;
  const refusal = policyRefusal(config, session, request);
  if (refusal !== null) return refusal;
  assert(config !== null, 'a request is allowed without a configuration');
  if (request.waitMs > config.maxWaitMs) {
    return {
      code: 'INVALID',
      field: 'wait_ms',
      message: `the namespace allows waits of at most ${config.maxWaitMs} ms`,
      limit: config.maxWaitMs,
    };
  }
  if (state.locks.get(request.name)?.quarantined === true) {
    return { code: 'QUARANTINED', message: 'the name is out of service until an administrator puts it back' };
  }
  return null;
}

function overLimit(what: string, limit: number): Refusal {
  return { code: 'QUOTA_EXCEEDED', message: `${what}: the limit is ${limit}`, limit };
}

function take(state: State, config: NamespaceConfig, record: KeyRecord, events: LockEvent[]): CommandResult {
  const { request } = record;
  const lock = state.locks.get(request.name);
  // Nobody overtakes who waits, even if there is room (rule C2).
  if (lock !== undefined && (lock.queue !== null || !fitsNow(config, lock, request))) {
    return waitFor(state, config, record, lock, events);
  }
  if (state.holds >= config.heldLocks) {
    return refuseNow(record, overLimit('locks held in this namespace', config.heldLocks), events);
  }
  const hold = grant(state, record, lock ?? lockOf(state, request.name), events, null);
  return { type: 'granted', token: hold.token };
}

function waitFor(
  state: State,
  config: NamespaceConfig,
  record: KeyRecord,
  lock: Lock,
  events: LockEvent[],
): CommandResult {
  const { request } = record;
  const full = queueRefusal(state, config, lock, request);
  if (full !== null) return refuseNow(record, full, events);
  const wait = enqueue(state, record, lock, request);
  const position = lock.queue?.size ?? 0;
  events.push({
    type: 'queued',
    name: lock.name,
    session: record.session.id,
    key: request.key,
    mode: request.mode,
    permits: request.permits,
    position,
    waitUntil: wait.due,
  });
  return { type: 'queued', position };
}

function queueRefusal(state: State, config: NamespaceConfig, lock: Lock, request: Acquire): Refusal | null {
  if (request.waitMs === 0) {
    return { code: 'HELD', message: whyNotNow(lock), ...standing(state, lock) };
  }
  const limit = config.maxWaitersPerName;
  if ((lock.queue?.size ?? 0) >= limit) {
    const message = `${limit} requests wait for this name already`;
    return { code: 'QUEUE_FULL', message, limit, ...standing(state, lock) };
  }
  if (state.waits >= config.waiters) {
    return {
      code: 'QUEUE_FULL',
      message: `${config.waiters} requests wait in this namespace already`,
      limit: config.waiters,
      ...standing(state, lock),
    };
  }
  return null;
}

function whyNotNow(lock: Lock): string {
  if (lock.hold !== null) return 'the lock is held';
  return lock.delay === null ? 'others wait for the lock' : 'the lock-delay of this name runs';
}

/** How things stand at a lock that could not be had. */
function standing(state: State, lock: Lock): Pick<Refusal, 'holder' | 'waiters' | 'lockDelayMs'> {
  return {
    holder: lock.hold === null ? null : viewHolder(state, lock.hold),
    waiters: lock.queue?.size ?? 0,
    lockDelayMs: lock.delay === null ? 0 : lock.delay.due - state.at,
  };
}

function refuseNow(record: KeyRecord, refusal: Refusal, events: LockEvent[]): CommandResult {
  refuse(record, refusal.code, events, false);
  return { type: 'refused', ...refusal };
}

/** A key seen before: answered from the state now, and nothing changes (rule C4). */
function repeat(record: KeyRecord, command: Acquire): CommandResult {
  const first = record.request;
  const same =
    first.name === command.name &&
    first.mode === command.mode &&
    first.permits === command.permits &&
    first.owner === command.owner &&
    first.reentrant === command.reentrant;
  if (!same) return invalid('key', 'this key was used for another request');
  const now = record.state;
  switch (now.kind) {
    case 'waiting':
      return { type: 'queued', position: positionOf(now) };
    case 'held':
      return { type: 'granted', token: now.token };
    case 'ended':
      return { type: 'ended', by: now.by, token: now.token };
    default:
      return unreachable(now);
  }
}

/** Place in the queue, from 1. */
function positionOf(wait: Wait): number {
  let position = 0;
  for (const other of wait.lock.queue ?? []) {
    position++;
    if (other === wait) return position;
  }
  assert(false, 'a wait is not in its queue');
}
