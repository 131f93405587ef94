/**
 * The whole state as text lines (one JSON array each) and back. Written rarely and off the hot path, so plain beats small.
 * A state read back behaves exactly as the one written: order of sessions, queues and timers is kept.
 */
import type { Acquire } from '../api/entry.ts';
import { FORMAT_VERSION } from '../api/limits.ts';
import { unreachable } from './assert.ts';
import { canonicalJson } from './codec/commands.ts';
import type { BacklogLine, HoldFields, KeyLine, KeyState, LockLine, SnapshotLine } from './snapshot-lines.ts';
import type { BacklogItem, Hold, KeyRecord, Lock, Session, SessionHeader, State } from './state.ts';

export { SnapshotReader } from './snapshot-reader.ts';

/** Lines of a snapshot, without line ends. */
export function* writeSnapshot(state: State): Generator<string> {
  yield canonicalJson({
    kind: 'leasehold snapshot',
    format: FORMAT_VERSION,
    lineage: state.lineage,
    epoch: state.epoch,
    index: state.index,
    at: state.at,
    behaviour: state.behaviour,
    eventHash: state.eventHash,
    configVersion: state.configVersion,
    config: state.config,
    lastToken: state.lastToken,
    lastSession: state.lastSession,
    timerSequence: state.timers.sequence,
  });
  for (const line of bodyOf(state)) yield JSON.stringify(line);
}

function* bodyOf(state: State): Generator<SnapshotLine> {
  for (const session of state.sessions.values()) {
    yield ['session', headerOf(session)];
    // Holds whose key was settled are found under their key as well: a settled key stays while it is held.
    for (const record of session.keys.values()) yield keyLine(record);
    for (const hold of session.holds.values()) {
      const { keys } = hold;
      if (keys === null) continue;
      yield ['hold', requestOf(hold.record), keys.map(({ request }) => request.key), ...holdFields(hold)];
    }
  }
  for (const lock of state.locks.values()) yield lockLine(lock);
  for (const item of state.backlog) yield backlogLine(item);
  yield ['end', state.sessions.size, state.locks.size, state.holds, state.waits];
}

// Field by field, so that equal states give equal bytes however they came to be; sorting keys instead costs eight times as much.

function headerOf(session: Session): SessionHeader {
  const { id, client, identity, ttlMs, maxHoldMs, secretHash, attach, ending } = session;
  const { account, podUid } = identity;
  return { id, client, identity: { account, podUid }, ttlMs, maxHoldMs, secretHash, attach, ending };
}

function keyLine(record: KeyRecord): KeyLine {
  return ['key', record.session.id, requestOf(record), record.settled, keyState(record)];
}

function requestOf({ request: of }: KeyRecord): Acquire {
  const { type, session, attach, key, name, mode, permits, reentrant, owner, purpose } = of;
  const { waitMs, bucket, mapVersion } = of;
  const what = { name, mode, permits, reentrant, owner, purpose };
  return { type, session, attach, key, ...what, waitMs, bucket, mapVersion, acks: [] };
}

function holdFields({ token, since, revoking, due, sequence }: Hold): HoldFields {
  return [token, since, revoking, due, sequence];
}

function lockLine({ name, quarantined, delay, queue }: Lock): LockLine {
  const waits = [...(queue ?? [])].map(({ record }) => [record.session.id, record.request.key] as const);
  return ['lock', name, quarantined, delay === null ? null : [delay.due, delay.sequence], waits];
}

function backlogLine(item: BacklogItem): BacklogLine {
  return item.kind === 'serve' ? ['backlog', item.kind, item.name] : ['backlog', item.kind, item.session.id];
}

function keyState({ state }: KeyRecord): KeyState {
  switch (state.kind) {
    case 'waiting':
      return ['waiting', state.queuedAt, state.due, state.sequence];
    case 'held':
      return state.keys === null ? ['held', ...holdFields(state)] : ['joined'];
    case 'ended':
      return ['ended', state.by, state.token];
    default:
      return unreachable(state);
  }
}
