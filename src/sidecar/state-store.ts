/**
 * What the sidecar must know after a restart (rule A4): session secrets, attach numbers, grants it has told of. Written
 * before it answers. A record replaces the one before it under the same key.
 */

import type { SessionId, Token } from '../api/entry.ts';
import type { Mark } from '../api/wire.ts';
import type { AcquireBody } from './acquire-body.ts';
import type { Liveness } from './service.ts';

export type SidecarRecord =
  | {
      readonly type: 'envelope';
      readonly id: string;
      readonly client: string;
      readonly ttlMs: number;
      readonly isTtlChosen: boolean;
      readonly keepalive: Liveness;
      readonly maxHoldMs: number;
      readonly isSingle: boolean;
    }
  | {
      readonly type: 'session';
      readonly envelope: string;
      readonly alias: string;
      readonly session: SessionId;
      readonly attach: number;
      readonly secret: string;
      readonly ttlMs: number;
    }
  /** Held. */
  | ({ readonly type: 'grant' } & GrantRecord)
  /** Granted once under a `request`, and over. */
  | ({ readonly type: 'settled'; readonly how: 'released' | 'lost' } & GrantRecord & {
        readonly request: string;
      })
  /** Lost, and not yet counted as worked on after its end. */
  | {
      readonly type: 'lost';
      readonly envelope: string;
      readonly alias: string;
      readonly name: string;
      readonly token: Token;
      readonly key: string;
    }
  /** What was seen last of a group's log (rule S10). Of no session: it stays when they are over. */
  | { readonly type: 'mark'; readonly alias: string; readonly mark: Mark };

/** One acquire that was granted: a re-entrant grant has a record for each of its acquires. */
interface GrantRecord extends AcquireBody {
  readonly envelope: string;
  readonly alias: string;
  readonly token: Token;
  readonly key: string;
  readonly request: string | null;
}

export interface StateStore {
  /**
   * Why it is not durable what was put: a disk that is full, for instance. Null: it is. Nothing that follows is lost meanwhile as long as this
   * process lives, and all of it is written down as soon as that is possible.
   */
  readonly problem: string | null;
  /** What was kept, envelopes first. */
  load(): readonly SidecarRecord[];
  /** Durable against the end of this process when it returns, unless there is a `problem`. Never throws: what is held has to go on. */
  put(record: SidecarRecord): void;
  /** Removes one record; unknown ones are fine. */
  remove(record: RecordKey): void;
  /** Removes an envelope with all that belongs to it. */
  removeEnvelope(id: string): void;
}

/** What names a record. */
export type RecordKey =
  | Pick<Extract<SidecarRecord, { type: 'envelope' }>, 'type' | 'id'>
  | Pick<Extract<SidecarRecord, { type: 'session' }>, 'type' | 'envelope' | 'alias'>
  | Pick<Extract<SidecarRecord, { type: 'grant' }>, 'type' | 'envelope' | 'alias' | 'key'>
  | Pick<Extract<SidecarRecord, { type: 'settled' }>, 'type' | 'envelope' | 'alias' | 'request'>
  | Pick<Extract<SidecarRecord, { type: 'lost' }>, 'type' | 'envelope' | 'alias' | 'token'>
  | Pick<Extract<SidecarRecord, { type: 'mark' }>, 'type' | 'alias'>;

type OfSession = Exclude<RecordKey, { type: 'mark' }>;

function envelopeOf(record: OfSession): string {
  return record.type === 'envelope' ? record.id : record.envelope;
}

/** Under which records of one envelope replace each other. */
function keyOf(record: OfSession): string {
  switch (record.type) {
    case 'envelope':
      return 'envelope';
    case 'session':
      return `session ${record.alias}`;
    case 'grant':
      return `grant ${record.alias} ${record.key}`;
    case 'settled':
      return `settled ${record.alias} ${record.request}`;
    case 'lost':
      return `lost ${record.alias} ${record.token}`;
  }
}

/** Keeps everything in memory: for the simulator and for tests, which hand it to the next life of a sidecar. */
export class MemoryStateStore implements StateStore {
  readonly #envelopes = new Map<string, Map<string, SidecarRecord>>();
  readonly #marks = new Map<string, SidecarRecord>();
  #size = 0;

  get problem(): string | null {
    return null;
  }

  /** Records of sessions. */
  get size(): number {
    return this.#size;
  }

  load(): readonly SidecarRecord[] {
    return [...this.#envelopes.values(), this.#marks].flatMap((records) => [...records.values()]);
  }

  put(record: SidecarRecord): void {
    if (record.type === 'mark') {
      this.#marks.set(record.alias, record);
      return;
    }
    const id = envelopeOf(record);
    let records = this.#envelopes.get(id);
    if (records === undefined) {
      records = new Map();
      this.#envelopes.set(id, records);
    }
    if (!records.has(keyOf(record))) this.#size++;
    records.set(keyOf(record), record);
  }

  remove(record: RecordKey): void {
    if (record.type === 'mark') {
      this.#marks.delete(record.alias);
      return;
    }
    if (this.#envelopes.get(envelopeOf(record))?.delete(keyOf(record)) === true) this.#size--;
  }

  removeEnvelope(id: string): void {
    this.#size -= this.#envelopes.get(id)?.size ?? 0;
    this.#envelopes.delete(id);
  }
}
