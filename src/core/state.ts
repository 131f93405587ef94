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
  readonly record: KeyRecord;
  readonly lock: Lock;
  readonly token: Token;
  readonly since: number;
  revoking: RevokeCause | null;
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
  hold: Hold | null;
  /** In the order their requests were committed. Null when nobody waits, which is the common case. */
  queue: Set<Wait> | null;
  delay: Delay | null;
  quarantined: boolean;
}

export interface Session {
  readonly id: SessionId;
  readonly client: string;
  readonly identity: Identity;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  readonly secretHash: string;
  attach: number;
  ending: SessionEndCause | null;
  readonly keys: Map<string, KeyRecord>;
  /** By rising token. */
  readonly holds: Map<Token, Hold>;
  /** In order of queueing. */
  readonly waits: Set<Wait>;
  /** Keys held or ended that the client has not acknowledged (rule C5). */
  unsettled: number;
  /** XOR of `digestOf` over the tokens held (rule S3). */
  digest: number;
}

/** Work on a session that may take several entries (rules C1, C10). */
export interface BacklogItem {
  /** `end`: everything goes. `strip`: waits go, holds are revoked. */
  readonly kind: 'end' | 'strip';
  readonly session: Session;
  /** What was left when last looked, and how far that list is done: a cache, made again when it runs out. */
  targets: readonly (Wait | Hold)[];
  next: number;
}

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
  /** FIFO; at most one item of each kind per session. */
  backlog: BacklogItem[];
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
    holds: 0,
    revoking: 0,
    waits: 0,
  };
}
