/**
 * The four things the book is about: names, sessions, requests (one acquire each), and grants, which several requests of a
 * session may share (rule C6).
 */
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
  readonly holds: Set<GrantBook>;
  readonly waits: Set<RequestBook>;
  lastHoldEnd: PlacedEvent | null;
  /** Group time at which the last of its holds on quarantined names ended or came back into service (rule C13). */
  unparkedAt: number;
  /** From client records, in run time: not to be expired before this; when it last sent an acknowledged keepalive. */
  keptAliveUntil: number;
  lastSentAt: number;
  /** When the client was stopped; `to` is infinite while it is. */
  readonly stops: { readonly from: number; to: number }[];
}

/** One acquire, by (session, key). */
export interface RequestBook {
  readonly kind: 'request';
  readonly session: SessionBook;
  readonly key: string;
  name: string;
  /** `unseen`: so far only a client record spoke of it. */
  state: 'unseen' | 'waiting' | 'held' | 'ended';
  mode: Mode;
  permits: number;
  /** Null before it was granted. */
  grant: GrantBook | null;
  queued: PlacedEvent | null;
  waitUntil: number;
  granted: PlacedEvent | null;
  ended: PlacedEvent | null;
  /** Run time from client records; infinite where nothing was said. */
  cancelConfirmedAt: number;
}

/** One grant with the requests that hold it, and what its client said about it. */
export interface GrantBook {
  readonly kind: 'grant';
  readonly session: SessionBook;
  readonly name: string;
  readonly token: Token;
  readonly mode: Mode;
  readonly permits: number;
  readonly owner: string;
  readonly granted: PlacedEvent;
  /** Requests that hold it now, and the keys of all that ever did. */
  readonly requests: Set<RequestBook>;
  readonly keys: Set<string>;
  /** Permits of the name when it was granted: those in use with it, and those allowed (undefined: not known). */
  readonly used: number;
  readonly allowed: number | null | undefined;
  revoking: PlacedEvent | null;
  brokenNow: PlacedEvent | null;
  ended: PlacedEvent | null;
  /** The grants of the same name before and after it, as far as they are remembered. */
  previous: GrantBook | null;
  next: GrantBook | null;
  /** Earlier grants of the name that their clients still believed in when this one was given, over or not. */
  readonly believers: Set<GrantBook>;
  /** Its place, and that of its end, among all events. */
  readonly order: number;
  endedOrder: number;
  /** Run times from client records; infinite where nothing was said. */
  reportedAt: number;
  believedUntil: number;
  gaveUpAt: number;
  lostAt: number;
  timesLost: number;
  /** When releases were confirmed, by key; '' = the record did not say. */
  readonly releasesConfirmed: Map<string, number>;
  /** Keys under which the client was told of it. */
  readonly toldKeys: Set<string>;
}

export interface NameBook {
  readonly name: string;
  readonly holds: GrantBook[];
  /** In order of queueing. */
  readonly queue: Set<RequestBook>;
  delayed: PlacedEvent | null;
  /** Group time; means nothing while `delayed` is null. */
  delayedUntil: number;
  quarantined: boolean;
  /** Group time of the last `unquarantined`: timers of a hold stood still until then. */
  quarantineEndedAt: number;
  /** Group time of the last event about it. */
  touchedAt: number;
  /** Index of the last entry in which a timer may have served it: what is left then waits for the next entry (rule C1). */
  timerIndex: number;
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
    unparkedAt: -NEVER,
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
    permits: 1,
    grant: null,
    queued: null,
    waitUntil: 0,
    granted: null,
    ended: null,
    cancelConfirmedAt: NEVER,
  };
}

export function newGrant(
  of: Pick<
    GrantBook,
    'session' | 'name' | 'token' | 'mode' | 'permits' | 'owner' | 'granted' | 'used' | 'allowed' | 'order'
  >,
): GrantBook {
  return {
    kind: 'grant',
    ...of,
    requests: new Set(),
    keys: new Set(),
    revoking: null,
    brokenNow: null,
    ended: null,
    previous: null,
    next: null,
    believers: new Set(),
    endedOrder: NEVER,
    reportedAt: NEVER,
    believedUntil: -NEVER,
    gaveUpAt: NEVER,
    lostAt: NEVER,
    timesLost: 0,
    releasesConfirmed: new Map(),
    toldKeys: new Set(),
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
    touchedAt: 0,
    timerIndex: 0,
  };
}

/** Whether two grants of one name may exist side by side; how many permits there are is another question (rule C2). */
export function areCompatible(a: Mode, b: Mode): boolean {
  return a === b && a !== 'exclusive';
}

/** Permits in use: of all holds, or of those that no revoke runs on. */
export function usedPermits(holds: readonly GrantBook[], which: 'all' | 'lasting' = 'all'): number {
  const counted = which === 'all' ? holds : holds.filter(({ revoking }) => revoking === null);
  return counted.reduce((sum, { permits }) => sum + permits, 0);
}

/** Whether an acquire was taken back by its key; nothing may be granted to it any more (rule A5). */
export function wasCancelled(request: RequestBook): boolean {
  return request.ended?.event.type === 'cancelled';
}
