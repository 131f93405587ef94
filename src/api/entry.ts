/**
 * The language of the log: commands go in, events come out, an entry carries a batch of commands.
 * These types are shared by the core, by the second (naive) model that checks it, and by everything that reads history.
 * What each command does, and in which order, is written down in src/core/README.md.
 */

import type { Mode, NamespaceConfig } from './config.ts';
import type { ErrorCode } from './errors.ts';

/** A group session: a number given by the core, used once in the life of a log (rule C10). */
export type SessionId = number;
/** A fencing token: greater than every earlier token of its name, below 2^53 (rule C12). */
export type Token = number;

/** Who a session belongs to. In `leasehold dev` all sessions share one fixed identity. */
export interface Identity {
  /** `<Kubernetes namespace>/<service account>`, or a person's account. */
  readonly account: string;
  /** UID of the pod, empty for people and in dev. */
  readonly podUid: string;
}

export interface OpenSession {
  readonly type: 'openSession';
  readonly client: string;
  readonly identity: Identity;
  readonly ttlMs: number;
  /** 0 = the namespace's maxHold alone. */
  readonly maxHoldMs: number;
  /** SHA-256 of the session's secret, hex. */
  readonly secretHash: string;
}

export interface Attach {
  readonly type: 'attach';
  readonly session: SessionId;
  /** Must be greater than the highest so far (rule S3); `openSession` counts as number 1. */
  readonly attach: number;
  readonly secretHash: string;
}

/** `clean: false` = the application's stream closed or it fell silent: unclean, lock-delay applies (rule C8). */
export interface CloseSession {
  readonly type: 'closeSession';
  readonly session: SessionId;
  readonly attach: number;
  readonly clean: boolean;
}

/** The leader's verdict over sessions: TTL passed, or a command of theirs threw (rules S6, C13). */
export interface ExpireSessions {
  readonly type: 'expireSessions';
  readonly sessions: readonly SessionId[];
  readonly cause: 'expired' | 'threw';
}

export interface Acquire {
  readonly type: 'acquire';
  readonly session: SessionId;
  readonly attach: number;
  readonly key: string;
  readonly name: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly reentrant: boolean;
  readonly owner: string;
  readonly purpose: string;
  /** 0 = do not wait. */
  readonly waitMs: number;
  readonly bucket: number;
  readonly mapVersion: number;
  /** Keys whose outcome the client has settled (rule C5). */
  readonly acks: readonly string[];
}

export interface Release {
  readonly type: 'release';
  readonly session: SessionId;
  readonly attach: number;
  readonly name: string;
  readonly token: Token;
  /** Needed for re-entrant holds only; empty otherwise. */
  readonly key: string;
  readonly acks: readonly string[];
}

/** Takes back an acquire, waiting or already granted, by its key; unknown keys are fine (rule A5). */
export interface Cancel {
  readonly type: 'cancel';
  readonly session: SessionId;
  readonly attach: number;
  readonly key: string;
  readonly acks: readonly string[];
}

export interface Configure {
  readonly type: 'configure';
  readonly version: number;
  /** null = the LockNamespace is gone: existing grants are revoked, nothing new is granted. */
  readonly config: NamespaceConfig | null;
}

export interface Break {
  readonly type: 'break';
  readonly name: string;
  readonly token: Token;
  /** True = free at once, without waiting for the holder: recorded as unsafe. */
  readonly now: boolean;
  readonly reason: string;
  readonly by: string;
}

export interface TakeOver {
  readonly type: 'takeOver';
  readonly epoch: number;
  readonly unixSeconds: number;
  /** Only in the first entry of a lineage; 0 elsewhere (rule C12). */
  readonly tokenFloor: Token;
  readonly reason: string;
}

export interface Resign {
  readonly type: 'resign';
  readonly epoch: number;
}

export interface RaiseBehaviour {
  readonly type: 'raiseBehaviour';
  readonly level: number;
}

export interface Quarantine {
  readonly type: 'quarantine';
  readonly name: string;
  readonly reason: string;
}

export interface Unquarantine {
  readonly type: 'unquarantine';
  readonly name: string;
  readonly by: string;
}

/** A resource refused a token as stale: counted and recorded, changes nothing. `session` 0: reported by somebody else. */
export interface ReportStale {
  readonly type: 'reportStale';
  readonly session: SessionId;
  readonly name: string;
  readonly token: Token;
  readonly resource: string;
}

/** Commands that come from clients, as against the leader's or an administrator's. */
export type ClientCommand = OpenSession | Attach | CloseSession | Acquire | Release | Cancel | ReportStale;

export type Command =
  | ClientCommand
  | ExpireSessions
  | Configure
  | Break
  | TakeOver
  | Resign
  | RaiseBehaviour
  | Quarantine
  | Unquarantine;

/** One place in the log. Its bytes are written once and never change (rule L2). */
export interface Entry {
  readonly format: number;
  readonly behaviour: number;
  readonly lineage: string;
  readonly epoch: number;
  /** 1 for the first entry of a lineage. */
  readonly index: number;
  /** Group time in ms: starts at 0, never goes back, drives every timer. */
  readonly at: number;
  /** Wall clock in ms since 1970, for people only; the core never reads it. */
  readonly wallMs: number;
  /** SHA-256 (hex) of the encoded entry before this one; empty for the first. */
  readonly previous: string;
  readonly commands: readonly Command[];
  /** SHA-256 (hex) chained over all events up to and including this entry's (rule C14). */
  readonly eventHash: string;
}

/** Why a grant is taken away (rule C9). */
export const REVOKE_CAUSES = [
  'break',
  'maxHold',
  'consumerRemoved',
  'permitsCut',
  'namespaceDeleted',
] as const;
export type RevokeCause = (typeof REVOKE_CAUSES)[number];
export type SessionEndCause = 'closed' | 'stream' | 'expired' | 'threw';

/** Codes with which the core refuses an acquire for good and remembers that it did. */
export type RefusalCode = Extract<
  ErrorCode,
  | 'INVALID'
  | 'FORBIDDEN'
  | 'QUOTA_EXCEEDED'
  | 'NAMESPACE_NOT_FOUND'
  | 'HELD'
  | 'WAIT_TIMEOUT'
  | 'QUARANTINED'
  | 'SESSION_EXPIRED'
  | 'QUEUE_FULL'
>;

interface OfRequest {
  readonly name: string;
  readonly session: SessionId;
  readonly key: string;
}
interface OfGrant {
  readonly name: string;
  readonly session: SessionId;
  readonly token: Token;
}

export type LockEvent =
  /** `fromQueue`: it waited, so its client learns of the grant by this event and not by an answer. */
  | (OfRequest & {
      readonly type: 'granted';
      readonly token: Token;
      readonly mode: Mode;
      readonly permits: number;
      readonly owner: string;
      /** A re-entrant acquire joined a grant that its session has: same token, one key more (rule C6). */
      readonly joined: boolean;
      readonly fromQueue: boolean;
      readonly waitedMs: number;
    })
  /** `position` counts from 1. */
  | (OfRequest & {
      readonly type: 'queued';
      readonly mode: Mode;
      readonly permits: number;
      readonly position: number;
      readonly waitUntil: number;
    })
  | (OfRequest & { readonly type: 'refused'; readonly code: RefusalCode; readonly fromQueue: boolean })
  /** `key`: of the acquire that was released; '' with `close`. `remaining`: keys that still hold the grant; 0 = it is over. */
  | (OfGrant & {
      readonly type: 'released';
      readonly cause: 'release' | 'close';
      readonly key: string;
      readonly remaining: number;
    })
  /** `token` 0: it still waited. `remaining` as with `released`. */
  | (OfRequest & { readonly type: 'cancelled'; readonly token: Token; readonly remaining: number })
  | (OfGrant & { readonly type: 'expired'; readonly cause: SessionEndCause })
  /** `until`: group time at which the grant ends unless the application gives it up before. */
  | (OfGrant & { readonly type: 'revoking'; readonly cause: RevokeCause; readonly until: number })
  | (OfGrant & { readonly type: 'revoked'; readonly cause: RevokeCause; readonly unsafe: boolean })
  | { readonly type: 'delayed'; readonly name: string; readonly until: number }
  | {
      readonly type: 'sessionOpened';
      readonly session: SessionId;
      readonly client: string;
      readonly identity: Identity;
      readonly ttlMs: number;
    }
  | { readonly type: 'sessionEnding'; readonly session: SessionId; readonly cause: SessionEndCause }
  | { readonly type: 'sessionEnded'; readonly session: SessionId }
  | { readonly type: 'tookOver'; readonly epoch: number; readonly token: Token; readonly reason: string }
  | { readonly type: 'configured'; readonly version: number }
  | (OfGrant & {
      readonly type: 'broken';
      readonly now: boolean;
      readonly reason: string;
      readonly by: string;
    })
  | { readonly type: 'quarantined'; readonly name: string; readonly reason: string }
  | { readonly type: 'unquarantined'; readonly name: string; readonly by: string }
  | (OfGrant & { readonly type: 'fencingRejected'; readonly resource: string });

/** A grant as `attach` lists it and reads show it. */
export interface GrantView {
  readonly name: string;
  readonly token: Token;
  readonly keys: readonly string[];
  readonly mode: Mode;
  /** Why it is being taken away; null while it is not. */
  readonly revoking: RevokeCause | null;
}

export interface WaitView {
  readonly name: string;
  readonly key: string;
  readonly position: number;
}

export interface HolderView {
  readonly session: SessionId;
  readonly client: string;
  readonly owner: string;
  readonly purpose: string;
  readonly token: Token;
  readonly mode: Mode;
  readonly permits: number;
  readonly heldForMs: number;
  readonly revoking: RevokeCause | null;
}

/** What ended an acquire that was granted once, or why it was refused. */
export type Ending = RefusalCode | 'RELEASED' | 'REVOKED';

/**
 * Answer to one command, made by `apply` and sent after the commit.
 * `SUPERSEDED`: the command came under an attach number that is not the session's (rule S3).
 */
export type CommandResult =
  | { readonly type: 'done' }
  | { readonly type: 'opened'; readonly session: SessionId }
  | {
      readonly type: 'attached';
      readonly ttlMs: number;
      readonly grants: readonly GrantView[];
      readonly waits: readonly WaitView[];
    }
  | { readonly type: 'granted'; readonly token: Token }
  | { readonly type: 'queued'; readonly position: number }
  /** Repeat of an acquire whose grant is over: `token` was its token, 0 if it had none. */
  | { readonly type: 'ended'; readonly by: Ending; readonly token: Token }
  | {
      readonly type: 'refused';
      readonly code: ErrorCode | 'SUPERSEDED';
      readonly message: string;
      readonly field?: string;
      readonly limit?: number;
      /** With HELD and QUEUE_FULL: who has the lock (of several, who has had it longest); null while nobody has. */
      readonly holder?: HolderView | null;
      /** With HELD and QUEUE_FULL: how many wait, and what is left of the lock-delay. */
      readonly waiters?: number;
      readonly lockDelayMs?: number;
    };

/** A committed entry with the events it caused: what audit, `tail` and the checker read. */
export interface HistoryEntry {
  readonly lineage: string;
  readonly epoch: number;
  readonly index: number;
  readonly at: number;
  readonly wallMs: number;
  readonly eventHash: string;
  readonly events: readonly LockEvent[];
}
