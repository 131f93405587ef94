/**
 * The whole state as text lines (one JSON array each) and back. Written rarely and off the hot path, so plain beats small.
 * A state read back behaves exactly as the one written: order of sessions, queues and timers is kept.
 */
import type { Ending, RevokeCause } from '../api/entry.ts';
import { FORMAT_VERSION } from '../api/limits.ts';
import { digestOf } from '../api/wire.ts';
import { assert, unreachable } from './assert.ts';
import { FormatError } from './codec/bytes.ts';
import { canonicalJson } from './codec/commands.ts';
import {
  createState,
  type Hold,
  type KeyRecord,
  type Lock,
  type Session,
  type State,
  type Wait,
} from './state.ts';

type KeyState =
  | readonly ['waiting', queuedAt: number, due: number, sequence: number]
  | readonly [
      'held',
      token: number,
      since: number,
      revoking: RevokeCause | null,
      due: number,
      sequence: number,
    ]
  | readonly ['ended', by: Ending, token: number];

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
  for (const session of state.sessions.values()) {
    const { id, client, identity, ttlMs, maxHoldMs, secretHash, attach, ending } = session;
    const { account, podUid } = identity;
    const who = { account, podUid };
    yield JSON.stringify([
      'session',
      { id, client, identity: who, ttlMs, maxHoldMs, secretHash, attach, ending },
    ]);
    for (const record of session.keys.values()) yield keyLine(record);
    // Holds whose key was settled are found under their key as well: a settled key stays while it is held.
  }
  for (const lock of state.locks.values()) {
    const delay = lock.delay === null ? null : [lock.delay.due, lock.delay.sequence];
    const queue = [...(lock.queue ?? [])].map(({ record }) => [record.session.id, record.request.key]);
    yield JSON.stringify(['lock', lock.name, lock.quarantined, delay, queue]);
  }
  for (const { kind, session } of state.backlog) yield JSON.stringify(['backlog', kind, session.id]);
  yield JSON.stringify(['end', state.sessions.size, state.locks.size, state.holds, state.waits]);
}

function keyLine(record: KeyRecord): string {
  const { type, session, attach, key, name, mode, permits, reentrant, owner, purpose } = record.request;
  const { waitMs, bucket, mapVersion } = record.request;
  // Field by field, so that equal states give equal bytes however their commands came to be; sorting keys instead costs eight times as much.
  const request = {
    type,
    session,
    attach,
    key,
    name,
    mode,
    permits,
    reentrant,
    owner,
    purpose,
    waitMs,
    bucket,
    mapVersion,
  };
  return JSON.stringify(['key', session, { ...request, acks: [] }, record.settled, keyState(record)]);
}

function keyState({ state }: KeyRecord): KeyState {
  switch (state.kind) {
    case 'waiting':
      return ['waiting', state.queuedAt, state.due, state.sequence];
    case 'held':
      return ['held', state.token, state.since, state.revoking, state.due, state.sequence];
    case 'ended':
      return ['ended', state.by, state.token];
    default:
      return unreachable(state);
  }
}

/** Throws FormatError when the lines are not a whole snapshot of a format this program knows. */
export class SnapshotReader {
  #state: State | null = null;
  #isWhole = false;

  line(text: string): void {
    try {
      this.#line(JSON.parse(text));
    } catch (error) {
      if (error instanceof FormatError) throw error;
      throw new FormatError('a snapshot line cannot be read', { cause: error });
    }
  }

  #line(value: unknown): void {
    if (this.#state === null) {
      this.#state = readHeader(value);
      return;
    }
    if (!Array.isArray(value) || this.#isWhole) throw new FormatError('a snapshot line is out of place');
    const [kind, ...fields] = value as [string, ...never[]];
    if (kind === 'session') readSession(this.#state, ...(fields as unknown as [SessionHeader]));
    else if (kind === 'key') readKey(this.#state, ...(fields as unknown as KeyFields));
    else if (kind === 'lock') readLock(this.#state, ...(fields as unknown as LockFields));
    else if (kind === 'backlog')
      readBacklog(this.#state, ...(fields as unknown as ['end' | 'strip', number]));
    else if (kind === 'end') this.#isWhole = isComplete(this.#state, fields);
    else throw new FormatError(`unknown snapshot line ${kind}`);
  }

  finish(): State {
    if (this.#state === null || !this.#isWhole) throw new FormatError('the snapshot is not whole');
    return this.#state;
  }
}

type SessionHeader = Omit<Session, 'keys' | 'holds' | 'waits' | 'unsettled' | 'digest'>;
type KeyFields = [session: number, request: KeyRecord['request'], settled: boolean, state: KeyState];
type LockFields = [
  name: string,
  quarantined: boolean,
  delay: [number, number] | null,
  queue: [number, string][],
];

function readHeader(value: unknown): State {
  const header = value as Record<string, unknown>;
  if (header?.kind !== 'leasehold snapshot') throw new FormatError('this is not a snapshot');
  if (header.format !== FORMAT_VERSION)
    throw new FormatError(`snapshot format ${String(header.format)} is unknown`);
  const { kind: _kind, format: _format, lineage, timerSequence, ...fields } = header;
  const state = Object.assign(createState(String(lineage)), fields);
  state.timers.sequence = Number(timerSequence);
  return state;
}

function readSession(state: State, header: SessionHeader): void {
  const session = {
    ...header,
    keys: new Map(),
    holds: new Map(),
    waits: new Set<Wait>(),
    unsettled: 0,
    digest: 0,
  };
  state.sessions.set(header.id, session);
}

function bareLock(state: State, name: string): Lock {
  const known = state.locks.get(name);
  if (known !== undefined) return known;
  const lock: Lock = { name, hold: null, queue: null, delay: null, quarantined: false };
  state.locks.set(name, lock);
  return lock;
}

function readKey(
  state: State,
  sessionId: number,
  request: KeyRecord['request'],
  settled: boolean,
  key: KeyState,
): void {
  const session = state.sessions.get(sessionId);
  assert(session !== undefined, 'a key of an unknown session');
  const record: KeyRecord = { session, request, settled, state: { kind: 'ended', by: 'INVALID', token: 0 } };
  session.keys.set(request.key, record);
  if (key[0] !== 'waiting' && !settled) session.unsettled++;
  if (key[0] === 'ended') {
    record.state = { kind: 'ended', by: key[1], token: key[2] };
    return;
  }
  const lock = bareLock(state, request.name);
  if (key[0] === 'waiting') {
    const [, queuedAt, due, sequence] = key;
    const wait: Wait = { kind: 'waiting', record, lock, queuedAt, due, sequence, heapIndex: -1 };
    record.state = wait;
    session.waits.add(wait);
    state.waits++;
    state.timers.restore(wait);
    return;
  }
  const [, token, since, revoking, due, sequence] = key;
  const hold: Hold = { kind: 'held', record, lock, token, since, revoking, due, sequence, heapIndex: -1 };
  record.state = hold;
  lock.hold = hold;
  session.holds.set(token, hold);
  session.digest ^= digestOf(token);
  state.holds++;
  if (revoking !== null) state.revoking++;
}

function readLock(
  state: State,
  name: string,
  quarantined: boolean,
  delay: [number, number] | null,
  queue: [number, string][],
): void {
  const lock = bareLock(state, name);
  // Insertion order of names has no meaning, but holds and waits must be in the order they were made.
  lock.quarantined = quarantined;
  if (lock.hold !== null && !quarantined) state.timers.restore(lock.hold);
  if (delay !== null) {
    lock.delay = { kind: 'delay', lock, due: delay[0], sequence: delay[1], heapIndex: -1 };
    state.timers.restore(lock.delay);
  }
  if (queue.length > 0) lock.queue = new Set(queue.map(([session, key]) => waitOf(state, session, key)));
}

function waitOf(state: State, session: number, key: string): Wait {
  const wait = state.sessions.get(session)?.keys.get(key)?.state;
  assert(wait?.kind === 'waiting', 'a queue names a key that does not wait');
  return wait;
}

function readBacklog(state: State, kind: 'end' | 'strip', sessionId: number): void {
  const session = state.sessions.get(sessionId);
  assert(session !== undefined, 'the backlog names an unknown session');
  state.backlog.push({ kind, session, targets: [], next: 0 });
}

function isComplete(state: State, counts: readonly unknown[]): boolean {
  for (const session of state.sessions.values()) sortByAge(session);
  const found = [state.sessions.size, state.locks.size, state.holds, state.waits];
  if (canonicalJson(found) !== canonicalJson(counts)) throw new FormatError('the snapshot does not add up');
  return true;
}

/** Keys are written in the order the acquires came; holds must be by token and waits by queueing, which may differ. */
function sortByAge(session: Session): void {
  const holds = [...session.holds.values()].sort((a, b) => a.token - b.token);
  session.holds.clear();
  for (const hold of holds) session.holds.set(hold.token, hold);
}
