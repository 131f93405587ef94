/**
 * What happens without a command of its own: due timers, and the backlog of sessions to be ended or stripped.
 * Both stop when the budget of the entry is used up (rule C1) and go on in the next one.
 */
import type { RefusalCode } from '../../api/entry.ts';
import { endHold, grantNext, grantOf, refuseWait, removeWait, revoke } from './locks.ts';
import {
  aliveSession,
  assert,
  type NaiveDuty,
  type NaiveHold,
  type NaiveState,
  type NaiveTimer,
} from './state.ts';

export function workOnBacklog(state: NaiveState): void {
  while (state.budget > 0) {
    const duty = state.backlog[0];
    if (duty === undefined) return;
    const left = duty.kind === 'end' ? endOneStep(state, duty) : stripOneStep(state, duty);
    if (left) state.budget -= 1;
    else state.backlog = state.backlog.filter((other) => other !== duty);
  }
}

function holdsByRisingToken(state: NaiveState, session: number): NaiveHold[] {
  return state.holds.filter((hold) => hold.session === session).sort((a, b) => a.token - b.token);
}

/** One wait or hold less; false when none was left and the session is gone (rule C10). */
function endOneStep(state: NaiveState, duty: NaiveDuty & { kind: 'end' }): boolean {
  const session = state.sessions.find((other) => other.id === duty.session);
  assert(session !== undefined && session.ending !== null, `session ${duty.session} is not ending`);
  const wait = state.waits.find((other) => other.session === duty.session);
  if (wait !== undefined) {
    removeWait(state, wait);
    refuseWait(state, wait, 'SESSION_EXPIRED');
    return true;
  }
  const hold = holdsByRisingToken(state, duty.session)[0];
  if (hold !== undefined && session.ending === 'closed') {
    state.events.push({ type: 'released', ...grantOf(hold), cause: 'close' });
    endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
    return true;
  }
  if (hold !== undefined) {
    state.events.push({ type: 'expired', ...grantOf(hold), cause: session.ending });
    endHold(state, hold, { by: 'REVOKED', unclean: true });
    return true;
  }
  state.events.push({ type: 'sessionEnded', session: duty.session });
  state.sessions = state.sessions.filter((other) => other !== session);
  return false;
}

/** One wait or hold less of an account that is no consumer any more; false when nothing is left to do. */
function stripOneStep(state: NaiveState, duty: NaiveDuty & { kind: 'strip' }): boolean {
  if (aliveSession(state, duty.session) === undefined) return false;
  const gone = state.config === null;
  const wait = state.waits.find((other) => other.session === duty.session);
  if (wait !== undefined) {
    const code: RefusalCode = gone ? 'NAMESPACE_NOT_FOUND' : 'FORBIDDEN';
    removeWait(state, wait);
    refuseWait(state, wait, code);
    return true;
  }
  const hold = holdsByRisingToken(state, duty.session).find((other) => other.token > duty.beyond);
  if (hold === undefined) return false;
  duty.beyond = hold.token;
  revoke(state, hold, gone ? 'namespaceDeleted' : 'consumerRemoved');
  return true;
}

export function fireTimers(state: NaiveState): void {
  while (state.budget > 0) {
    const timer = firstDue(state);
    if (timer === undefined) return;
    state.timers = state.timers.filter((other) => other !== timer);
    state.budget -= 1;
    fire(state, timer);
  }
}

function firstDue(state: NaiveState): NaiveTimer | undefined {
  let first: NaiveTimer | undefined;
  for (const timer of state.timers) {
    if (timer.due > state.at) continue;
    if (first === undefined || timer.due < first.due) first = timer;
    else if (timer.due === first.due && timer.sequence < first.sequence) first = timer;
  }
  return first;
}

function fire(state: NaiveState, timer: NaiveTimer): void {
  switch (timer.of) {
    case 'wait': {
      const wait = state.waits.find((other) => other.session === timer.session && other.key === timer.key);
      assert(wait !== undefined, 'the timer of a wait outlived it');
      removeWait(state, wait);
      refuseWait(state, wait, 'WAIT_TIMEOUT');
      return;
    }
    case 'lockDelay':
      state.delays = state.delays.filter((delay) => delay.name !== timer.name);
      grantNext(state, timer.name);
      return;
    case 'maxHold':
      revoke(state, heldBy(state, timer.token), 'maxHold');
      return;
    case 'revokeEnd': {
      const hold = heldBy(state, timer.token);
      assert(hold.revoking !== null, `token ${timer.token} is not being revoked`);
      state.events.push({ type: 'revoked', ...grantOf(hold), cause: hold.revoking.cause, unsafe: false });
      endHold(state, hold, { by: 'REVOKED', unclean: true });
      return;
    }
  }
}

function heldBy(state: NaiveState, token: number): NaiveHold {
  const hold = state.holds.find((other) => other.token === token);
  assert(hold !== undefined, `the timer of token ${token} outlived its hold`);
  return hold;
}
