/**
 * The work of the backlog, step by step: ending sessions, taking back what an account may no longer have, and serving the
 * queues of names (rules C1, C2, C10). Holds on quarantined names are left aside, since what a step does there may be what
 * threw (rule C13).
 */
import type { LockEvent } from '../api/entry.ts';
import { assert } from './assert.ts';
import { leave } from './backlog.ts';
import { newestKept } from './crowd.ts';
import { endHold } from './ends.ts';
import { revoke } from './holds.ts';
import { isForeign, permitsOf } from './policy.ts';
import { dropIfIdle, dropWait, headStep, takeHeadStep } from './queue.ts';
import type { BacklogItem, Hold, Lock, ServeItem, Session, SessionItem, State, Wait } from './state.ts';

/** One entry's worth of consequences. */
export interface Work {
  readonly state: State;
  readonly events: LockEvent[];
  /** Consequences this entry may still carry out. */
  budget: number;
  /** Told whose fault it is if something throws from here on: a lock's, or (null) nobody's in particular. */
  about(name: string | null): void;
  /** Told before each consequence which lock it touches. */
  consequence(name: string): void;
}

/** Works on the backlog while budget is left; what has nothing left to do is finished even without. */
export function workOffBacklog(work: Work): void {
  const { backlog } = work.state;
  let finished = 0;
  for (const item of backlog) {
    if (!workOn(work, item)) break;
    leave(work.state, item);
    if (item.kind === 'end') finishSession(work, item.session);
    finished++;
  }
  if (finished > 0) backlog.splice(0, finished);
  work.about(null);
}

/** True when nothing is left to do, false when the budget is used up before. */
function workOn(work: Work, item: BacklogItem): boolean {
  return item.kind === 'serve' ? serveName(work, item) : workOnSession(work, item);
}

function workOnSession(work: Work, item: SessionItem): boolean {
  for (;;) {
    work.about(null);
    const target = nextTarget(work.state, item);
    if (target === null) return true;
    if (work.budget === 0) return false;
    work.budget--;
    work.consequence(target.lock.name);
    if (item.kind === 'end') endTarget(work, item.session, target);
    else stripTarget(work, target);
  }
}

/** What the item has to do next; null when it is done. */
function nextTarget(state: State, item: SessionItem): Wait | Hold | null {
  if (item.kind === 'strip' && !isForeign(state, item.session)) return null;
  for (;;) {
    while (item.next < item.targets.length) {
      const target = item.targets[item.next] as Wait | Hold;
      if (isOpen(item, target)) return target;
      item.next++;
    }
    const { waits, holds } = item.session;
    item.targets = [...waits, ...holds.values()].filter((target) => isOpen(item, target));
    item.next = 0;
    if (item.targets.length === 0) return null;
  }
}

function isOpen(item: SessionItem, target: Wait | Hold): boolean {
  if (target.kind === 'waiting') return item.session.waits.has(target);
  const isHeld = item.session.holds.get(target.token) === target;
  return isHeld && !target.lock.quarantined && (item.kind === 'end' || target.revoking === null);
}

function endTarget({ state, events }: Work, session: Session, target: Wait | Hold): void {
  const cause = session.ending;
  assert(cause !== null, 'a live session is being ended');
  if (target.kind === 'waiting') {
    dropWait(state, target, 'SESSION_EXPIRED', events);
    return;
  }
  const grant = { name: target.lock.name, session: session.id, token: target.token };
  if (cause === 'closed') events.push({ type: 'released', ...grant, cause: 'close', key: '', remaining: 0 });
  else events.push({ type: 'expired', ...grant, cause });
  endHold(state, target, 'RELEASED', cause === 'closed' && target.revoking === null, events);
}

/** Sessions that the configuration no longer allows lose what they have, but may still give it up themselves (rule C9). */
function stripTarget({ state, events }: Work, target: Wait | Hold): void {
  const isGone = state.config === null;
  if (target.kind === 'waiting')
    dropWait(state, target, isGone ? 'NAMESPACE_NOT_FOUND' : 'FORBIDDEN', events);
  else revoke(state, target, isGone ? 'namespaceDeleted' : 'consumerRemoved', events);
}

/** A session that still has holds, on quarantined names, stays; the end of each of them brings it here again. */
function finishSession({ state, events }: Work, session: Session): void {
  assert(session.waits.size === 0, 'a session ends with waits left');
  if (session.holds.size > 0) {
    for (const { lock } of session.holds.values()) assert(lock.quarantined, 'a session ends with locks left');
    return;
  }
  assert(state.sessions.delete(session.id), 'a session ends that is unknown');
  events.push({ type: 'sessionEnded', session: session.id });
}

function serveName(work: Work, { name }: ServeItem): boolean {
  const { state, events } = work;
  work.about(name);
  for (;;) {
    const lock = state.locks.get(name);
    if (lock === undefined) return true;
    const cut = holdToCut(state, lock);
    const step = cut === null ? headStep(state, lock) : null;
    if (cut === null && step === null) {
      dropIfIdle(state, lock);
      return true;
    }
    if (work.budget === 0) return false;
    work.budget--;
    work.consequence(name);
    if (cut !== null) revoke(state, cut, 'permitsCut', events);
    else if (step !== null) takeHeadStep(state, step, events);
  }
}

/** While a semaphore has given out more permits than it has now, the newest grants go (rule C9). */
function holdToCut(state: State, lock: Lock): Hold | null {
  const { crowd } = lock;
  if (crowd === null || lock.quarantined || crowd.newest.record.request.mode !== 'semaphore') return null;
  const permits = permitsOf(state.config, lock.name);
  if (permits === null || crowd.kept <= permits) return null;
  const hold = newestKept(crowd);
  assert(hold !== null, 'permits are kept by nobody');
  return hold;
}
