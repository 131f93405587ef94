/**
 * Reading the state: what `Inspect`, the HTTP API and keepalive answers show. Nothing here changes anything.
 */
import type { SessionId } from '../api/entry.ts';
import type {
  GetLock,
  HolderView,
  ListLocks,
  LockView,
  ReadQuery,
  ReadResult,
  RevokingGrant,
  WaiterView,
} from '../api/wire.ts';
import { unreachable } from './assert.ts';
import { holdCount, holdsOf } from './crowd.ts';
import { isAlive } from './policy.ts';
import type { Hold, Lock, State, Wait } from './state.ts';

/** Holders shown of one lock; `holderCount` counts them all. */
const HOLDERS_SHOWN_MAX = 100;
/** Waiters shown of one lock; `waiterCount` counts them all. */
const WAITERS_SHOWN_MAX = 100;
/** Holders and waiters shown in one page of a list, but for those of its last lock: some MB at most, however many share locks. */
const LIST_ROWS_MAX = 2_000;
/** Names kept for each one that a list shows, before all but the first are dropped: each round of sorting is paid for by many names. */
const CANDIDATES_PER_NAME = 4;
const CANDIDATES_MIN = 64;

export function read(state: State, query: ReadQuery): ReadResult {
  switch (query.type) {
    case 'getLock':
      return { type: 'lock', lock: viewLock(state, query.name) };
    case 'listLocks':
      return listLocks(state, query);
    default:
      return unreachable(query);
  }
}

function viewLock(state: State, name: GetLock['name']): LockView {
  const lock = state.locks.get(name);
  return view(state, lock ?? freeLock(name));
}

/** As if somebody had asked for it: nothing is made. */
function freeLock(name: string): Lock {
  return { name, hold: null, crowd: null, queue: null, delay: null, quarantined: false };
}

function view(state: State, lock: Lock): LockView {
  const holders: HolderView[] = [];
  for (const hold of holdsOf(lock)) {
    if (holders.length === HOLDERS_SHOWN_MAX) break;
    holders.push(viewHolder(state, hold));
  }
  const waiters: WaiterView[] = [];
  for (const wait of lock.queue ?? []) {
    if (waiters.length === WAITERS_SHOWN_MAX) break;
    waiters.push(viewWaiter(state, wait));
  }
  return {
    name: lock.name,
    holders,
    holderCount: holdCount(lock),
    waiters,
    waiterCount: lock.queue?.size ?? 0,
    lockDelayMs: lock.delay === null ? 0 : Math.max(0, lock.delay.due - state.at),
    quarantined: lock.quarantined,
  };
}

export function viewHolder(state: State, hold: Hold): HolderView {
  const { session, request } = hold.record;
  return {
    session: session.id,
    client: session.client,
    owner: request.owner,
    purpose: request.purpose,
    token: hold.token,
    mode: request.mode,
    permits: request.permits,
    heldForMs: state.at - hold.since,
    revoking: hold.revoking,
  };
}

function viewWaiter(state: State, wait: Wait): WaiterView {
  const { session, request } = wait.record;
  return {
    session: session.id,
    client: session.client,
    owner: request.owner,
    mode: request.mode,
    permits: request.permits,
    waitedMs: state.at - wait.queuedAt,
  };
}

/** Names in the order of their UTF-16 units. */
function listLocks(state: State, { prefix, after, limit }: ListLocks): ReadResult {
  const names = firstNames(state.locks.keys(), { prefix, after, count: limit + 1 });
  const locks: LockView[] = [];
  let rows = 0;
  for (const name of names) {
    if (locks.length === limit || rows >= LIST_ROWS_MAX) break;
    const lock = viewLock(state, name);
    rows += lock.holders.length + lock.waiters.length;
    locks.push(lock);
  }
  return { type: 'locks', locks, more: names.length > locks.length };
}

/**
 * The first `count` names behind `after`, sorted. One pass over all of them, because an index in order would be paid for by every acquire
 * and release; but only those that can still be among the first are kept and sorted, since sorting a million took a second, in which the
 * leader stood still. Of a million names: 20 to 65 ms; where they were made nearly in falling order, so that each one looks as if it were
 * among the first, up to 0.4 s (docs/BENCHMARKS.md).
 */
function firstNames(
  names: Iterable<string>,
  { prefix, after, count }: { readonly prefix: string; readonly after: string; readonly count: number },
): string[] {
  const room = CANDIDATES_PER_NAME * count + CANDIDATES_MIN;
  const first: string[] = [];
  let last: string | null = null;
  for (const name of names) {
    if ((last !== null && name >= last) || name <= after || !name.startsWith(prefix)) continue;
    first.push(name);
    if (first.length < room) continue;
    first.sort();
    first.length = count;
    last = first[count - 1] as string;
  }
  first.sort();
  if (first.length > count) first.length = count;
  return first;
}

/** What a keepalive answer says of a session; null when it is unknown, ending, or attached under another number. */
export interface SessionStatus {
  readonly ttlMs: number;
  readonly grants: number;
  readonly digest: number;
  readonly revoking: readonly RevokingGrant[];
}

const NONE_REVOKING: readonly RevokingGrant[] = [];

export function sessionStatus(state: State, id: SessionId, attach: number): SessionStatus | null {
  const session = state.sessions.get(id);
  if (session === undefined || !isAlive(session) || session.attach !== attach) return null;
  let revoking: RevokingGrant[] | null = null;
  // Revokes are rare; a session without one in flight must not pay for a list of its grants.
  if (state.revoking > 0) {
    for (const hold of session.holds.values()) {
      if (hold.revoking !== null) {
        revoking ??= [];
        revoking.push({ token: hold.token, cause: hold.revoking });
      }
    }
  }
  return {
    ttlMs: session.ttlMs,
    grants: session.holds.size,
    digest: session.digest >>> 0,
    revoking: revoking ?? NONE_REVOKING,
  };
}

/** TTL of every live session: what a new leader starts its leases from (rule S5). */
export function* liveSessions(state: State): Generator<{ readonly id: SessionId; readonly ttlMs: number }> {
  for (const session of state.sessions.values()) {
    if (isAlive(session)) yield { id: session.id, ttlMs: session.ttlMs };
  }
}
