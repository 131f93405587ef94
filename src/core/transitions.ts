/**
 * The few ways a lock changes hands. Everything else in the core decides *whether* and calls these to do it, so that
 * holds, queues, keys, timers and counters cannot drift apart.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type { Acquire, Ending, Identity, LockEvent, RefusalCode, RevokeCause } from '../api/entry.ts';
import { TOKEN_MAX } from '../api/limits.ts';
import { digestOf } from '../api/wire.ts';
import { assert } from './assert.ts';
import type { Hold, KeyRecord, Lock, Session, State, Wait } from './state.ts';

export function isAlive(session: Session): boolean {
  return session.ending === null;
}

export function isFree(lock: Lock): boolean {
  return lock.hold === null && lock.delay === null && !lock.quarantined;
}

/** Whether this identity may be granted anything; a null list means that identities are not checked. */
export function isConsumer(config: NamespaceConfig, identity: Identity): boolean {
  if (config.consumers === null) return true;
  return config.consumers.some(({ namespace, serviceAccounts }) =>
    serviceAccounts === null
      ? identity.account.startsWith(`${namespace}/`)
      : serviceAccounts.some((account) => identity.account === `${namespace}/${account}`),
  );
}

export function lockOf(state: State, name: string): Lock {
  const known = state.locks.get(name);
  if (known !== undefined) return known;
  const lock: Lock = { name, hold: null, queue: null, delay: null, quarantined: false };
  state.locks.set(name, lock);
  return lock;
}

/** Rule C16: a name nobody uses leaves nothing behind. */
function dropIfIdle(state: State, lock: Lock): void {
  if (!isFree(lock)) return;
  assert(lock.queue === null, 'a free lock has waiters');
  state.locks.delete(lock.name);
}

export function enqueue(state: State, record: KeyRecord, lock: Lock, request: Acquire): Wait {
  assert(!isFree(lock), 'a request queues at a free lock');
  const wait: Wait = {
    kind: 'waiting',
    record,
    lock,
    queuedAt: state.at,
    due: 0,
    sequence: 0,
    heapIndex: -1,
  };
  record.state = wait;
  lock.queue ??= new Set();
  lock.queue.add(wait);
  record.session.waits.add(wait);
  state.waits++;
  state.timers.set(wait, state.at + request.waitMs);
  return wait;
}

/** Takes a wait out of every place that knows it; the caller says what becomes of its key. */
export function dequeue(state: State, wait: Wait): void {
  const { lock, record } = wait;
  const wasQueued = lock.queue?.delete(wait) === true;
  const wasKnown = record.session.waits.delete(wait);
  assert(wasQueued && wasKnown, 'a wait is not where its lock or session expects it');
  if (lock.queue?.size === 0) lock.queue = null;
  state.waits--;
  state.timers.cancel(wait);
}

export function grant(
  state: State,
  record: KeyRecord,
  lock: Lock,
  events: LockEvent[],
  queuedAt: number | null,
): Hold {
  const { session, request } = record;
  assert(isFree(lock), 'a lock is granted that is not free');
  assert(isAlive(session), 'a lock is granted to a session that is ending');
  assert(state.lastToken < TOKEN_MAX, 'the tokens are used up');
  const token = ++state.lastToken;
  const hold: Hold = {
    kind: 'held',
    record,
    lock,
    token,
    since: state.at,
    revoking: null,
    due: 0,
    sequence: 0,
    heapIndex: -1,
  };
  record.state = hold;
  lock.hold = hold;
  session.holds.set(token, hold);
  session.digest ^= digestOf(token);
  session.unsettled++;
  state.holds++;
  state.timers.set(hold, state.at + maxHoldMs(state, session));
  events.push({
    type: 'granted',
    name: lock.name,
    session: session.id,
    key: request.key,
    token,
    mode: request.mode,
    permits: request.permits,
    owner: request.owner,
    fromQueue: queuedAt !== null,
    waitedMs: queuedAt === null ? 0 : state.at - queuedAt,
  });
  return hold;
}

function maxHoldMs(state: State, session: Session): number {
  assert(state.config !== null, 'a lock is granted without a configuration');
  const limit = state.config.maxHoldMs;
  return session.maxHoldMs === 0 ? limit : Math.min(session.maxHoldMs, limit);
}

/** Gives the lock to the first waiter that may have it; those before it are refused on the way (rule C3). */
export function grantNext(state: State, lock: Lock, events: LockEvent[]): void {
  while (lock.queue !== null && isFree(lock)) {
    const wait: Wait | undefined = lock.queue.values().next().value;
    assert(wait !== undefined, 'a queue is empty but not null');
    dequeue(state, wait);
    const code = obstacle(state, wait);
    if (code === null) grant(state, wait.record, lock, events, wait.queuedAt);
    else refuse(wait.record, lock.name, code, events, true);
  }
  dropIfIdle(state, lock);
}

/** Why the head of a queue may not be granted; the order is part of the contract. */
function obstacle(state: State, wait: Wait): RefusalCode | null {
  const { session, request } = wait.record;
  if (!isAlive(session)) return 'SESSION_EXPIRED';
  if (wait.due <= state.at) return 'WAIT_TIMEOUT';
  const config = state.config;
  if (config === null) return 'NAMESPACE_NOT_FOUND';
  if (!isConsumer(config, session.identity)) return 'FORBIDDEN';
  if (!config.modes.includes(request.mode)) return 'INVALID';
  if (state.holds >= config.heldLocks) return 'QUOTA_EXCEEDED';
  return null;
}

/** Ends a key that was never granted. */
export function refuse(
  record: KeyRecord,
  name: string,
  code: RefusalCode,
  events: LockEvent[],
  fromQueue: boolean,
): void {
  assert(record.state.kind !== 'held', 'a granted key is refused');
  endKey(record, code, 0);
  events.push({
    type: 'refused',
    name,
    session: record.session.id,
    key: record.request.key,
    code,
    fromQueue,
  });
}

/** What remains of a key after its wait or hold: an outcome until the client settles it (rule C5). */
function endKey(record: KeyRecord, by: Ending, token: number): void {
  const { session, request } = record;
  if (record.settled) {
    session.keys.delete(request.key);
    return;
  }
  // A held key counts as unsettled since its grant; a refused one from now on.
  if (record.state.kind !== 'held') session.unsettled++;
  record.state = { kind: 'ended', by, token };
}

/** Ends a hold. An unclean end puts the name under lock-delay (rule C8); otherwise the next waiter has it at once. */
export function endHold(
  state: State,
  hold: Hold,
  by: 'RELEASED' | 'REVOKED',
  clean: boolean,
  events: LockEvent[],
): void {
  const { lock, record, token } = hold;
  const { session } = record;
  assert(lock.hold === hold, 'a hold ends that its lock does not know');
  assert(session.holds.delete(token), 'a hold ends that its session does not know');
  state.timers.cancel(hold);
  lock.hold = null;
  session.digest ^= digestOf(token);
  state.holds--;
  if (hold.revoking !== null) state.revoking--;
  if (record.settled) session.keys.delete(record.request.key);
  else record.state = { kind: 'ended', by, token };
  const delayMs = clean || state.config === null ? 0 : state.config.lockDelayMs;
  if (delayMs > 0 && !lock.quarantined) startDelay(state, lock, delayMs, events);
  else grantNext(state, lock, events);
}

function startDelay(state: State, lock: Lock, delayMs: number, events: LockEvent[]): void {
  assert(lock.delay === null, 'a lock-delay starts while one runs');
  lock.delay = { kind: 'delay', lock, due: 0, sequence: 0, heapIndex: -1 };
  state.timers.set(lock.delay, state.at + delayMs);
  events.push({ type: 'delayed', name: lock.name, until: lock.delay.due });
}

/** Starts to take a grant away: its holder has one TTL to give it up (rule C9). */
export function revoke(state: State, hold: Hold, cause: RevokeCause, events: LockEvent[]): void {
  if (hold.revoking !== null) return;
  assert(hold.lock.hold === hold, 'a hold is revoked that its lock does not know');
  hold.revoking = cause;
  state.revoking++;
  state.timers.cancel(hold);
  const until = state.at + hold.record.session.ttlMs;
  if (hold.lock.quarantined) hold.due = until;
  else state.timers.set(hold, until);
  events.push({
    type: 'revoking',
    name: hold.lock.name,
    session: hold.record.session.id,
    token: hold.token,
    cause,
    until: hold.due,
  });
}
