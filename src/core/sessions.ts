/**
 * Sessions: open, attach, close, expire. What they held is freed over as many entries as it takes: backlog-steps.ts.
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
  SessionEndCause,
  WaitView,
} from '../api/entry.ts';
import { CLIENT_BYTES_MAX, HOLD_MS_MAX, HOLD_MS_MIN } from '../api/limits.ts';
import { textProblem } from '../api/text.ts';
import { actingSession, DONE, invalid } from './answers.ts';
import { assert } from './assert.ts';
import { joinToEnd } from './backlog.ts';
import { keysOf } from './holds.ts';
import { isAlive, isConsumer } from './policy.ts';
import { newSession, type Session, type State, type Wait } from './state.ts';

const SECRET_HASH = /^[0-9a-f]{64}$/;
const CLIENT_BOUNDS = { min: 0, max: CLIENT_BYTES_MAX } as const;

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
  state.sessions.set(
    id,
    newSession({ id, client, identity, ttlMs, maxHoldMs, secretHash, attach: 1, ending: null }),
  );
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
  if (textProblem(command.client, CLIENT_BOUNDS) !== null) {
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
    keys: keysOf(hold).map(({ request }) => request.key),
    mode: hold.record.request.mode,
    revoking: hold.revoking,
  }));
}

function waitsOf(session: Session): WaitView[] {
  const positions = positionsOf(session);
  return [...session.waits].map((wait) => {
    const position = positions.get(wait);
    assert(position !== undefined, 'a wait is not in its queue');
    return { name: wait.lock.name, key: wait.record.request.key, position };
  });
}

/** Each queue is gone through once, however often the session waits there: attaching must not stall the others. */
function positionsOf(session: Session): ReadonlyMap<Wait, number> {
  const positions = new Map<Wait, number>();
  for (const { queue } of new Set([...session.waits].map(({ lock }) => lock))) {
    let position = 0;
    for (const wait of queue ?? []) {
      position++;
      if (wait.record.session === session) positions.set(wait, position);
    }
  }
  return positions;
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
  joinToEnd(state, session);
}
