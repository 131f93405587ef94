/** The three things the book is about: names, sessions and requests (one acquire each). */
import type { Mode, NamespaceConfig } from '../../api/config.ts';
import type { SessionEndCause, SessionId, Token } from '../../api/entry.ts';
import type { PlacedEvent } from '../verdict.ts';

/** The configuration in force; undefined: the run did not say what it was, so rules that need it are not judged. */
export type KnownConfig = NamespaceConfig | null | undefined;

export interface SessionBook {
  readonly kind: 'session';
  readonly lineage: string;
  readonly id: SessionId;
  /** `unknown`: events speak of it, but it was never opened. */
  state: 'unknown' | 'alive' | 'ending' | 'ended';
  ttlMs: number;
  cause: SessionEndCause | null;
  opened: PlacedEvent | null;
  ending: PlacedEvent | null;
  readonly requests: Map<string, RequestBook>;
  readonly holds: Set<RequestBook>;
  readonly waits: Set<RequestBook>;
  lastHoldEnd: PlacedEvent | null;
  /** From client records, in run time: not to be expired before this; when it last sent an acknowledged keepalive. */
  keptAliveUntil: number;
  lastSentAt: number;
  /** When the client was stopped; `to` is infinite while it is. */
  readonly stops: { readonly from: number; to: number }[];
}

/** One acquire, by (session, key), with what its client said about it. */
export interface RequestBook {
  readonly kind: 'request';
  readonly session: SessionBook;
  readonly key: string;
  name: string;
  /** `unseen`: so far only a client record spoke of it. */
  state: 'unseen' | 'waiting' | 'held' | 'ended';
  mode: Mode;
  /** 0 before it was granted. */
  token: Token;
  queued: PlacedEvent | null;
  waitUntil: number;
  granted: PlacedEvent | null;
  revoking: PlacedEvent | null;
  brokenNow: PlacedEvent | null;
  ended: PlacedEvent | null;
  /** The next grant of the same name. */
  successor: RequestBook | null;
  /** Run times from client records; infinite where nothing was said. */
  reportedAt: number;
  believedUntil: number;
  gaveUpAt: number;
  lostAt: number;
  timesLost: number;
  releaseConfirmedAt: number;
  cancelConfirmedAt: number;
}

export interface NameBook {
  readonly name: string;
  readonly holds: RequestBook[];
  /** In order of queueing. */
  readonly queue: Set<RequestBook>;
  delayed: PlacedEvent | null;
  /** Group time; means nothing while `delayed` is null. */
  delayedUntil: number;
  quarantined: boolean;
  /** Group time of the last `unquarantined`: timers of a hold stood still until then. */
  quarantineEndedAt: number;
}

export const NEVER = Number.POSITIVE_INFINITY;

export function newSession(lineage: string, id: SessionId): SessionBook {
  return {
    kind: 'session',
    lineage,
    id,
    state: 'unknown',
    ttlMs: 0,
    cause: null,
    opened: null,
    ending: null,
    requests: new Map(),
    holds: new Set(),
    waits: new Set(),
    lastHoldEnd: null,
    keptAliveUntil: -NEVER,
    lastSentAt: -NEVER,
    stops: [],
  };
}

export function newRequest(session: SessionBook, key: string, name: string): RequestBook {
  return {
    kind: 'request',
    session,
    key,
    name,
    state: 'unseen',
    mode: 'exclusive',
    token: 0,
    queued: null,
    waitUntil: 0,
    granted: null,
    revoking: null,
    brokenNow: null,
    ended: null,
    successor: null,
    reportedAt: NEVER,
    believedUntil: -NEVER,
    gaveUpAt: NEVER,
    lostAt: NEVER,
    timesLost: 0,
    releaseConfirmedAt: NEVER,
    cancelConfirmedAt: NEVER,
  };
}

export function newName(name: string): NameBook {
  return {
    name,
    holds: [],
    queue: new Set(),
    delayed: null,
    delayedUntil: 0,
    quarantined: false,
    quarantineEndedAt: 0,
  };
}

/** Whether an acquire was taken back by its key; nothing may be granted to it any more (rule A5). */
export function wasCancelled(request: RequestBook): boolean {
  return request.ended?.event.type === 'cancelled';
}
