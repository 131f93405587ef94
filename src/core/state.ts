/**
 * What the state machine knows. Records are compact and mutable, shared by reference, and only `apply` changes them.
 * A key's record keeps the acquire command itself instead of copies of its fields.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type {
  Acquire,
  Ending,
  Identity,
  RevokeCause,
  SessionEndCause,
  SessionId,
  Token,
} from '../api/entry.ts';
import { type Due, TimerQueue } from './timer-queue.ts';

/** An acquire in the queue of its name; due when its wait is over. */
export interface Wait extends Due {
  readonly kind: 'waiting';
  readonly record: KeyRecord;
  readonly lock: Lock;
  readonly queuedAt: number;
}

/** A grant; due at its max hold, or at the end of its revoke. */
export interface Hold extends Due {
  readonly kind: 'held';
  /** The acquire it was granted to. Of a re-entrant hold, that key may have left it since. */
  readonly record: KeyRecord;
  readonly lock: Lock;
  readonly token: Token;
  readonly since: number;
  revoking: RevokeCause | null;
  /** In the order they joined. Null while `record` is the only key there ever was, which is the common case. */
  keys: KeyRecord[] | null;
}

/** A shared or semaphore grant, linked with the others of its lock. Exclusive ones do not pay for the links. */
export interface CrowdHold extends Hold {
  older: CrowdHold | null;
  newer: CrowdHold | null;
}

/** The shared or semaphore holds of a lock, by rising token. Never empty. */
export interface Crowd {
  oldest: CrowdHold;
  newest: CrowdHold;
  /** No hold after this one is without a revoke; see `newestKept`. Null: none at all is. */
  keptUpTo: CrowdHold | null;
  count: number;
  /** Permits of all its holds. */
  used: number;
  /** Permits of those that no revoke runs on. */
  kept: number;
}

export interface Ended {
  readonly kind: 'ended';
  readonly by: Ending;
  /** 0 = it was never granted. */
  readonly token: Token;
}

/** One acquire of a session, under the client's key (rules C4, C5). */
export interface KeyRecord {
  readonly session: Session;
  readonly request: Acquire;
  state: Wait | Hold | Ended;
  settled: boolean;
}

/** The lock-delay of a name (rule C8). */
export interface Delay extends Due {
  readonly kind: 'delay';
  readonly lock: Lock;
}

export interface Lock {
  readonly name: string;
  /** Of several, the one with the lowest token. */
  hold: Hold | null;
  /** All holds of a shared or semaphore lock; null for an exclusive one, and while there is no hold. */
  crowd: Crowd | null;
  /** In the order their requests were committed. Null when nobody waits, which is the common case. */
  queue: Set<Wait> | null;
  delay: Delay | null;
  quarantined: boolean;
}

/** What a session is known by, apart from what it has. */
export interface SessionHeader {
  readonly id: SessionId;
  readonly client: string;
  readonly identity: Identity;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  readonly secretHash: string;
  attach: number;
  ending: SessionEndCause | null;
}

export interface Session extends SessionHeader {
  readonly keys: Map<string, KeyRecord>;
  /** By rising token. */
  readonly holds: Map<Token, Hold>;
  /** In order of queueing. */
  readonly waits: Set<Wait>;
  /** Its re-entrant holds that no revoke runs on, by what a request must be like to join them (rule C6). */
  joinable: Map<string, Hold> | null;
  /** Its places in the backlog. */
  endItem: SessionItem | null;
  stripItem: SessionItem | null;
  /** Keys held or ended that the client has not acknowledged (rule C5). */
  unsettled: number;
  /** XOR of `digestOf` over the tokens held (rule S3). */
  digest: number;
}

/** Work on a session that may take several entries (rules C1, C10). */
export interface SessionItem {
  /** `end`: everything goes. `strip`: waits go, holds are revoked. */
  readonly kind: 'end' | 'strip';
  readonly session: Session;
  /** What was left when last looked, and how far that list is done: a cache, made again when it runs out. */
  targets: readonly (Wait | Hold)[];
  next: number;
}

/** Work on a name. Its lock may be dropped and made again meanwhile, so it is not named here. */
export interface ServeItem {
  readonly kind: 'serve';
  readonly name: string;
}

export type BacklogItem = SessionItem | ServeItem;

export type TimerNode = Wait | Hold | Delay;

export interface State {
  readonly lineage: string;
  epoch: number;
  index: number;
  at: number;
  behaviour: number;
  /** Chained over all events so far (rule C14). */
  eventHash: string;
  configVersion: number;
  config: NamespaceConfig | null;
  lastToken: Token;
  lastSession: SessionId;
  readonly sessions: Map<SessionId, Session>;
  readonly locks: Map<string, Lock>;
  readonly timers: TimerQueue<TimerNode>;
  /** FIFO; at most one item of each kind for a session or name. */
  readonly backlog: BacklogItem[];
  /** The names in the backlog. */
  readonly toServe: Set<string>;
  holds: number;
  /** Holds with a revoke running. */
  revoking: number;
  waits: number;
}

export function createState(lineage: string): State {
  return {
    lineage,
    epoch: 0,
    index: 0,
    at: 0,
    behaviour: 1,
    eventHash: '',
    configVersion: 0,
    config: null,
    lastToken: 0,
    lastSession: 0,
    sessions: new Map(),
    locks: new Map(),
    timers: new TimerQueue(),
    backlog: [],
    toServe: new Set(),
    holds: 0,
    revoking: 0,
    waits: 0,
  };
}

export function newSession(header: SessionHeader): Session {
  return {
    ...header,
    keys: new Map(),
    holds: new Map(),
    waits: new Set(),
    joinable: null,
    endItem: null,
    stripItem: null,
    unsettled: 0,
    digest: 0,
  };
}
