/**
 * What happens to one lock: grants and joins, the turn of the next waiter, the end of a hold, forced ends.
 * Each function is a paragraph of src/core/README.md, in its order.
 */
import type { Acquire, Ending, RefusalCode, RevokeCause } from '../../api/entry.ts';
import { KEYS_PER_GRANT_MAX } from '../../api/limits.ts';
import {
  addDuty,
  aliveSession,
  assert,
  cancelTimers,
  forgetKey,
  holdsOf,
  isConsumer,
  isDelayed,
  isQuarantined,
  keyOf,
  type NaiveHold,
  type NaiveSession,
  type NaiveState,
  type NaiveWait,
  permitsOf,
  queueOf,
  setTimer,
} from './state.ts';

/** What a request asks for, as its key remembers it. */
export type Wanted = Pick<Acquire, 'name' | 'mode' | 'permits' | 'owner' | 'reentrant'>;

/** README "fits". */
export function fits(state: NaiveState, { name, mode, permits }: Wanted): boolean {
  if (isDelayed(state, name) || isQuarantined(state, name)) return false;
  const holds = holdsOf(state, name);
  if (holds.length === 0) return true;
  if (mode === 'shared') return holds.every((hold) => hold.mode === 'shared');
  if (mode !== 'semaphore' || holds.some((hold) => hold.mode !== 'semaphore')) return false;
  const used = holds.reduce((sum, hold) => sum + hold.permits, 0);
  return used + permits <= (permitsOf(state.config, name) ?? 0);
}

/** README "joins": the hold that the request joins, of several the one with the lowest token (rule C6). */
export function joinable(state: NaiveState, session: number, wanted: Wanted): NaiveHold | undefined {
  if (!wanted.reentrant) return undefined;
  return holdsOf(state, wanted.name).find(
    (hold) =>
      hold.session === session &&
      hold.reentrant &&
      hold.owner === wanted.owner &&
      hold.mode === wanted.mode &&
      hold.permits === wanted.permits &&
      hold.revoking === null,
  );
}

/** README "acquire" 5, the parts about mode and permits: the field that is at fault, or null. */
export function modeProblem(state: NaiveState, { name, mode, permits }: Wanted): 'mode' | 'permits' | null {
  if (state.config?.modes.includes(mode) !== true) return 'mode';
  const allowed = permitsOf(state.config, name);
  if ((mode === 'semaphore') !== (allowed !== null)) return 'mode';
  return allowed !== null && permits > allowed ? 'permits' : null;
}

/** README "grant". `waitedMs` null: it was granted at once. */
export function grant(
  state: NaiveState,
  session: NaiveSession,
  key: string,
  waitedMs: number | null,
): number {
  const record = keyOf(state, session.id, key);
  assert(fits(state, record.body), `grant of ${JSON.stringify(record.body.name)}, which it does not fit`);
  assert(state.config !== null && session.ending === null, 'grant without config, or to an ending session');
  state.counter += 1;
  const token = state.counter;
  assert(Number.isSafeInteger(token), 'the tokens are used up');
  const { maxHoldMs } = state.config;
  const limitMs = session.maxHoldMs === 0 ? maxHoldMs : Math.min(session.maxHoldMs, maxHoldMs);
  const maxHoldEnd = state.at + limitMs;
  const { purpose, body } = record;
  const given = { session: session.id, token, keys: [key], since: state.at, maxHoldEnd };
  const hold: NaiveHold = { ...body, purpose, ...given, revoking: null };
  state.holds.push(hold);
  setTimer(state, maxHoldEnd, { of: 'maxHold', token });
  sayGranted(state, hold, key, { joined: false, waitedMs });
  return token;
}

/** README "join": one key more for a hold that is there. */
export function join(state: NaiveState, hold: NaiveHold, key: string, waitedMs: number | null): number {
  assert(state.holds.includes(hold) && hold.keys.length < KEYS_PER_GRANT_MAX, 'the hold takes no key');
  assert(!hold.keys.includes(key), 'the key is in the hold already');
  hold.keys.push(key);
  sayGranted(state, hold, key, { joined: true, waitedMs });
  return hold.token;
}

function sayGranted(
  state: NaiveState,
  hold: NaiveHold,
  key: string,
  { joined, waitedMs }: { readonly joined: boolean; readonly waitedMs: number | null },
): void {
  const { name, session, token, mode, permits, owner } = hold;
  keyOf(state, session, key).state = { is: 'held', token };
  state.events.push({
    type: 'granted',
    name,
    session,
    key,
    token,
    mode,
    permits,
    owner,
    joined,
    fromQueue: waitedMs !== null,
    waitedMs: waitedMs ?? 0,
  });
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

/** README "head step of a lock": what would be done with the head of the queue; null: there is no step (rule C3). */
export function headStep(state: NaiveState, name: string): (() => void) | null {
  if (isDelayed(state, name) || isQuarantined(state, name)) return null;
  const wait = queueOf(state, name)[0];
  if (wait === undefined) return null;
  const refuse = (code: RefusalCode) => () => {
    removeWait(state, wait);
    refuseWait(state, wait, code);
  };
  const session = aliveSession(state, wait.session);
  const wanted = keyOf(state, wait.session, wait.key).body;
  if (session === undefined) return refuse('SESSION_EXPIRED');
  if (wait.due <= state.at) return refuse('WAIT_TIMEOUT');
  if (state.config === null) return refuse('NAMESPACE_NOT_FOUND');
  if (!isConsumer(state.config, session.identity)) return refuse('FORBIDDEN');
  if (modeProblem(state, wanted) !== null) return refuse('INVALID');
  const waitedMs = state.at - wait.queuedAt;
  const hold = joinable(state, session.id, wanted);
  if (hold !== undefined) {
    if (hold.keys.length >= KEYS_PER_GRANT_MAX) return refuse('QUOTA_EXCEEDED');
    return () => {
      removeWait(state, wait);
      join(state, hold, wait.key, waitedMs);
    };
  }
  if (!fits(state, wanted)) return null;
  if (state.holds.length >= state.config.heldLocks) return refuse('QUOTA_EXCEEDED');
  return () => {
    removeWait(state, wait);
    grant(state, session, wait.key, waitedMs);
  };
}

/** README "serve(lock)": one head step now, the others by the backlog. */
export function serve(state: NaiveState, name: string): void {
  headStep(state, name)?.();
  if (headStep(state, name) !== null) addDuty(state, { kind: 'serve', name });
}

/** A key that held a grant holds it no more: remembered as ended, unless its client has settled it. */
export function endKey(
  state: NaiveState,
  hold: NaiveHold,
  key: string,
  by: Extract<Ending, 'RELEASED' | 'REVOKED'>,
): void {
  const record = keyOf(state, hold.session, key);
  assert(record.state.is === 'held' && record.state.token === hold.token, 'key and hold differ');
  record.state = { is: 'ended', by, token: hold.token };
  const session = state.sessions.find((other) => other.id === hold.session);
  assert(session !== undefined, `the holder of token ${hold.token} is unknown`);
  if (record.settled) forgetKey(session, key);
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
  for (const key of hold.keys) endKey(state, hold, key, by);
  const lockDelayMs = state.config?.lockDelayMs ?? 0;
  if (unclean && lockDelayMs > 0 && !isQuarantined(state, hold.name)) {
    delay(state, hold.name, state.at + lockDelayMs);
  }
  const session = state.sessions.find((other) => other.id === hold.session);
  assert(session !== undefined, `the holder of token ${hold.token} is unknown`);
  if (session.ending !== null) addDuty(state, { kind: 'end', session: session.id });
  serve(state, hold.name);
}

/** A delay that runs and ends no earlier goes on; an earlier one is replaced. */
function delay(state: NaiveState, name: string, until: number): void {
  if (state.delays.some((other) => other.name === name && other.until >= until)) return;
  endDelay(state, name);
  state.delays.push({ name, until });
  setTimer(state, until, { of: 'lockDelay', name });
  state.events.push({ type: 'delayed', name, until });
}

function endDelay(state: NaiveState, name: string): void {
  state.delays = state.delays.filter((other) => other.name !== name);
  cancelTimers(state, (timer) => timer.of === 'lockDelay' && timer.name === name);
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
  endDelay(state, name);
  for (const hold of holdsOf(state, name)) cancelTimersOf(state, hold);
  state.events.push({ type: 'quarantined', name, reason });
  for (const wait of queueOf(state, name)) {
    removeWait(state, wait);
    refuseWait(state, wait, 'QUARANTINED');
  }
  assert(queueOf(state, name).length === 0, 'quarantine left waiters');
}

export function unquarantine(state: NaiveState, name: string, by: string): void {
  assert(isQuarantined(state, name), `${JSON.stringify(name)} is not quarantined`);
  state.quarantined = state.quarantined.filter((other) => other !== name);
  state.events.push({ type: 'unquarantined', name, by });
  for (const { token, revoking, maxHoldEnd } of holdsOf(state, name)) {
    const due = Math.max(state.at, revoking?.until ?? maxHoldEnd);
    setTimer(state, due, { of: revoking === null ? 'maxHold' : 'revokeEnd', token });
  }
  for (const hold of holdsOf(state, name)) {
    const session = state.sessions.find((other) => other.id === hold.session);
    assert(session !== undefined, `the holder of token ${hold.token} is unknown`);
    const isAllowed = state.config !== null && isConsumer(state.config, session.identity);
    if (session.ending !== null) addDuty(state, { kind: 'end', session: session.id });
    else if (!isAllowed) addDuty(state, { kind: 'strip', session: session.id });
  }
  addDuty(state, { kind: 'serve', name });
}
