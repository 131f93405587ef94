/**
 * What happens without a command of its own: due timers, and the backlog of sessions to be ended or
 * stripped and of names to be served.
 * Both stop when the budget of the entry is used up (rule C1) and go on in the next one.
 */
import type { RefusalCode } from '../../api/entry.ts';
import { endHold, grantOf, headStep, refuseWait, removeWait, revoke, serve } from './locks.ts';
import {
  aliveSession,
  assert,
  holdsOf,
  holdsOfSession,
  isConsumer,
  isQuarantined,
  type NaiveDuty,
  type NaiveHold,
  type NaiveState,
  type NaiveTimer,
  type NaiveWait,
  permitsOf,
} from './state.ts';

export function workOnBacklog(state: NaiveState): void {
  for (;;) {
    const duty = state.backlog[0];
    if (duty === undefined) return;
    const step = nextStep(state, duty);
    if (step === null) {
      // Nothing left of it: done at once and at no cost, even with the budget used up.
      state.backlog = state.backlog.filter((other) => other !== duty);
      if (duty.kind === 'end') finishSession(state, duty.session);
    } else if (state.budget > 0) {
      state.budget -= 1;
      step();
    } else return;
  }
}

function nextStep(state: NaiveState, duty: NaiveDuty): (() => void) | null {
  switch (duty.kind) {
    case 'end':
      return nextStepOfEnd(state, duty.session);
    case 'strip':
      return nextStepOfStrip(state, duty.session);
    case 'serve':
      return nextCut(state, duty.name) ?? headStep(state, duty.name);
  }
}

/** Holds on quarantined names are left aside (rule C13). */
function holdsInService(state: NaiveState, session: number): NaiveHold[] {
  return holdsOfSession(state, session).filter(({ name }) => !isQuarantined(state, name));
}

function endWait(state: NaiveState, wait: NaiveWait, code: RefusalCode): void {
  removeWait(state, wait);
  refuseWait(state, wait, code);
  serve(state, wait.name);
}

/** One wait or hold less (rule C10); null when none is left. */
function nextStepOfEnd(state: NaiveState, id: number): (() => void) | null {
  const session = state.sessions.find((other) => other.id === id);
  assert(session !== undefined && session.ending !== null, `session ${id} is not ending`);
  const cause = session.ending;
  const wait = state.waits.find((other) => other.session === id);
  if (wait !== undefined) return () => endWait(state, wait, 'SESSION_EXPIRED');
  const hold = holdsInService(state, id)[0];
  if (hold === undefined) return null;
  if (cause === 'closed') {
    return () => {
      state.events.push({ type: 'released', ...grantOf(hold), cause: 'close', key: '', remaining: 0 });
      endHold(state, hold, { by: 'RELEASED', unclean: hold.revoking !== null });
    };
  }
  return () => {
    state.events.push({ type: 'expired', ...grantOf(hold), cause });
    endHold(state, hold, { by: 'REVOKED', unclean: true });
  };
}

/** A session that still has holds, on quarantined names, stays ending. */
function finishSession(state: NaiveState, id: number): void {
  if (holdsOfSession(state, id).length > 0) return;
  state.events.push({ type: 'sessionEnded', session: id });
  state.sessions = state.sessions.filter((other) => other.id !== id);
}

/** One wait or hold less of an account that is no consumer any more; null when nothing is left to do. */
function nextStepOfStrip(state: NaiveState, id: number): (() => void) | null {
  const { config } = state;
  const session = aliveSession(state, id);
  if (session === undefined) return null;
  if (config !== null && isConsumer(config, session.identity)) return null;
  const wait = state.waits.find((other) => other.session === id);
  if (wait !== undefined) {
    return () => endWait(state, wait, config === null ? 'NAMESPACE_NOT_FOUND' : 'FORBIDDEN');
  }
  const hold = holdsInService(state, id).find(({ revoking }) => revoking === null);
  if (hold === undefined) return null;
  return () => revoke(state, hold, config === null ? 'namespaceDeleted' : 'consumerRemoved');
}

/** README "serve" of the backlog: the youngest semaphore hold goes while the permits do not suffice (rule C9). */
function nextCut(state: NaiveState, name: string): (() => void) | null {
  const allowed = permitsOf(state.config, name);
  if (allowed === null || isQuarantined(state, name)) return null;
  const lasting = holdsOf(state, name).filter(
    ({ mode, revoking }) => mode === 'semaphore' && revoking === null,
  );
  const used = lasting.reduce((sum, hold) => sum + hold.permits, 0);
  const youngest = lasting.at(-1);
  if (used <= allowed || youngest === undefined) return null;
  return () => revoke(state, youngest, 'permitsCut');
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
      endWait(state, wait, 'WAIT_TIMEOUT');
      return;
    }
    case 'lockDelay':
      state.delays = state.delays.filter((delay) => delay.name !== timer.name);
      serve(state, timer.name);
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
