/**
 * What happens without a command of its own: due timers, and the backlog of sessions to be ended or stripped.
 * Both stop when the budget of the entry is used up (rule C1) and go on in the next one.
 */
import type { RefusalCode } from '../../api/entry.ts';
import { endHold, grantNext, grantOf, refuseWait, removeWait, revoke } from './locks.ts';
import {
  aliveSession,
  assert,
  isConsumer,
  type NaiveDuty,
  type NaiveHold,
  type NaiveState,
  type NaiveTimer,
} from './state.ts';

export function workOnBacklog(state: NaiveState): void {
  for (;;) {
    const duty = state.backlog[0];
    if (duty === undefined) return;
    const step = duty.kind === 'end' ? nextStepOfEnd(state, duty) : nextStepOfStrip(state, duty);
    if (step === null) {
      // Nothing left of it: done at once and at no cost, even with the budget used up.
      state.backlog = state.backlog.filter((other) => other !== duty);
      if (duty.kind === 'end') finishSession(state, duty);
    } else if (state.budget > 0) {
      state.budget -= 1;
      step();
    } else return;
  }
}

function holdsByRisingToken(state: NaiveState, session: number): NaiveHold[] {
  return state.holds.filter((hold) => hold.session === session).sort((a, b) => a.token - b.token);
}

/** One wait or hold less (rule C10); null when none is left. */
function nextStepOfEnd(state: NaiveState, duty: NaiveDuty): (() => void) | null {
  const session = state.sessions.find((other) => other.id === duty.session);
  assert(session !== undefined && session.ending !== null, `session ${duty.session} is not ending`);
  const cause = session.ending;
  const wait = state.waits.find((other) => other.session === duty.session);
  if (wait !== undefined) {
    return () => {
      removeWait(state, wait);
      refuseWait(state, wait, 'SESSION_EXPIRED');
    };
  }
  const hold = holdsByRisingToken(state, duty.session)[0];
  if (hold === undefined) return null;
  if (cause === 'closed') {
    return () => {
      state.events.push({ type: 'released', ...grantOf(hold), cause: 'close' });
      endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
    };
  }
  return () => {
    state.events.push({ type: 'expired', ...grantOf(hold), cause });
    endHold(state, hold, { by: 'REVOKED', unclean: true });
  };
}

function finishSession(state: NaiveState, duty: NaiveDuty): void {
  state.events.push({ type: 'sessionEnded', session: duty.session });
  state.sessions = state.sessions.filter((other) => other.id !== duty.session);
}

/** One wait or hold less of an account that is no consumer any more; null when nothing is left to do. */
function nextStepOfStrip(state: NaiveState, duty: NaiveDuty): (() => void) | null {
  const { config } = state;
  const session = aliveSession(state, duty.session);
  if (session === undefined) return null;
  if (config !== null && isConsumer(config, session.identity)) return null;
  const wait = state.waits.find((other) => other.session === duty.session);
  if (wait !== undefined) {
    const code: RefusalCode = config === null ? 'NAMESPACE_NOT_FOUND' : 'FORBIDDEN';
    return () => {
      removeWait(state, wait);
      refuseWait(state, wait, code);
    };
  }
  const hold = holdsByRisingToken(state, duty.session).find(({ revoking }) => revoking === null);
  if (hold === undefined) return null;
  return () => revoke(state, hold, config === null ? 'namespaceDeleted' : 'consumerRemoved');
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
