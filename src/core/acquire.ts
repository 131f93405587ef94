/**
 * acquire, release, cancel: what a session asks about one name. The order of the checks is the contract of README.md.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type {
  Acquire,
  Cancel,
  CommandResult,
  HolderView,
  LockEvent,
  RefusalCode,
  Release,
} from '../api/entry.ts';
import {
  KEY_BYTES_MAX,
  OWNER_BYTES_MAX,
  PURPOSE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../api/limits.ts';
import { nameProblem, utf8Length } from '../api/names.ts';
import { assert, unreachable } from './assert.ts';
import type { KeyRecord, Lock, Session, State, Wait } from './state.ts';
import {
  dequeue,
  endHold,
  enqueue,
  grant,
  isAlive,
  isConsumer,
  isFree,
  lockOf,
  refuse,
} from './transitions.ts';
import { viewHolder } from './views.ts';

type Refused = Extract<CommandResult, { type: 'refused' }>;

export const DONE: CommandResult = { type: 'done' };
const SESSION_EXPIRED: Refused = {
  type: 'refused',
  code: 'SESSION_EXPIRED',
  message: 'the session is unknown or has ended',
};
const SUPERSEDED: Refused = {
  type: 'refused',
  code: 'SUPERSEDED',
  message: 'the session has been attached again since',
};

export function invalid(field: string, message: string, limit?: number): Refused {
  return { type: 'refused', code: 'INVALID', field, message, ...(limit === undefined ? {} : { limit }) };
}

/** The session a command may act for, or why it may not (rules C10, S3). */
export function actingSession(state: State, id: number, attach: number | null): Session | Refused {
  const session = state.sessions.get(id);
  if (session === undefined || !isAlive(session)) return SESSION_EXPIRED;
  if (attach !== null && attach !== session.attach) return SUPERSEDED;
  return session;
}

/** The client has seen these outcomes; what is over can be forgotten (rule C5). */
function settle(session: Session, acks: readonly string[]): void {
  for (let i = 0; i < acks.length; i++) {
    const record = session.keys.get(acks[i] as string);
    if (record === undefined || record.settled || record.state.kind === 'waiting') continue;
    record.settled = true;
    session.unsettled--;
    if (record.state.kind === 'ended') session.keys.delete(record.request.key);
  }
  assert(session.unsettled >= 0, 'more outcomes were settled than there are');
}

export function acquire(state: State, command: Acquire, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const known = session.keys.get(command.key);
  if (known !== undefined) return repeat(known, command);
  const problem = acquireProblem(session, command);
  if (problem !== null) return problem;

  const record: KeyRecord = {
    session,
    request: command,
    state: { kind: 'ended', by: 'INVALID', token: 0 },
    settled: false,
  };
  session.keys.set(command.key, record);
  const refusal = refusalBeforeLock(state, session, command);
  return refusal === null ? take(state, record, events) : refuseNow(record, refusal, events);
}

/** What is wrong with the request itself: answered, but nothing is remembered of it. */
function acquireProblem(session: Session, command: Acquire): Refused | null {
  if (session.unsettled >= UNSETTLED_OUTCOMES_MAX) {
    return {
      type: 'refused',
      code: 'QUOTA_EXCEEDED',
      message: `the session has ${UNSETTLED_OUTCOMES_MAX} outcomes that it has not acknowledged`,
      limit: UNSETTLED_OUTCOMES_MAX,
    };
  }
  const name = nameProblem(command.name);
  if (name !== null) return invalid('name', name);
  if (command.key === '' || !fits(command.key, KEY_BYTES_MAX)) {
    return invalid('key', `the key must have 1 to ${KEY_BYTES_MAX} bytes`, KEY_BYTES_MAX);
  }
  if (command.mode !== 'exclusive' || command.permits !== 1) {
    return invalid('mode', 'only exclusive locks are available yet');
  }
  if (command.reentrant) return invalid('reentrant', 're-entrancy is not available yet');
  if (!fits(command.owner, OWNER_BYTES_MAX)) {
    return invalid('owner', `the owner is longer than ${OWNER_BYTES_MAX} bytes`, OWNER_BYTES_MAX);
  }
  if (!fits(command.purpose, PURPOSE_BYTES_MAX)) {
    return invalid('purpose', `the purpose is longer than ${PURPOSE_BYTES_MAX} bytes`, PURPOSE_BYTES_MAX);
  }
  if (!Number.isSafeInteger(command.waitMs) || command.waitMs < 0 || command.waitMs > WAIT_MS_MAX) {
    return invalid('wait_ms', `the wait must be 0 to ${WAIT_MS_MAX} ms`, WAIT_MS_MAX);
  }
  return null;
}

/** Whether a text has at most so many bytes of UTF-8 and survives being written. */
export function fits(text: string, bytesMax: number): boolean {
  if (text.length > bytesMax) return false;
  return text.isWellFormed() && (text.length * 3 <= bytesMax || utf8Length(text) <= bytesMax);
}

interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly field?: string;
  readonly limit?: number;
  readonly holder?: HolderView | null;
  readonly waiters?: number;
  readonly lockDelayMs?: number;
}

function refusalBeforeLock(state: State, session: Session, command: Acquire): Refusal | null {
  const config = state.config;
  if (config === null) return { code: 'NAMESPACE_NOT_FOUND', message: 'the namespace has been removed' };
  if (!isConsumer(config, session.identity)) {
    return { code: 'FORBIDDEN', message: `${session.identity.account} is not a consumer of this namespace` };
  }
  if (!config.modes.includes(command.mode)) {
    return { code: 'INVALID', field: 'mode', message: `this namespace does not allow ${command.mode} locks` };
  }
  if (command.waitMs > config.maxWaitMs) {
    return {
      code: 'INVALID',
      field: 'wait_ms',
      message: `the namespace allows waits of at most ${config.maxWaitMs} ms`,
      limit: config.maxWaitMs,
    };
  }
  if (state.locks.get(command.name)?.quarantined === true) {
    return { code: 'QUARANTINED', message: 'the name is out of service until an administrator puts it back' };
  }
  if (session.holds.size + session.waits.size >= config.locksPerClient) {
    return overLimit('locks held or waited for by this session', config.locksPerClient);
  }
  return null;
}

function overLimit(what: string, limit: number): Refusal {
  return { code: 'QUOTA_EXCEEDED', message: `${what}: the limit is ${limit}`, limit };
}

/** Grants, queues or refuses a request that is in order. */
function take(state: State, record: KeyRecord, events: LockEvent[]): CommandResult {
  const { request } = record;
  const config = state.config as NamespaceConfig;
  const lock = state.locks.get(request.name);
  if (lock === undefined || isFree(lock)) {
    assert(lock === undefined || lock.queue === null, 'a free lock has waiters');
    if (state.holds >= config.heldLocks) {
      return refuseNow(record, overLimit('locks held in this namespace', config.heldLocks), events);
    }
    const hold = grant(state, record, lock ?? lockOf(state, request.name), events, null);
    return { type: 'granted', token: hold.token };
  }
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
    const message = lock.hold === null ? 'the lock-delay of this name runs' : 'the lock is held';
    return { code: 'HELD', message, ...standing(state, lock) };
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

/** How things stand at a lock that could not be had. */
function standing(state: State, lock: Lock): Pick<Refusal, 'holder' | 'waiters' | 'lockDelayMs'> {
  return {
    holder: lock.hold === null ? null : viewHolder(state, lock.hold),
    waiters: lock.queue?.size ?? 0,
    lockDelayMs: lock.delay === null ? 0 : lock.delay.due - state.at,
  };
}

function refuseNow(record: KeyRecord, refusal: Refusal, events: LockEvent[]): CommandResult {
  refuse(record, record.request.name, refusal.code, events, false);
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
export function positionOf(wait: Wait): number {
  let position = 0;
  for (const other of wait.lock.queue ?? []) {
    position++;
    if (other === wait) return position;
  }
  assert(false, 'a wait is not in its queue');
}

export function release(state: State, command: Release, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const hold = session.holds.get(command.token);
  if (hold === undefined || hold.lock.name !== command.name)
    return notHeld(state, command.name, command.token);
  events.push({
    type: 'released',
    name: command.name,
    session: session.id,
    token: command.token,
    cause: 'release',
  });
  endHold(state, hold, 'RELEASED', hold.revoking === null, events);
  return DONE;
}

/** STALE_TOKEN: held under a higher token; NOT_HELD otherwise. */
export function notHeld(state: State, name: string, token: number): Refused {
  const hold = state.locks.get(name)?.hold ?? null;
  return hold !== null && hold.token > token
    ? {
        type: 'refused',
        code: 'STALE_TOKEN',
        message: `the lock is held under the higher token ${hold.token}`,
      }
    : { type: 'refused', code: 'NOT_HELD', message: `the lock is not held under token ${token}` };
}

export function cancel(state: State, command: Cancel, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const record = session.keys.get(command.key);
  if (record === undefined) return DONE;
  const now = record.state;
  const { name } = record.request;
  const token = now.kind === 'held' ? now.token : 0;
  if (now.kind !== 'ended')
    events.push({ type: 'cancelled', name, session: session.id, key: command.key, token });
  if (now.kind === 'waiting') dequeue(state, now);
  if (now.kind === 'held') endHold(state, now, 'RELEASED', now.revoking === null, events);
  forget(session, record);
  return DONE;
}

/** Removes a key for good: a cancel settles it, whatever became of it. */
function forget(session: Session, record: KeyRecord): void {
  const isCounted =
    session.keys.delete(record.request.key) && !record.settled && record.state.kind === 'ended';
  if (isCounted) session.unsettled--;
  assert(session.unsettled >= 0, 'more outcomes were settled than there are');
}
