/**
 * Makes a state from the lines of a snapshot. What is kept twice for speed (counters, digests, links, timers) is not in the
 * snapshot and is made again here, so that it cannot contradict itself.
 */
import { FORMAT_VERSION } from '../api/limits.ts';
import { digestOf } from '../api/wire.ts';
import { assert } from './assert.ts';
import { joinToEnd, joinToServe, joinToStrip } from './backlog.ts';
import { FormatError } from './codec/bytes.ts';
import { canonicalJson } from './codec/commands.ts';
import { addHold, isInCrowd } from './crowd.ts';
import { makeJoinable, newHold } from './holds.ts';
import { lockOf } from './queue.ts';
import type {
  BacklogLine,
  EndLine,
  HoldFields,
  HoldLine,
  KeyLine,
  LockLine,
  SnapshotLine,
} from './snapshot-lines.ts';
import {
  createState,
  type Hold,
  type KeyRecord,
  newSession,
  type Session,
  type State,
  type Wait,
} from './state.ts';

/** Throws FormatError when the lines are not a whole snapshot of a format this program knows. */
export class SnapshotReader {
  #body: BodyReader | null = null;

  line(text: string): void {
    try {
      const value: unknown = JSON.parse(text);
      if (this.#body === null) this.#body = new BodyReader(readHeader(value));
      else this.#body.line(value);
    } catch (error) {
      if (error instanceof FormatError) throw error;
      throw new FormatError('a snapshot line cannot be read', { cause: error });
    }
  }

  finish(): State {
    if (this.#body === null || !this.#body.isWhole) throw new FormatError('the snapshot is not whole');
    return this.#body.state;
  }
}

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

class BodyReader {
  readonly state: State;
  isWhole = false;
  /** Shared and semaphore holds, which are linked by rising token once all are known. */
  readonly #crowds: Hold[] = [];
  /** Keys whose hold has not come yet. */
  readonly #unclaimed = new Set<KeyRecord>();

  constructor(state: State) {
    this.state = state;
  }

  line(value: unknown): void {
    if (!Array.isArray(value) || this.isWhole) throw new FormatError('a snapshot line is out of place');
    const line = value as unknown as SnapshotLine;
    switch (line[0]) {
      case 'session':
        this.state.sessions.set(line[1].id, newSession(line[1]));
        return;
      case 'key':
        this.#key(line);
        return;
      case 'hold':
        this.#hold(line);
        return;
      case 'lock':
        this.#lock(line);
        return;
      case 'backlog':
        this.#backlog(line);
        return;
      case 'end':
        this.#end(line);
        return;
      default:
        throw new FormatError(`unknown snapshot line ${String(value[0])}`);
    }
  }

  #key([, sessionId, request, settled, key]: KeyLine): void {
    const session = this.#session(sessionId);
    const record: KeyRecord = {
      session,
      request,
      settled,
      state: { kind: 'ended', by: 'INVALID', token: 0 },
    };
    session.keys.set(request.key, record);
    if (key[0] !== 'waiting' && !settled) session.unsettled++;
    switch (key[0]) {
      case 'waiting':
        this.#wait(record, key[1], key[2], key[3]);
        return;
      case 'held':
        record.state = this.#newHold(record, key[1], key[2], key[3], key[4], key[5]);
        return;
      case 'joined':
        this.#unclaimed.add(record);
        return;
      case 'ended':
        record.state = { kind: 'ended', by: key[1], token: key[2] };
        return;
      default:
        throw new FormatError(`unknown key state ${String(key[0])}`);
    }
  }

  #wait(record: KeyRecord, queuedAt: number, due: number, sequence: number): void {
    const { state } = this;
    const lock = lockOf(state, record.request.name);
    const wait: Wait = { kind: 'waiting', record, lock, queuedAt, due, sequence, heapIndex: -1 };
    record.state = wait;
    record.session.waits.add(wait);
    state.waits++;
    state.timers.restore(wait);
  }

  #hold([, request, keys, ...fields]: HoldLine): void {
    const session = this.#session(request.session);
    const records = keys.map((key) => {
      const record = session.keys.get(key);
      assert(record !== undefined && this.#unclaimed.delete(record), 'a hold names a key that it has not');
      return record;
    });
    // Its own key may have left it, and may have come again since for another acquire.
    const first = canonicalJson(request);
    const own = records.find((record) => canonicalJson(record.request) === first);
    const gone: KeyRecord = {
      session,
      request,
      settled: true,
      state: { kind: 'ended', by: 'RELEASED', token: fields[0] },
    };
    const hold = this.#newHold(own ?? gone, ...fields);
    hold.keys = records;
    for (const record of records) record.state = hold;
  }

  #newHold(record: KeyRecord, ...[token, since, revoking, due, sequence]: HoldFields): Hold {
    const { state } = this;
    const { session } = record;
    const hold = newHold(record, lockOf(state, record.request.name), token, since);
    Object.assign(hold, { revoking, due, sequence });
    if (isInCrowd(hold)) this.#crowds.push(hold);
    else addHold(hold.lock, hold);
    session.holds.set(token, hold);
    session.digest ^= digestOf(token);
    state.holds++;
    if (revoking !== null) state.revoking++;
    else if (record.request.reentrant) makeJoinable(hold);
    return hold;
  }

  #lock([, name, quarantined, delay, queue]: LockLine): void {
    const { state } = this;
    const lock = lockOf(state, name);
    lock.quarantined = quarantined;
    if (lock.hold !== null && !quarantined) state.timers.restore(lock.hold);
    if (delay !== null) {
      lock.delay = { kind: 'delay', lock, due: delay[0], sequence: delay[1], heapIndex: -1 };
      state.timers.restore(lock.delay);
    }
    if (queue.length > 0) lock.queue = new Set(queue.map(([session, key]) => this.#waitOf(session, key)));
  }

  #waitOf(session: number, key: string): Wait {
    const wait = this.state.sessions.get(session)?.keys.get(key)?.state;
    assert(wait?.kind === 'waiting', 'a queue names a key that does not wait');
    return wait;
  }

  #backlog(line: BacklogLine): void {
    const [, kind, of] = line;
    if (kind === 'serve') joinToServe(this.state, of);
    else if (kind === 'end') joinToEnd(this.state, this.#session(of));
    else if (kind === 'strip') joinToStrip(this.state, this.#session(of));
    else throw new FormatError(`unknown work ${String(kind)}`);
  }

  #session(id: number): Session {
    const session = this.state.sessions.get(id);
    assert(session !== undefined, 'an unknown session is named');
    return session;
  }

  #end([, ...counts]: EndLine): void {
    const { state } = this;
    for (const hold of this.#crowds.sort((a, b) => a.token - b.token)) {
      addHold(hold.lock, hold);
      if (!hold.lock.quarantined) state.timers.restore(hold);
    }
    for (const session of state.sessions.values()) sortByAge(session);
    const found = [state.sessions.size, state.locks.size, state.holds, state.waits];
    const isComplete = this.#unclaimed.size === 0 && canonicalJson(found) === canonicalJson(counts);
    if (!isComplete) throw new FormatError('the snapshot does not add up');
    this.isWhole = true;
  }
}

/** Keys are written in the order the acquires came; holds must be by token, which may differ. */
function sortByAge(session: Session): void {
  const holds = [...session.holds.values()].sort((a, b) => a.token - b.token);
  session.holds.clear();
  for (const hold of holds) session.holds.set(hold.token, hold);
}
