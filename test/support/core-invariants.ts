/**
 * What must be true of the state machine's records after every entry, whatever happened: the same fact is kept in several
 * places for speed (counters, queues, heap, digest), and here all of it is counted again from scratch.
 */
import { KEYS_PER_GRANT_MAX } from '../../src/api/limits.ts';
import { digestOf } from '../../src/api/wire.ts';
import { holdsOf, newestKept } from '../../src/core/crowd.ts';
import { keysOf } from '../../src/core/holds.ts';
import { joinKey, permitsOf } from '../../src/core/policy.ts';
import { headStep } from '../../src/core/queue.ts';
import type { Hold, KeyRecord, Lock, Session, State, TimerNode } from '../../src/core/state.ts';

/** For reasons other than the lock itself. */
const REFUSALS: ReadonlySet<unknown> = new Set([
  'SESSION_EXPIRED',
  'WAIT_TIMEOUT',
  'NAMESPACE_NOT_FOUND',
  'FORBIDDEN',
  'INVALID',
]);

function must(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${what}`);
}

interface Counts {
  holds: number;
  waits: number;
  revoking: number;
  timers: number;
}

/** Throws when the records contradict each other. Costs one pass over everything. */
export function checkInvariants(state: State): void {
  const counts: Counts = { holds: 0, waits: 0, revoking: 0, timers: 0 };
  let lastId = 0;
  for (const [id, session] of state.sessions) {
    must(id === session.id && id > lastId && id <= state.lastSession, `session ${id} is out of order`);
    lastId = id;
    checkSession(state, session, counts);
  }
  must(state.holds === counts.holds, `${state.holds} holds are counted, ${counts.holds} are there`);
  must(state.waits === counts.waits, `${state.waits} waits are counted, ${counts.waits} are there`);
  must(state.revoking === counts.revoking, `${state.revoking} revokes are counted, not ${counts.revoking}`);
  const byLock = { holds: 0, waits: 0 };
  for (const [name, lock] of state.locks) {
    must(name === lock.name, 'a lock is filed under another name');
    checkLock(state, lock, counts);
    checkHolds(state, lock);
    for (const _hold of holdsOf(lock)) byLock.holds++;
    byLock.waits += lock.queue?.size ?? 0;
  }
  must(byLock.holds === counts.holds && byLock.waits === counts.waits, 'locks and sessions differ');
  must(state.timers.size === counts.timers, `${state.timers.size} timers are set, not ${counts.timers}`);
  checkHeap(state.timers.nodes());
  checkBacklog(state);
}

function checkSession(state: State, session: Session, counts: Counts): void {
  let unsettled = 0;
  let digest = 0;
  for (const [key, record] of session.keys) {
    must(record.session === session && record.request.key === key, 'a key is filed in the wrong place');
    checkKey(state, record, counts);
    if (record.state.kind !== 'waiting' && !record.settled) unsettled++;
  }
  must(session.unsettled === unsettled, `${session.unsettled} outcomes are counted, not ${unsettled}`);
  let lastToken = 0;
  let joinable = 0;
  for (const [token, hold] of session.holds) {
    must(token === hold.token && token > lastToken && token <= state.lastToken, 'tokens are out of order');
    checkHold(state, session, hold, counts);
    digest ^= digestOf(token);
    lastToken = token;
    const { request } = hold.record;
    if (!request.reentrant || hold.revoking !== null) continue;
    must(session.joinable?.get(joinKey(request)) === hold, 'a re-entrant hold cannot be joined');
    joinable++;
  }
  must(session.digest === digest, 'the digest of a session is not that of its grants');
  must((session.joinable?.size ?? 0) === joinable, 'a session could join what it does not hold');
  let lastSequence = 0;
  for (const wait of session.waits) {
    must(wait.sequence > lastSequence, 'waits of a session are out of order');
    must(session.keys.get(wait.record.request.key)?.state === wait, 'a wait is not under its key');
    lastSequence = wait.sequence;
  }
}

function checkKey(state: State, record: KeyRecord, counts: Counts): void {
  const now = record.state;
  const lock = state.locks.get(record.request.name);
  if (now.kind === 'ended') {
    must(!record.settled, 'a settled outcome is kept');
    return;
  }
  must(now.lock === lock && (now.kind === 'held' || now.record === record), 'a key and its lock differ');
  if (now.kind === 'waiting') {
    must(!record.settled, 'a wait is settled');
    must(record.session.waits.has(now) && lock.queue?.has(now) === true, 'a wait is not queued');
    must(now.heapIndex !== -1, 'a wait without a timer');
    counts.waits++;
    return;
  }
  must(record.session.holds.get(now.token) === now, 'a key holds what its session does not');
  must(keysOf(now).includes(record), 'a key is not among those of its hold');
}

function checkHold(state: State, session: Session, hold: Hold, counts: Counts): void {
  const { lock, record } = hold;
  const keys = keysOf(hold);
  must(
    record.session === session && state.locks.get(lock.name) === lock,
    'a hold is filed in the wrong place',
  );
  must(keys.length >= 1 && keys.length <= KEYS_PER_GRANT_MAX, 'a hold has no key, or too many');
  must(new Set(keys).size === keys.length, 'a hold has a key twice');
  must(keys.length === 1 || record.request.reentrant, 'a hold that is not re-entrant has several keys');
  for (const { request } of keys) {
    must(session.keys.get(request.key)?.state === hold, 'a hold is not under its key');
    must(
      request.name === lock.name &&
        (keys.length === 1 || (request.reentrant && joinKey(request) === joinKey(record.request))),
      'a hold has a key that asked for something else',
    );
  }
  must(
    (hold.heapIndex === -1) === lock.quarantined,
    'the timer of a hold is set exactly when not quarantined',
  );
  counts.holds++;
  if (!lock.quarantined) counts.timers++;
  if (hold.revoking !== null) counts.revoking++;
}

/** The holds of one lock: one mode, linked by rising token, counted; rule C2. */
function checkHolds(state: State, lock: Lock): void {
  const holds = [...holdsOf(lock)];
  const { crowd } = lock;
  const [first] = holds;
  if (first === undefined || first.record.request.mode === 'exclusive') {
    must(crowd === null && holds.length <= 1, 'rule C2: an exclusive lock has more than one hold');
    return;
  }
  const { mode } = first.record.request;
  must(
    crowd !== null && crowd.oldest === first && crowd.newest === holds.at(-1),
    'the ends of a list are wrong',
  );
  let last = 0;
  let used = 0;
  let kept = 0;
  for (const hold of holds) {
    const { request } = hold.record;
    must(request.mode === mode, 'rule C2: the holds of a lock have two modes');
    must(
      hold.token > last && state.sessions.has(hold.record.session.id),
      'the holds of a lock are out of order',
    );
    last = hold.token;
    used += request.permits;
    if (hold.revoking === null) kept += request.permits;
  }
  must(
    crowd.count === holds.length && crowd.used === used && crowd.kept === kept,
    'permits are counted wrong',
  );
  must(
    newestKept(crowd) === (holds.findLast(({ revoking }) => revoking === null) ?? null),
    'a list is cut wrong',
  );
  const permits = permitsOf(state.config, lock.name);
  const isCut = lock.quarantined || state.toServe.has(lock.name);
  if (mode === 'semaphore' && permits !== null) {
    must(kept <= permits || isCut, 'rule C2: a semaphore has given out more permits than it has');
  }
}

function checkLock(state: State, lock: Lock, counts: Counts): void {
  const isIdle = lock.hold === null && lock.queue === null && lock.delay === null && !lock.quarantined;
  must(!isIdle, `rule C16: ${JSON.stringify(lock.name)} is kept though nobody uses it`);
  must(lock.queue === null || lock.queue.size > 0, 'an empty queue is kept');
  must(!lock.quarantined || (lock.queue === null && lock.delay === null), 'a quarantined name is in use');
  must(
    lock.hold?.record.request.mode !== 'exclusive' || lock.delay === null,
    'a held name is under lock-delay',
  );
  for (const hold of holdsOf(lock)) must(hold.lock === lock, 'a hold belongs to another lock');
  const step = headStep(state, lock);
  // A head that would be refused now may wait for its turn or its timer; one that could have the lock may not.
  const canHave = step !== null && !REFUSALS.has(step.verdict);
  must(!canHave || state.toServe.has(lock.name), 'nobody works on a queue that could move on');
  if (lock.delay !== null) {
    must(lock.delay.heapIndex !== -1 && lock.delay.lock === lock, 'a lock-delay without a timer');
    counts.timers++;
  }
  let lastSequence = 0;
  for (const wait of lock.queue ?? []) {
    must(wait.sequence > lastSequence, 'a queue is out of order');
    must(state.sessions.get(wait.record.session.id) === wait.record.session, 'an unknown session waits');
    lastSequence = wait.sequence;
    counts.timers++;
  }
}

function checkHeap(nodes: readonly TimerNode[]): void {
  for (const [index, node] of nodes.entries()) {
    must(node.heapIndex === index, 'a timer does not know its place');
    const parent = index === 0 ? node : nodes[(index - 1) >> 1];
    must(parent !== undefined && !isBefore(node, parent), 'a timer comes after a later one');
  }
}

function isBefore(a: TimerNode, b: TimerNode): boolean {
  return a.due < b.due || (a.due === b.due && a.sequence < b.sequence);
}

function checkBacklog(state: State): void {
  const seen = new Set<string>();
  for (const item of state.backlog) {
    const what = item.kind === 'serve' ? `serve ${item.name}` : `${item.kind} ${item.session.id}`;
    must(!seen.has(what), 'a session or name is in the backlog twice for the same work');
    seen.add(what);
    if (item.kind === 'serve') must(state.toServe.has(item.name), 'a name is in the backlog unnoticed');
    else must(state.sessions.get(item.session.id) === item.session, 'the backlog names an unknown session');
  }
  must(
    state.toServe.size === state.backlog.filter(({ kind }) => kind === 'serve').length,
    'a name is thought to be in the backlog',
  );
  for (const { id, ending, endItem, stripItem, waits, holds } of state.sessions.values()) {
    must((endItem !== null) === seen.has(`end ${id}`), 'a session is wrong about its end in the backlog');
    must(
      (stripItem !== null) === seen.has(`strip ${id}`),
      'a session is wrong about its place in the backlog',
    );
    if (ending === null) must(endItem === null, 'a live session is being ended');
    else if (endItem === null) {
      // Rule C13: parked until the quarantine is lifted, or until its holds are broken.
      must(waits.size === 0 && holds.size > 0, 'a session is ending without anybody working on it');
      for (const { lock } of holds.values()) must(lock.quarantined, 'a session ends but leaves locks behind');
    }
  }
}
