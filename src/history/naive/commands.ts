/** All other commands: sessions, administration and the leader's own. One function each, as in src/core/README.md. */
import type {
  Attach,
  Break,
  CloseSession,
  Command,
  CommandResult,
  Configure,
  ExpireSessions,
  OpenSession,
  RaiseBehaviour,
  ReportStale,
  SessionEndCause,
  TakeOver,
  Unquarantine,
} from '../../api/entry.ts';
import {
  BEHAVIOUR_LEVEL_MAX,
  CLIENT_BYTES_MAX,
  HOLD_MS_MAX,
  HOLD_MS_MIN,
  TOKEN_MAX,
  TOKEN_RAISE_MAX,
  TOKENS_PER_SECOND,
  UNIX_SECONDS_MAX,
} from '../../api/limits.ts';
import { utf8Length } from '../../api/text.ts';
import { acquire, cancel, notHeld, positionOf, refused, release, speaker } from './acquire.ts';
import { endHold, grantOf, quarantine, revoke, unquarantine } from './locks.ts';
import {
  addDuty,
  aliveSession,
  assert,
  holdsOf,
  holdsOfSession,
  isConsumer,
  isQuarantined,
  type NaiveSession,
  type NaiveState,
} from './state.ts';

const SECRET_HASH = /^[0-9a-f]{64}$/;
const DONE: CommandResult = { type: 'done' };

export function applyCommand(state: NaiveState, command: Command): CommandResult {
  switch (command.type) {
    case 'openSession':
      return openSession(state, command);
    case 'attach':
      return attach(state, command);
    case 'closeSession':
      return closeSession(state, command);
    case 'expireSessions':
      return expireSessions(state, command);
    case 'acquire':
      return acquire(state, command);
    case 'release':
      return release(state, command);
    case 'cancel':
      return cancel(state, command);
    case 'configure':
      return configure(state, command);
    case 'break':
      return breakGrant(state, command);
    case 'takeOver':
      return takeOver(state, command);
    case 'resign':
      return DONE;
    case 'raiseBehaviour':
      return raiseBehaviour(state, command);
    case 'quarantine':
      quarantine(state, command.name, command.reason);
      return DONE;
    case 'unquarantine':
      return endQuarantine(state, command);
    case 'reportStale':
      return reportStale(state, command);
  }
}

function openSession(state: NaiveState, command: OpenSession): CommandResult {
  const { config } = state;
  if (config === null) return refused('NAMESPACE_NOT_FOUND');
  if (!isConsumer(config, command.identity)) return refused('FORBIDDEN');
  if (state.sessions.length >= config.sessions) return refused('QUOTA_EXCEEDED');
  const { ttlMs, maxHoldMs } = command;
  if (!Number.isInteger(ttlMs) || ttlMs < config.ttlMsMin || ttlMs > config.ttlMsMax)
    return refused('INVALID');
  const holdBounded = Number.isInteger(maxHoldMs) && maxHoldMs >= HOLD_MS_MIN && maxHoldMs <= HOLD_MS_MAX;
  if (maxHoldMs !== 0 && !holdBounded) return refused('INVALID');
  if (!command.client.isWellFormed() || utf8Length(command.client) > CLIENT_BYTES_MAX)
    return refused('INVALID');
  if (!SECRET_HASH.test(command.secretHash)) return refused('INVALID');
  state.lastSession += 1;
  const { client, identity, secretHash } = command;
  const id = state.lastSession;
  assert(!state.sessions.some((session) => session.id === id), `session ${id} exists already`);
  state.sessions.push({
    id,
    client,
    identity,
    ttlMs,
    maxHoldMs,
    secretHash,
    attach: 1,
    ending: null,
    keys: [],
  });
  state.events.push({ type: 'sessionOpened', session: id, client, identity, ttlMs });
  return { type: 'opened', session: id };
}

function attach(state: NaiveState, command: Attach): CommandResult {
  const session = aliveSession(state, command.session);
  if (session === undefined || session.secretHash !== command.secretHash) return refused('SESSION_EXPIRED');
  if (!(command.attach > session.attach)) return refused('SUPERSEDED');
  session.attach = command.attach;
  const waits = state.waits.filter((wait) => wait.session === session.id);
  return {
    type: 'attached',
    ttlMs: session.ttlMs,
    grants: holdsOfSession(state, session.id).map(({ name, token, keys, mode, revoking }) => ({
      name,
      token,
      keys: [...keys],
      mode,
      revoking: revoking?.cause ?? null,
    })),
    waits: waits.map(({ name, key }) => ({ name, key, position: positionOf(state, name, session.id, key) })),
  };
}

function closeSession(state: NaiveState, command: CloseSession): CommandResult {
  const speaking = speaker(state, command);
  if ('refusal' in speaking) return speaking.refusal;
  endSession(state, speaking.session, command.clean ? 'closed' : 'stream');
  return DONE;
}

function expireSessions(state: NaiveState, command: ExpireSessions): CommandResult {
  for (const id of command.sessions) {
    const session = aliveSession(state, id);
    if (session !== undefined) endSession(state, session, command.cause);
  }
  return DONE;
}

/** README "end the session": only marked here, emptied by the backlog (rule C10). */
function endSession(state: NaiveState, session: NaiveSession, cause: SessionEndCause): void {
  assert(session.ending === null, `session ${session.id} is ending already`);
  session.ending = cause;
  state.events.push({ type: 'sessionEnding', session: session.id, cause });
  addDuty(state, { kind: 'end', session: session.id });
}

function configure(state: NaiveState, command: Configure): CommandResult {
  if (!(command.version > state.version)) return refused('INVALID');
  const before = state.config;
  const { config } = command;
  state.version = command.version;
  state.config = config;
  state.events.push({ type: 'configured', version: command.version });
  for (const session of [...state.sessions].sort((a, b) => a.id - b.id)) {
    if (session.ending !== null) continue;
    if (config !== null && isConsumer(config, session.identity)) continue;
    addDuty(state, { kind: 'strip', session: session.id });
  }
  const isSame =
    sameList(before?.modes ?? [], config?.modes ?? []) &&
    sameList(before?.semaphores ?? [], config?.semaphores ?? []);
  if (!isSame) for (const name of namesToLookAt(state)) addDuty(state, { kind: 'serve', name });
  return DONE;
}

function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Names with a semaphore hold or with waiters, in order of UTF-16 units. */
function namesToLookAt(state: NaiveState): string[] {
  const held = state.holds.filter(({ mode }) => mode === 'semaphore');
  return [...new Set([...held, ...state.waits].map(({ name }) => name))].sort();
}

function breakGrant(state: NaiveState, command: Break): CommandResult {
  const hold = holdsOf(state, command.name).find(({ token }) => token === command.token);
  if (hold === undefined) return notHeld(state, command.name, command.token);
  const { now, reason, by } = command;
  state.events.push({ type: 'broken', ...grantOf(hold), now, reason, by });
  if (now) {
    state.events.push({ type: 'revoked', ...grantOf(hold), cause: 'break', unsafe: true });
    endHold(state, hold, { by: 'REVOKED', unclean: false });
  } else revoke(state, hold, 'break');
  return DONE;
}

/** Rule C12: the counter only ever rises, by a bounded step, and never because of a clock past 2100. */
function takeOver(state: NaiveState, command: TakeOver): CommandResult {
  assert(command.epoch === state.epoch, 'takeOver names another epoch than its entry');
  assert(state.index === 1 || command.tokenFloor === 0, 'a token floor after the first entry');
  const before = state.counter;
  state.counter = Math.max(state.counter, command.tokenFloor);
  if (command.unixSeconds <= UNIX_SECONDS_MAX) {
    const raised = Math.min(command.unixSeconds * TOKENS_PER_SECOND, state.counter + TOKEN_RAISE_MAX);
    state.counter = Math.max(state.counter, raised);
  }
  assert(state.counter >= before && state.counter <= TOKEN_MAX, 'the token counter left its range');
  state.events.push({ type: 'tookOver', epoch: command.epoch, token: state.counter, reason: command.reason });
  return DONE;
}

function raiseBehaviour(state: NaiveState, command: RaiseBehaviour): CommandResult {
  if (!(command.level > state.behaviour && command.level <= BEHAVIOUR_LEVEL_MAX)) return refused('INVALID');
  state.behaviour = command.level;
  return DONE;
}

function endQuarantine(state: NaiveState, command: Unquarantine): CommandResult {
  if (!isQuarantined(state, command.name)) return refused('INVALID');
  unquarantine(state, command.name, command.by);
  return DONE;
}

/** Session 0: reported by somebody without a session, the resource itself for instance. */
function reportStale(state: NaiveState, command: ReportStale): CommandResult {
  const isKnown = command.session === 0 || aliveSession(state, command.session) !== undefined;
  if (!isKnown) return refused('SESSION_EXPIRED');
  const { name, session, token, resource } = command;
  state.events.push({ type: 'fencingRejected', name, session, token, resource });
  return DONE;
}
