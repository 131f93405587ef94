/**
 * How a hold ends: what its keys, its session and its lock are left with (rules C6, C8, C10).
 */
import type { LockEvent } from '../api/entry.ts';
import { assert } from './assert.ts';
import { joinToEnd } from './backlog.ts';
import { keyCount, leaveHold, takeOut } from './holds.ts';
import { isAlive } from './policy.ts';
import { serve } from './queue.ts';
import type { Hold, KeyRecord, Lock, State } from './state.ts';

/** Ends a hold. An unclean end puts the name under lock-delay (rule C8); otherwise whoever fits has it at once. */
export function endHold(
  state: State,
  hold: Hold,
  by: 'RELEASED' | 'REVOKED',
  clean: boolean,
  events: LockEvent[],
): void {
  const { lock, record } = hold;
  takeOut(state, hold, by);
  const delayMs = clean || state.config === null ? 0 : state.config.lockDelayMs;
  if (delayMs > 0 && !lock.quarantined) delay(state, lock, delayMs, events);
  // A session that ended but for its holds on quarantined names: this may have been the last of them.
  if (!isAlive(record.session)) joinToEnd(state, record.session);
  serve(state, lock, events);
}

/** One key gives up its hold, which ends with the last of them. */
export function giveUp(state: State, hold: Hold, record: KeyRecord, events: LockEvent[]): void {
  assert(record.state === hold, 'a key gives up a hold that it does not have');
  if (keyCount(hold) > 1) leaveHold(hold, record);
  else endHold(state, hold, 'RELEASED', hold.revoking === null, events);
}

function delay(state: State, lock: Lock, delayMs: number, events: LockEvent[]): void {
  const until = state.at + delayMs;
  if (lock.delay !== null) {
    if (lock.delay.due >= until) return;
    state.timers.cancel(lock.delay);
  }
  lock.delay = { kind: 'delay', lock, due: 0, sequence: 0, heapIndex: -1 };
  state.timers.set(lock.delay, until);
  assert(lock.delay.due === until, 'a lock-delay ends at another time than was said');
  events.push({ type: 'delayed', name: lock.name, until });
}
