/**
 * What must be true of the state machine's records after every entry, whatever happened: the same fact is kept in several
 * places for speed (counters, queues, heap, digest), and here all of it is counted again from scratch.
 */
import { digestOf } from '../../src/api/wire.ts';
import type { KeyRecord, Lock, Session, State, TimerNode } from '../../src/core/state.ts';

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
    if (lock.hold !== null) byLock.holds++;
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
    if (record.state.kind === 'held') digest ^= digestOf(record.state.token);
  }
  must(session.unsettled === unsettled, `${session.unsettled} outcomes are counted, not ${unsettled}`);
  must(session.digest === digest, 'the digest of a session is not that of its grants');
  let lastToken = 0;
  for (const [token, hold] of session.holds) {
    must(token === hold.token && token > lastToken && token <= state.lastToken, 'tokens are out of order');
    must(session.keys.get(hold.record.request.key)?.state === hold, 'a hold is not under its key');
    lastToken = token;
  }
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
  must(now.lock === lock && now.record === record, 'a key and its lock differ');
  if (now.kind === 'waiting') {
    must(!record.settled, 'a wait is settled');
    must(record.session.waits.has(now) && lock.queue?.has(now) === true, 'a wait is not queued');
    must(now.heapIndex !== -1, 'a wait without a timer');
    counts.waits++;
    return;
  }
  must(record.session.holds.get(now.token) === now && lock.hold === now, 'a hold is not where it belongs');
  must(
    (now.heapIndex === -1) === lock.quarantined,
    'the timer of a hold is set exactly when not quarantined',
  );
  counts.holds++;
  if (now.revoking !== null) counts.revoking++;
}

function checkLock(state: State, lock: Lock, counts: Counts): void {
  const isFree = lock.hold === null && lock.delay === null && !lock.quarantined;
  must(!isFree, `rule C16: ${JSON.stringify(lock.name)} is kept though nobody uses it`);
  must(lock.queue === null || lock.queue.size > 0, 'an empty queue is kept');
  must(!lock.quarantined || (lock.queue === null && lock.delay === null), 'a quarantined name is in use');
  must(lock.hold === null || lock.delay === null, 'a held name is under lock-delay');
  if (lock.hold !== null) must(lock.hold.lock === lock, 'a hold belongs to another lock');
  if (lock.hold !== null && !lock.quarantined) counts.timers++;
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
  for (const { kind, session } of state.backlog) {
    must(state.sessions.get(session.id) === session, 'the backlog names an unknown session');
    must(!seen.has(`${kind} ${session.id}`), 'a session is in the backlog twice for the same work');
    seen.add(`${kind} ${session.id}`);
  }
  for (const { id, ending } of state.sessions.values()) {
    must((ending !== null) === seen.has(`end ${id}`), 'a session is ending without anybody working on it');
  }
}
