/**
 * The frames of the lock protocol: client <-> front end (public, proto/leasehold/v1/lock.proto) and front end <-> leader.
 * One frame carries many requests of many sessions. In `leasehold dev` these very objects are handed over in one process.
 * Frames are never changed after they were sent: a receiver may keep them.
 */
import type { Mode } from './config.ts';
import type {
  ClientCommand,
  CommandResult,
  HolderView,
  Identity,
  LockEvent,
  RevokeCause,
  SessionId,
  Token,
} from './entry.ts';

export type { HolderView } from './entry.ts';

/** Where in which log something was true. Frames of an older lineage, epoch or index are dropped (rule S2). */
export interface Position {
  readonly lineage: string;
  readonly epoch: number;
  readonly index: number;
}

/** A place that a client has seen committed: proof against a rolled-back log, if the leader made it (rule S10). */
export interface Mark extends Position {
  /** Of the entry at `index`. */
  readonly hash: string;
  /** HMAC of all the rest under the group's key, 64 hex digits: only what a leader of this group said proves anything. */
  readonly seal: string;
}

export interface GetLock {
  readonly type: 'getLock';
  readonly name: string;
}

/** Locks whose name starts with `prefix`, in order of name, after `after` (exclusive; '' = from the start). */
export interface ListLocks {
  readonly type: 'listLocks';
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
}

export type ReadQuery = GetLock | ListLocks;

/** One waiter of a lock, as reads show it. */
export interface WaiterView {
  readonly session: SessionId;
  readonly client: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly waitedMs: number;
}

/** A lock as reads show it. A free name has no holder, no waiters, no delay. */
export interface LockView {
  readonly name: string;
  /** By rising token; at most 100 are shown, `holderCount` counts them all. */
  readonly holders: readonly HolderView[];
  readonly holderCount: number;
  readonly waiters: readonly WaiterView[];
  readonly waiterCount: number;
  /** What is left of the lock-delay; 0 = none runs. */
  readonly lockDelayMs: number;
  readonly quarantined: boolean;
}

export type ReadResult =
  | { readonly type: 'lock'; readonly lock: LockView }
  | { readonly type: 'locks'; readonly locks: readonly LockView[]; readonly more: boolean };

/** A client's attach carries the secret itself; the front end turns it into the command with its hash. */
export interface AttachRequest {
  readonly type: 'attachWithSecret';
  readonly session: SessionId;
  readonly attach: number;
  readonly secret: string;
}

/** A client opens a session without an identity; the front end adds the one it proved. */
export interface OpenRequest {
  readonly type: 'open';
  readonly client: string;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  readonly secretHash: string;
}

export type ClientRequestBody =
  | Exclude<ClientCommand, { type: 'openSession' | 'attach' }>
  | OpenRequest
  | AttachRequest
  | ReadQuery;

/** `id` is unique within the stream; the answer repeats it. */
export interface ClientRequest {
  readonly id: number;
  readonly body: ClientRequestBody;
}

/** One keepalive for all sessions of a stream (rule S8). `number` rises within the stream. */
export interface KeepaliveRequest {
  readonly number: number;
  readonly sessions: readonly { readonly session: SessionId; readonly attach: number }[];
}

export interface ClientFrame {
  readonly format: number;
  readonly requests: readonly ClientRequest[];
  readonly keepalive?: KeepaliveRequest;
  /** With the first frame of a stream: what this client saw last (rule S10). */
  readonly mark?: Mark;
}

export interface RevokingGrant {
  readonly token: Token;
  readonly cause: RevokeCause;
}

/** Per session: what the client must believe, so that it notices when it believes something else (rules C9, S3). */
export type KeepaliveStatus =
  | {
      readonly session: SessionId;
      readonly attach: number;
      readonly alive: true;
      readonly grants: number;
      /** `digestOf`, XORed over the tokens of the session's grants. */
      readonly digest: number;
      /** Grants under revocation: the keepalive does not extend them (rule C9). */
      readonly revoking: readonly RevokingGrant[];
    }
  | { readonly session: SessionId; readonly attach: number; readonly alive: false };

export interface KeepaliveAnswer {
  readonly number: number;
  readonly sessions: readonly KeepaliveStatus[];
}

/** Refused before the log, without any state: nothing was consumed. */
export interface Rejected {
  readonly type: 'rejected';
  readonly code: 'INVALID' | 'RATE_LIMITED' | 'UNAVAILABLE' | 'UNAUTHENTICATED' | 'FORBIDDEN';
  readonly message: string;
  readonly field?: string;
  readonly limit?: number;
  readonly retryAfterMs?: number;
}

export function unavailable(message: string): Rejected {
  return { type: 'rejected', code: 'UNAVAILABLE', message };
}

export type AnswerBody =
  | CommandResult
  | ReadResult
  | Rejected
  /** The name belongs to another group of the namespace, by a shard map of at least this version. */
  | { readonly type: 'wrongGroup'; readonly mapVersion: number };

export interface Answer {
  readonly id: number;
  readonly body: AnswerBody;
}

/** Something that happened to a session without being the answer to its request. */
export interface SessionNotice {
  readonly session: SessionId;
  readonly attach: number;
  readonly event: LockEvent;
}

export interface ServerFrame {
  readonly position: Position;
  /** `leading: false`: this front end knows no leader right now (rule S8). */
  readonly leading: boolean;
  readonly answers: readonly Answer[];
  readonly notices: readonly SessionNotice[];
  readonly keepalive?: KeepaliveAnswer;
  /** From time to time: to be kept, and shown with the first frame of the next stream (rule S10). */
  readonly mark?: Mark;
  /** The log was rolled back and nobody serves it (rule S10): what happened and what to do, for people. */
  readonly halted?: string;
}

/** A client's stream to a front end, from the client's side of it. */
export interface ClientStream {
  send(frame: ClientFrame): void;
  close(): void;
}

/** What comes back on it. */
export interface ClientHandler {
  /** The front end has accepted who this is. Over a network only. */
  onOpen?(): void;
  onFrame(frame: ServerFrame): void;
  /** `refusal`: the other end does not take who this is; over a network only. */
  onClose(refusal?: StreamRefusal): void;
}

/** A stream was not accepted; `message` says what is wrong with the proof. */
export interface StreamRefusal {
  readonly code: 'UNAUTHENTICATED' | 'FORBIDDEN';
  readonly message: string;
}

/** What a front end passes on: the frames of its client streams, commands completed with identity and secret hash. */
export interface RelayRequest {
  readonly id: number;
  readonly body: ClientCommand | ReadQuery;
}

export interface RelayGroup {
  /** The client stream within the front end. */
  readonly client: number;
  readonly requests: readonly RelayRequest[];
  readonly keepalive?: KeepaliveRequest;
  /** What the client stream proved: with the first group of a client on each stream to a leader. Commands act under it (rule C7). */
  readonly identity?: Identity;
  /** What the client showed; passed on unread. */
  readonly mark?: Mark;
}

/** A session that a client of the front end had attached before this leader came. */
export interface Reattachment {
  readonly client: number;
  readonly session: SessionId;
  readonly attach: number;
}

/** The bulk re-attachment with which a front end begins on a leader (rule S4). It renews nothing and moves no deadline. */
export interface BulkReattachment {
  readonly sessions: readonly Reattachment[];
  /** What this front end has passed on to its clients last: later notices were lost on their way. */
  readonly seen: Position;
}

export interface RelayFrame {
  readonly format: number;
  readonly groups: readonly RelayGroup[];
  /** Client streams that are closed. */
  readonly closed: readonly number[];
  /** A bulk re-attachment may take several frames; it comes before everything else of its stream. */
  readonly reattach?: BulkReattachment;
  /** The bulk re-attachment is complete. */
  readonly allAttached?: boolean;
  /** Index up to which the replica that sends this has applied the log, as a standby (rule L4). */
  readonly applied?: number;
  /** Highest behaviour level that the replica that sends this can apply (rule C15). */
  readonly behaviour?: number;
}

export interface LeaderGroup {
  readonly client: number;
  readonly answers: readonly Answer[];
  readonly notices: readonly SessionNotice[];
  readonly keepalives: readonly KeepaliveAnswer[];
  readonly mark?: Mark;
}

export interface LeaderFrame {
  readonly position: Position;
  readonly groups: readonly LeaderGroup[];
}

/**
 * One token's share of the digest over a session's grants: shares are XORed, so both sides keep it up to date in O(1)
 * and the order of grants does not matter (rule S3).
 */
export function digestOf(token: Token): number {
  let mixed = (token % 0x100000000) ^ Math.floor(token / 0x100000000);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
