/**
 * What happens to one lock: grants, the turn of the next waiter, the end of a hold, forced ends.
 * Each function is a paragraph of src/core/README.md, in its order.
 */
import type { Ending, RefusalCode, RevokeCause } from '../../api/entry.ts';
import {
  aliveSession,
  assert,
  cancelTimers,
  forgetKey,
  holdOf,
  isConsumer,
  isFree,
  isQuarantined,
  keyOf,
  type NaiveHold,
  type NaiveSession,
  type NaiveState,
  type NaiveWait,
  queueOf,
  setTimer,
} from './state.ts';

/** README "grant". `waitedMs` null: it was granted at once. */
export function grant(
  state: NaiveState,
  session: NaiveSession,
  key: string,
  waitedMs: number | null,
): number {
  const record = keyOf(state, session.id, key);
  const { name, mode, permits, owner } = record.body;
  assert(isFree(state, name), `grant of ${JSON.stringify(name)}, which is not free`);
  assert(state.config !== null && session.ending === null, 'grant without config, or to an ending session');
  state.counter += 1;
  const token = state.counter;
  assert(Number.isSafeInteger(token), 'the tokens are used up');
  record.state = { is: 'held', token };
  const { maxHoldMs } = state.config;
  const limitMs = session.maxHoldMs === 0 ? maxHoldMs : Math.min(session.maxHoldMs, maxHoldMs);
  const maxHoldEnd = state.at + limitMs;
  state.holds.push({ name, session: session.id, key, token, maxHoldEnd, revoking: null });
  setTimer(state, maxHoldEnd, { of: 'maxHold', token });
  state.events.push({
    type: 'granted',
    name,
    session: session.id,
    key,
    token,
    mode,
    permits,
    owner,
    fromQueue: waitedMs !== null,
    waitedMs: waitedMs ?? 0,
  });
  return token;
}

/** Takes a wait out of its queue, with its timer. */
export function removeWait(state: NaiveState, wait: NaiveWait): void {
  assert(state.waits.includes(wait), 'the wait is not queued');
  state.waits = state.waits.filter((other) => other !== wait);
  cancelTimers(
    state,
    (timer) => timer.of === 'wait' && timer.session === wait.session && timer.key === wait.key,
  );
}

/** The end of a wait that is already out of its queue: key ended(code), event `refused` (fromQueue true). */
export function refuseWait(state: NaiveState, wait: NaiveWait, code: RefusalCode): void {
  assert(!state.waits.includes(wait), 'the wait is still queued');
  const record = keyOf(state, wait.session, wait.key);
  assert(record.state.is === 'waiting', 'the key of a wait does not wait');
  record.state = { is: 'ended', by: code, token: 0 };
  state.events.push({
    type: 'refused',
    name: wait.name,
    session: wait.session,
    key: wait.key,
    code,
    fromQueue: true,
  });
}

/** README "grantNext": rule C3, the conditions in the order given there. */
export function grantNext(state: NaiveState, name: string): void {
  while (isFree(state, name)) {
    const wait = queueOf(state, name)[0];
    if (wait === undefined) return;
    removeWait(state, wait);
    const session = aliveSession(state, wait.session);
    const code = whyNotGranted(state, wait, session);
    if (code !== null) refuseWait(state, wait, code);
    else if (session !== undefined) grant(state, session, wait.key, state.at - wait.queuedAt);
  }
}

function whyNotGranted(
  state: NaiveState,
  wait: NaiveWait,
  session: NaiveSession | undefined,
): RefusalCode | null {
  if (session === undefined) return 'SESSION_EXPIRED';
  if (wait.due <= state.at) return 'WAIT_TIMEOUT';
  if (state.config === null) return 'NAMESPACE_NOT_FOUND';
  if (!isConsumer(state.config, session.identity)) return 'FORBIDDEN';
  if (!state.config.modes.includes(keyOf(state, wait.session, wait.key).body.mode)) return 'INVALID';
  if (state.holds.length >= state.config.heldLocks) return 'QUOTA_EXCEEDED';
  return null;
}

/** README "end of a hold": what follows the event that ended it. Rule C8 decides what is unclean. */
export function endHold(
  state: NaiveState,
  hold: NaiveHold,
  { by, unclean }: { readonly by: Extract<Ending, 'RELEASED' | 'REVOKED'>; readonly unclean: boolean },
): void {
  assert(state.holds.includes(hold), `token ${hold.token} is not held`);
  state.holds = state.holds.filter((other) => other !== hold);
  cancelTimersOf(state, hold);
  const record = keyOf(state, hold.session, hold.key);
  assert(record.state.is === 'held' && record.state.token === hold.token, 'key and hold differ');
  record.state = { is: 'ended', by, token: hold.token };
  const session = state.sessions.find((other) => other.id === hold.session);
  if (record.settled && session !== undefined) forgetKey(session, hold.key);
  const lockDelayMs = state.config?.lockDelayMs ?? 0;
  if (unclean && lockDelayMs > 0 && !isQuarantined(state, hold.name)) {
    const until = state.at + lockDelayMs;
    state.delays.push({ name: hold.name, until });
    setTimer(state, until, { of: 'lockDelay', name: hold.name });
    state.events.push({ type: 'delayed', name: hold.name, until });
  } else grantNext(state, hold.name);
}

function cancelTimersOf(state: NaiveState, hold: NaiveHold): void {
  cancelTimers(
    state,
    (timer) => (timer.of === 'maxHold' || timer.of === 'revokeEnd') && timer.token === hold.token,
  );
}

/** README "revoke": the application gets one TTL to give the grant up (rule C9). */
export function revoke(state: NaiveState, hold: NaiveHold, cause: RevokeCause): void {
  if (hold.revoking !== null) return;
  assert(state.holds.includes(hold), `token ${hold.token} is not held`);
  const session = state.sessions.find((other) => other.id === hold.session);
  assert(session !== undefined, `the holder of token ${hold.token} is unknown`);
  cancelTimers(state, (timer) => timer.of === 'maxHold' && timer.token === hold.token);
  const until = state.at + session.ttlMs;
  hold.revoking = { cause, until };
  if (!isQuarantined(state, hold.name)) setTimer(state, until, { of: 'revokeEnd', token: hold.token });
  state.events.push({ type: 'revoking', ...grantOf(hold), cause, until });
}

/** The three fields by which events name a grant. */
export function grantOf(hold: NaiveHold): { name: string; session: number; token: number } {
  return { name: hold.name, session: hold.session, token: hold.token };
}

/** README "quarantine": of any name, held or not. */
export function quarantine(state: NaiveState, name: string, reason: string): void {
  if (isQuarantined(state, name)) return;
  state.quarantined.push(name);
  state.delays = state.delays.filter((delay) => delay.name !== name);
  cancelTimers(state, (timer) => timer.of === 'lockDelay' && timer.name === name);
  const hold = holdOf(state, name);
  if (hold !== undefined) cancelTimersOf(state, hold);
  state.events.push({ type: 'quarantined', name, reason });
  for (const wait of queueOf(state, name)) {
    removeWait(state, wait);
    refuseWait(state, wait, 'QUARANTINED');
  }
  assert(!isFree(state, name) && queueOf(state, name).length === 0, 'quarantine left the name in service');
}

export function unquarantine(state: NaiveState, name: string, by: string): void {
  assert(isQuarantined(state, name), `${JSON.stringify(name)} is not quarantined`);
  state.quarantined = state.quarantined.filter((other) => other !== name);
  state.events.push({ type: 'unquarantined', name, by });
  const hold = holdOf(state, name);
  if (hold !== undefined) {
    const { token, revoking, maxHoldEnd } = hold;
    const due = Math.max(state.at, revoking?.until ?? maxHoldEnd);
    setTimer(state, due, { of: revoking === null ? 'maxHold' : 'revokeEnd', token });
  }
  grantNext(state, name);
  assert(holdOf(state, name) !== undefined || queueOf(state, name).length === 0, 'a free name has waiters');
}
