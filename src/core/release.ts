/**
 * release and cancel: how a session gives back what it has, or takes back what it asked for. Both are idempotent, by token
 * and by key, and keep no outcome (rules C5 to C7).
 */
import type { Cancel, CommandResult, LockEvent, Release } from '../api/entry.ts';
import { actingSession, DONE, invalid, notHeld, settle } from './answers.ts';
import { assert } from './assert.ts';
import { giveUp } from './ends.ts';
import { keyCount } from './holds.ts';
import { dequeue, serve } from './queue.ts';
import type { Hold, KeyRecord, Session, State } from './state.ts';

export function release(state: State, command: Release, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const { name, token } = command;
  const hold = session.holds.get(token);
  if (hold === undefined || hold.lock.name !== name) return notHeld(state, name, token);
  const record = releasedKey(session, hold, command.key);
  if (record === null) {
    return command.key === ''
      ? invalid('key', 'a re-entrant lock is released by token and key')
      : { type: 'refused', code: 'NOT_HELD', message: 'this key does not hold the lock' };
  }
  const { key } = record.request;
  const remaining = keyCount(hold) - 1;
  events.push({ type: 'released', name, session: session.id, token, cause: 'release', key, remaining });
  giveUp(state, hold, record, events);
  return DONE;
}

/** Which of its keys gives up the hold: of a re-entrant one the key named, of any other the only one (rule C6). */
function releasedKey(session: Session, hold: Hold, key: string): KeyRecord | null {
  if (!hold.record.request.reentrant) return hold.record;
  const record = session.keys.get(key);
  return record?.state === hold ? record : null;
}

export function cancel(state: State, command: Cancel, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  settle(session, command.acks);
  const record = session.keys.get(command.key);
  if (record === undefined) return DONE;
  const now = record.state;
  const of = { name: record.request.name, session: session.id, key: command.key };
  if (now.kind === 'waiting') {
    events.push({ type: 'cancelled', ...of, token: 0, remaining: 0 });
    dequeue(state, now);
    serve(state, now.lock, events);
  } else if (now.kind === 'held') {
    events.push({ type: 'cancelled', ...of, token: now.token, remaining: keyCount(now) - 1 });
    giveUp(state, now, record, events);
  }
  forget(session, record);
  return DONE;
}

/** Removes a key for good: a cancel settles it, whatever became of it. */
function forget(session: Session, record: KeyRecord): void {
  // A settled key is gone already, with its hold.
  if (!session.keys.delete(record.request.key)) return;
  assert(record.state.kind !== 'held', 'a key is forgotten while it holds a lock');
  if (record.state.kind === 'ended' && !record.settled) session.unsettled--;
  assert(session.unsettled >= 0, 'more outcomes were settled than there are');
}
