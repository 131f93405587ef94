/**
 * The queue of a name: who joins it, who leaves it, and what becomes of its head (rules C2, C3). A queue moves one step at a
 * time; more steps than one go through the backlog, so that a run of 10,000 readers cannot stall an entry (rule C1).
 */
import type { Acquire, LockEvent, RefusalCode } from '../api/entry.ts';
import { KEYS_PER_GRANT_MAX } from '../api/limits.ts';
import { assert } from './assert.ts';
import { joinToServe } from './backlog.ts';
import { grant, join, keyCount } from './holds.ts';
import { fitsNow, holdToJoin, isAlive, policyRefusal } from './policy.ts';
import type { Hold, KeyRecord, Lock, State, Wait } from './state.ts';

/** What is to become of the head of a queue. */
interface HeadStep {
  readonly wait: Wait;
  readonly lock: Lock;
  /** A code: it is refused. A hold: it joins that. */
  readonly verdict: RefusalCode | Hold | 'granted';
}

export function lockOf(state: State, name: string): Lock {
  const known = state.locks.get(name);
  if (known !== undefined) return known;
  const lock: Lock = { name, hold: null, crowd: null, queue: null, delay: null, quarantined: false };
  state.locks.set(name, lock);
  return lock;
}

function isIdle(lock: Lock): boolean {
  return lock.hold === null && lock.queue === null && lock.delay === null && !lock.quarantined;
}

/** Rule C16: a name nobody uses leaves nothing behind. */
export function dropIfIdle(state: State, lock: Lock): void {
  if (isIdle(lock)) state.locks.delete(lock.name);
}

export function enqueue(state: State, record: KeyRecord, lock: Lock, request: Acquire): Wait {
  assert(!isIdle(lock), 'a request queues at a free lock');
  assert(!lock.quarantined, 'a request queues at a quarantined name');
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

/** Takes a wait out of every place that knows it; the caller says what becomes of its key, and serves the lock. */
export function dequeue(state: State, wait: Wait): void {
  const { lock, record } = wait;
  const wasQueued = lock.queue?.delete(wait) === true;
  const wasKnown = record.session.waits.delete(wait);
  assert(wasQueued && wasKnown, 'a wait is not where its lock or session expects it');
  if (lock.queue?.size === 0) lock.queue = null;
  state.waits--;
  state.timers.cancel(wait);
}

/** A wait ends without a grant, and with it perhaps what kept those behind it. */
export function dropWait(state: State, wait: Wait, code: RefusalCode, events: LockEvent[]): void {
  dequeue(state, wait);
  refuse(wait.record, code, events, true);
  serve(state, wait.lock, events);
}

/** Ends a key that was never granted. */
export function refuse(record: KeyRecord, code: RefusalCode, events: LockEvent[], fromQueue: boolean): void {
  const { session, request } = record;
  assert(record.state.kind !== 'held', 'a granted key is refused');
  assert(!record.settled, 'a key is settled before it has an outcome');
  session.unsettled++;
  record.state = { kind: 'ended', by: code, token: 0 };
  events.push({
    type: 'refused',
    name: request.name,
    session: session.id,
    key: request.key,
    code,
    fromQueue,
  });
}

/** One step at the head of the queue at once; what more is possible then goes through the backlog. */
export function serve(state: State, lock: Lock, events: LockEvent[]): void {
  const step = headStep(state, lock);
  if (step !== null) {
    takeHeadStep(state, step, events);
    if (headStep(state, lock) !== null) joinToServe(state, lock.name);
  }
  dropIfIdle(state, lock);
}

/** Null when there is nothing to do about the head of the queue, or no queue. The order is part of the contract. */
export function headStep(state: State, lock: Lock): HeadStep | null {
  if (lock.queue === null || lock.delay !== null || lock.quarantined) return null;
  const wait: Wait | undefined = lock.queue.values().next().value;
  assert(wait !== undefined, 'a queue is empty but not null');
  const verdict = verdictOn(state, wait);
  return verdict === null ? null : { wait, lock, verdict };
}

function verdictOn(state: State, wait: Wait): HeadStep['verdict'] | null {
  const { session, request } = wait.record;
  if (!isAlive(session)) return 'SESSION_EXPIRED';
  if (wait.due <= state.at) return 'WAIT_TIMEOUT';
  const { config } = state;
  const refusal = policyRefusal(config, session, request);
  if (refusal !== null) return refusal.code;
  assert(config !== null, 'a request is allowed without a configuration');
  const hold = holdToJoin(session, request);
  if (hold !== null) return keyCount(hold) >= KEYS_PER_GRANT_MAX ? 'QUOTA_EXCEEDED' : hold;
  if (!fitsNow(config, wait.lock, request)) return null;
  return state.holds >= config.heldLocks ? 'QUOTA_EXCEEDED' : 'granted';
}

export function takeHeadStep(state: State, { wait, lock, verdict }: HeadStep, events: LockEvent[]): void {
  const { record, queuedAt } = wait;
  dequeue(state, wait);
  if (verdict === 'granted') grant(state, record, lock, events, queuedAt);
  else if (typeof verdict === 'string') refuse(record, verdict, events, true);
  else join(state, record, verdict, events, queuedAt);
}
