/**
 * Sessions: open, attach, close, expire, and the backlog that ends them over as many entries as it takes (rules C1, C10).
 */
import type { NamespaceConfig } from '../api/config.ts';
import type {
  Attach,
  CloseSession,
  CommandResult,
  ExpireSessions,
  GrantView,
  LockEvent,
  OpenSession,
  RefusalCode,
  SessionEndCause,
  WaitView,
} from '../api/entry.ts';
import { CLIENT_BYTES_MAX, HOLD_MS_MAX, HOLD_MS_MIN } from '../api/limits.ts';
import { actingSession, DONE, fits, invalid, positionOf } from './acquire.ts';
import { assert } from './assert.ts';
import type { BacklogItem, Hold, Session, State, Wait } from './state.ts';
import { dequeue, endHold, isAlive, isConsumer, refuse, revoke } from './transitions.ts';

const SECRET_HASH = /^[0-9a-f]{64}$/;

export function openSession(state: State, command: OpenSession, events: LockEvent[]): CommandResult {
  const config = state.config;
  if (config === null) {
    return { type: 'refused', code: 'NAMESPACE_NOT_FOUND', message: 'the namespace has been removed' };
  }
  const { client, identity, ttlMs, maxHoldMs, secretHash } = command;
  if (!isConsumer(config, identity)) {
    return {
      type: 'refused',
      code: 'FORBIDDEN',
      message: `${identity.account} is not a consumer of this namespace`,
    };
  }
  if (state.sessions.size >= config.sessions) {
    const message = `the namespace has ${config.sessions} sessions already`;
    return { type: 'refused', code: 'QUOTA_EXCEEDED', message, limit: config.sessions };
  }
  const problem = sessionProblem(config, command);
  if (problem !== null) return problem;
  const id = ++state.lastSession;
  assert(!state.sessions.has(id), 'a session id is used twice');
  state.sessions.set(id, {
    id,
    client,
    identity,
    ttlMs,
    maxHoldMs,
    secretHash,
    attach: 1,
    ending: null,
    keys: new Map(),
    holds: new Map(),
    waits: new Set(),
    unsettled: 0,
    digest: 0,
  });
  events.push({ type: 'sessionOpened', session: id, client, identity, ttlMs });
  return { type: 'opened', session: id };
}

function sessionProblem(config: NamespaceConfig, command: OpenSession): CommandResult | null {
  const { ttlMs, maxHoldMs } = command;
  if (!Number.isSafeInteger(ttlMs) || ttlMs < config.ttlMsMin || ttlMs > config.ttlMsMax) {
    const bounds = `${config.ttlMsMin} to ${config.ttlMsMax} ms`;
    return invalid(
      'ttl_s',
      `the namespace allows a TTL of ${bounds}`,
      ttlMs < config.ttlMsMin ? config.ttlMsMin : config.ttlMsMax,
    );
  }
  const isHoldInBounds =
    Number.isSafeInteger(maxHoldMs) && maxHoldMs >= HOLD_MS_MIN && maxHoldMs <= HOLD_MS_MAX;
  if (maxHoldMs !== 0 && !isHoldInBounds) {
    return invalid('max_hold_ms', `the max hold must be ${HOLD_MS_MIN} to ${HOLD_MS_MAX} ms`, HOLD_MS_MAX);
  }
  if (!fits(command.client, CLIENT_BYTES_MAX)) {
    return invalid('client', `the client is longer than ${CLIENT_BYTES_MAX} bytes`, CLIENT_BYTES_MAX);
  }
  return SECRET_HASH.test(command.secretHash)
    ? null
    : invalid('secretHash', 'the secret hash is not 64 hex digits');
}

export function attach(state: State, command: Attach): CommandResult {
  const session = actingSession(state, command.session, null);
  if ('type' in session) return session;
  if (command.secretHash !== session.secretHash) {
    // Not told apart from an unknown session: a guesser learns nothing.
    return { type: 'refused', code: 'SESSION_EXPIRED', message: 'the session is unknown or has ended' };
  }
  if (command.attach <= session.attach) {
    return {
      type: 'refused',
      code: 'SUPERSEDED',
      message: `the session is attached under the higher number ${session.attach}`,
    };
  }
  session.attach = command.attach;
  return { type: 'attached', ttlMs: session.ttlMs, grants: grantsOf(session), waits: waitsOf(session) };
}

function grantsOf(session: Session): GrantView[] {
  return [...session.holds.values()].map((hold) => ({
    name: hold.lock.name,
    token: hold.token,
    keys: [hold.record.request.key],
    mode: hold.record.request.mode,
    revoking: hold.revoking !== null,
  }));
}

function waitsOf(session: Session): WaitView[] {
  return [...session.waits].map((wait) => ({
    name: wait.lock.name,
    key: wait.record.request.key,
    position: positionOf(wait),
  }));
}

export function closeSession(state: State, command: CloseSession, events: LockEvent[]): CommandResult {
  const session = actingSession(state, command.session, command.attach);
  if ('type' in session) return session;
  endSession(state, session, command.clean ? 'closed' : 'stream', events);
  return DONE;
}

export function expireSessions(state: State, command: ExpireSessions, events: LockEvent[]): CommandResult {
  for (const id of command.sessions) {
    const session = state.sessions.get(id);
    if (session !== undefined && isAlive(session)) endSession(state, session, command.cause, events);
  }
  return DONE;
}

function endSession(state: State, session: Session, cause: SessionEndCause, events: LockEvent[]): void {
  assert(isAlive(session), 'a session ends twice');
  session.ending = cause;
  events.push({ type: 'sessionEnding', session: session.id, cause });
  state.backlog.push({ kind: 'end', session, targets: [], next: 0 });
}

/** Sessions that the configuration no longer allows lose what they have, but may still give it up themselves (rule C9). */
export function stripForeignSessions(state: State): void {
  const waiting = new Set(state.backlog.filter(({ kind }) => kind === 'strip').map(({ session }) => session));
  for (const session of state.sessions.values()) {
    if (isForeign(state, session) && !waiting.has(session)) {
      state.backlog.push({ kind: 'strip', session, targets: [], next: 0 });
    }
  }
}

/** Works on the backlog; returns what is left of the budget. `about` is told which lock each step touches. */
export function workOffBacklog(
  state: State,
  budget: number,
  events: LockEvent[],
  about: (name: string) => void,
): number {
  let left = budget;
  let finished = 0;
  for (const item of state.backlog) {
    let target = nextTarget(state, item);
    for (; target !== null && left > 0; left--) {
      about(target.lock.name);
      if (item.kind === 'end') endTarget(state, item.session, target, events);
      else stripTarget(state, target, events);
      target = nextTarget(state, item);
    }
    if (target !== null) break;
    if (item.kind === 'end') finishSession(state, item.session, events);
    finished++;
  }
  if (finished > 0) state.backlog.splice(0, finished);
  return left;
}

/** What the item has to do next; null when it is done. */
function nextTarget(state: State, item: BacklogItem): Wait | Hold | null {
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

function isOpen(item: BacklogItem, target: Wait | Hold): boolean {
  if (target.kind === 'waiting') return item.session.waits.has(target);
  const isHeld = item.session.holds.get(target.token) === target;
  return isHeld && (item.kind === 'end' || target.revoking === null);
}

/** A live session that the configuration in force would not let in. */
function isForeign(state: State, session: Session): boolean {
  return isAlive(session) && (state.config === null || !isConsumer(state.config, session.identity));
}

function endTarget(state: State, session: Session, target: Wait | Hold, events: LockEvent[]): void {
  const cause = session.ending;
  assert(cause !== null, 'a live session is being ended');
  if (target.kind === 'waiting') {
    dropWait(state, target, 'SESSION_EXPIRED', events);
    return;
  }
  const grant = { name: target.lock.name, session: session.id, token: target.token };
  if (cause === 'closed') events.push({ type: 'released', ...grant, cause: 'close' });
  else events.push({ type: 'expired', ...grant, cause });
  endHold(state, target, 'RELEASED', cause === 'closed' && target.revoking === null, events);
}

function stripTarget(state: State, target: Wait | Hold, events: LockEvent[]): void {
  const isGone = state.config === null;
  if (target.kind === 'waiting')
    dropWait(state, target, isGone ? 'NAMESPACE_NOT_FOUND' : 'FORBIDDEN', events);
  else revoke(state, target, isGone ? 'namespaceDeleted' : 'consumerRemoved', events);
}

function dropWait(state: State, wait: Wait, code: RefusalCode, events: LockEvent[]): void {
  dequeue(state, wait);
  refuse(wait.record, wait.lock.name, code, events, true);
}

function finishSession(state: State, session: Session, events: LockEvent[]): void {
  assert(session.holds.size === 0 && session.waits.size === 0, 'a session ends with locks left');
  assert(state.sessions.delete(session.id), 'a session ends that is unknown');
  events.push({ type: 'sessionEnded', session: session.id });
}
