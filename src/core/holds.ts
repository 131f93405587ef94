/**
 * How a grant begins, is shared by further keys of its session, and is taken away. Everything else in the core decides
 * *whether* and calls these to do it, so that locks, sessions, keys, timers and counters cannot drift apart.
 */
import type { LockEvent, RevokeCause } from '../api/entry.ts';
import { KEYS_PER_GRANT_MAX, TOKEN_MAX } from '../api/limits.ts';
import { digestOf } from '../api/wire.ts';
import { assert } from './assert.ts';
import { addHold, removeHold, stopCounting } from './crowd.ts';
import { isAlive, joinKey, permitsOf } from './policy.ts';
import type { CrowdHold, Hold, KeyRecord, Lock, Session, State } from './state.ts';

/** When a request was queued; null = it did not wait. */
type QueuedAt = number | null;

export function grant(
  state: State,
  record: KeyRecord,
  lock: Lock,
  events: LockEvent[],
  queuedAt: QueuedAt,
): Hold {
  const { session } = record;
  assert(lock.delay === null && !lock.quarantined, 'a lock is granted that is not free');
  assert(isAlive(session), 'a lock is granted to a session that is ending');
  assert(state.lastToken < TOKEN_MAX, 'the tokens are used up');
  const hold = newHold(record, lock, ++state.lastToken, state.at);
  record.state = hold;
  addHold(lock, hold);
  if (record.request.mode === 'semaphore') assertPermits(state, lock);
  session.holds.set(hold.token, hold);
  session.digest ^= digestOf(hold.token);
  session.unsettled++;
  state.holds++;
  if (record.request.reentrant) makeJoinable(hold);
  state.timers.set(hold, state.at + maxHoldMs(state, session));
  events.push(granted(state, record, hold, false, queuedAt));
  return hold;
}

/** Exclusive holds are the many; the others have links besides. */
export function newHold(record: KeyRecord, lock: Lock, token: number, since: number): Hold {
  const hold: Hold = {
    kind: 'held',
    record,
    lock,
    token,
    since,
    revoking: null,
    keys: null,
    due: 0,
    sequence: 0,
    heapIndex: -1,
  };
  if (record.request.mode === 'exclusive') return hold;
  const linked: CrowdHold = { ...hold, older: null, newer: null };
  return linked;
}

function assertPermits(state: State, lock: Lock): void {
  const permits = permitsOf(state.config, lock.name) ?? 0;
  assert(
    lock.crowd !== null && lock.crowd.used <= permits,
    'a semaphore has given out more permits than it has',
  );
}

function maxHoldMs(state: State, session: Session): number {
  assert(state.config !== null, 'a lock is granted without a configuration');
  const limit = state.config.maxHoldMs;
  return session.maxHoldMs === 0 ? limit : Math.min(session.maxHoldMs, limit);
}

function granted(
  state: State,
  { session, request }: KeyRecord,
  { token }: Hold,
  joined: boolean,
  queuedAt: QueuedAt,
): LockEvent {
  return {
    type: 'granted',
    name: request.name,
    session: session.id,
    key: request.key,
    token,
    mode: request.mode,
    permits: request.permits,
    owner: request.owner,
    joined,
    fromQueue: queuedAt !== null,
    waitedMs: queuedAt === null ? 0 : state.at - queuedAt,
  };
}

/** A further key of the session shares its grant: same token, nothing else changes (rule C6). */
export function join(
  state: State,
  record: KeyRecord,
  hold: Hold,
  events: LockEvent[],
  queuedAt: QueuedAt,
): void {
  assert(hold.record.session === record.session, 'a key joins a hold of another session');
  assert(hold.revoking === null, 'a key joins a hold that is being revoked');
  assert(keyCount(hold) < KEYS_PER_GRANT_MAX, 'a hold has too many keys');
  hold.keys ??= [hold.record];
  hold.keys.push(record);
  record.state = hold;
  record.session.unsettled++;
  events.push(granted(state, record, hold, true, queuedAt));
}

export function keyCount(hold: Hold): number {
  return hold.keys === null ? 1 : hold.keys.length;
}

/** In the order they joined. */
export function keysOf(hold: Hold): readonly KeyRecord[] {
  return hold.keys ?? [hold.record];
}

/** One of several keys gives the hold up; the others keep it. */
export function leaveHold(hold: Hold, record: KeyRecord): void {
  assert(hold.keys !== null && hold.keys.length > 1, 'the last key leaves a hold that goes on');
  const place = hold.keys.indexOf(record);
  assert(place !== -1, 'a key leaves a hold that does not know it');
  hold.keys.splice(place, 1);
  endHeldKey(record, hold, 'RELEASED');
}

/** What remains of a key after its hold: an outcome until the client settles it (rule C5). */
function endHeldKey(record: KeyRecord, { token }: Hold, by: 'RELEASED' | 'REVOKED'): void {
  assert(record.state.kind === 'held', 'a key leaves a hold that it does not have');
  if (record.settled) record.session.keys.delete(record.request.key);
  else record.state = { kind: 'ended', by, token };
}

/** Takes a hold out of every place that knows it, and ends its keys. */
export function takeOut(state: State, hold: Hold, by: 'RELEASED' | 'REVOKED'): void {
  const { record, token } = hold;
  const { session } = record;
  removeHold(hold);
  assert(session.holds.delete(token), 'a hold ends that its session does not know');
  state.timers.cancel(hold);
  session.digest ^= digestOf(token);
  state.holds--;
  if (hold.revoking !== null) state.revoking--;
  else if (record.request.reentrant) stopJoining(hold);
  if (hold.keys === null) endHeldKey(record, hold, by);
  else for (const key of hold.keys) endHeldKey(key, hold, by);
}

/** Starts to take a grant away: its holder has one TTL to give it up (rule C9). */
export function revoke(state: State, hold: Hold, cause: RevokeCause, events: LockEvent[]): void {
  if (hold.revoking !== null) return;
  const { lock, record, token } = hold;
  const { session } = record;
  assert(session.holds.get(token) === hold, 'a hold is revoked that its session does not know');
  stopCounting(hold);
  if (record.request.reentrant) stopJoining(hold);
  hold.revoking = cause;
  state.revoking++;
  state.timers.cancel(hold);
  const until = state.at + session.ttlMs;
  if (lock.quarantined) hold.due = until;
  else state.timers.set(hold, until);
  events.push({ type: 'revoking', name: lock.name, session: session.id, token, cause, until });
}

/** From now on further acquires of the session may join this hold. */
export function makeJoinable(hold: Hold): void {
  const { session, request } = hold.record;
  session.joinable ??= new Map();
  const key = joinKey(request);
  assert(!session.joinable.has(key), 'a session is granted what it could have joined');
  session.joinable.set(key, hold);
}

function stopJoining(hold: Hold): void {
  const { session, request } = hold.record;
  const key = joinKey(request);
  assert(session.joinable?.get(key) === hold, 'a re-entrant hold could not be joined');
  session.joinable.delete(key);
}
