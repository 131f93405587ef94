/**
 * The holds of one lock. An exclusive lock has one and pays for nothing else; shared and semaphore holds form a linked list
 * by rising token, so that any of 100,000 readers can leave in a moment.
 */
import { assert } from './assert.ts';
import type { Crowd, CrowdHold, Hold, Lock } from './state.ts';

/** Of an exclusive hold there is only one, so it has no neighbours. */
export function isInCrowd(hold: Hold): hold is CrowdHold {
  return hold.record.request.mode !== 'exclusive';
}

/** Adds a hold whose token is higher than those of all others of the lock. */
export function addHold(lock: Lock, hold: Hold): void {
  if (!isInCrowd(hold)) {
    assert(lock.hold === null, 'an exclusive hold joins another');
    lock.hold = hold;
    return;
  }
  const { mode, permits } = hold.record.request;
  const kept = hold.revoking === null ? permits : 0;
  const crowd = lock.crowd;
  if (crowd === null) {
    assert(lock.hold === null, 'a hold joins an exclusive one');
    lock.hold = hold;
    lock.crowd = { oldest: hold, newest: hold, keptUpTo: hold, count: 1, used: permits, kept };
    return;
  }
  assert(crowd.newest.token < hold.token, 'the holds of a lock are not by rising token');
  assert(crowd.newest.record.request.mode === mode, 'the holds of a lock have two modes');
  hold.older = crowd.newest;
  crowd.newest.newer = hold;
  crowd.newest = hold;
  crowd.keptUpTo = hold;
  crowd.count++;
  crowd.used += permits;
  crowd.kept += kept;
}

/** Takes a hold out of its lock. */
export function removeHold(hold: Hold): void {
  const { lock } = hold;
  if (!isInCrowd(hold)) {
    assert(lock.hold === hold && lock.crowd === null, 'a hold ends that its lock does not know');
    lock.hold = null;
    return;
  }
  const crowd = lock.crowd;
  assert(crowd !== null, 'a hold ends that its lock does not know');
  const { older, newer } = hold;
  assert((older === null ? crowd.oldest : older.newer) === hold, 'a hold ends that its lock does not know');
  assert((newer === null ? crowd.newest : newer.older) === hold, 'the holds of a lock are not linked');
  if (crowd.keptUpTo === hold) crowd.keptUpTo = older;
  if (newer !== null) newer.older = older;
  if (older !== null) older.newer = newer;
  hold.older = null;
  hold.newer = null;
  removeFromCounts(lock, crowd, hold, older, newer);
}

function removeFromCounts(
  lock: Lock,
  crowd: Crowd,
  hold: CrowdHold,
  older: CrowdHold | null,
  newer: CrowdHold | null,
): void {
  const { permits } = hold.record.request;
  crowd.count--;
  crowd.used -= permits;
  if (hold.revoking === null) crowd.kept -= permits;
  assert(crowd.used >= crowd.kept && crowd.kept >= 0, 'a lock has fewer permits in use than were given back');
  if (older === null && newer === null) {
    assert(crowd.count === 0 && crowd.used === 0, 'permits are in use without a hold');
    lock.hold = null;
    lock.crowd = null;
    return;
  }
  if (older === null) crowd.oldest = newer as CrowdHold;
  if (newer === null) crowd.newest = older as CrowdHold;
  lock.hold = crowd.oldest;
}

/** To be called when a revoke of the hold starts, before its `revoking` is set. */
export function stopCounting(hold: Hold): void {
  if (!isInCrowd(hold) || hold.revoking !== null) return;
  const { crowd } = hold.lock;
  assert(crowd !== null, 'a hold is revoked that its lock does not know');
  crowd.kept -= hold.record.request.permits;
  assert(crowd.kept >= 0, 'a lock has fewer permits in use than are revoked');
}

/**
 * The hold with the highest token that no revoke runs on. Remembers how far it looked, so that revoking one after the other
 * from the end costs one pass in all.
 */
export function newestKept(crowd: Crowd): CrowdHold | null {
  while (crowd.keptUpTo !== null && crowd.keptUpTo.revoking !== null) crowd.keptUpTo = crowd.keptUpTo.older;
  return crowd.keptUpTo;
}

export function newestHold(lock: Lock): Hold | null {
  return lock.crowd?.newest ?? lock.hold;
}

export function holdCount(lock: Lock): number {
  return lock.crowd?.count ?? (lock.hold === null ? 0 : 1);
}

/** By rising token. The hold just given may be ended before the next is asked for. */
export function* holdsOf(lock: Lock): Generator<Hold> {
  let hold = lock.hold;
  while (hold !== null) {
    const next: Hold | null = isInCrowd(hold) ? hold.newer : null;
    yield hold;
    hold = next;
  }
}

/** Null when no hold of the lock has this token. */
export function holdWithToken(lock: Lock, token: number): Hold | null {
  if (lock.crowd === null) return lock.hold?.token === token ? lock.hold : null;
  let hold: CrowdHold | null = lock.crowd.newest;
  while (hold !== null && hold.token > token) hold = hold.older;
  return hold?.token === token ? hold : null;
}
