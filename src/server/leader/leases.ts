/**
 * Which sessions have been silent for too long. Kept by the leader alone, on its monotonic clock: keepalives are not logged,
 * only the verdict is (`expireSessions`, rule S6). A new leader gives every session a full TTL (rule S5).
 */
import { ok as assert } from 'node:assert';
import type { ExpireSessions, SessionId } from '../../api/entry.ts';
import { STALL_MS } from './stalls.ts';

interface Lease {
  readonly ttlMs: number;
  expiresAtMs: number;
  /** For its client it is over (rule C13); it ends once nobody can believe in it any more. */
  isCondemned: boolean;
}

export class Leases {
  readonly #leases = new Map<SessionId, Lease>();
  #longestTtlMs = 0;
  #condemned = 0;
  /** Sessions are spared until `#graceFromMs + TTL/3`. */
  #graceFromMs = Number.NEGATIVE_INFINITY;
  #stalledMs = 0;
  #startedMs = Number.NEGATIVE_INFINITY;
  /** Connected front ends whose sessions are not all attached again; until then keepalives may lie in them (rule S4). */
  readonly #reattaching = new Set<object>();

  get size(): number {
    return this.#leases.size;
  }

  add(session: SessionId, ttlMs: number, nowMs: number): void {
    assert(!this.isCondemned(session), 'a condemned session is not attached again');
    this.#leases.set(session, { ttlMs, expiresAtMs: nowMs + ttlMs, isCondemned: false });
    this.#longestTtlMs = Math.max(this.#longestTtlMs, ttlMs);
  }

  remove(session: SessionId): void {
    if (this.isCondemned(session)) this.#condemned--;
    this.#leases.delete(session);
  }

  /** A keepalive, or an attach, arrived now. Counts from its arrival: later than it was sent, so never too early. */
  renew(session: SessionId, nowMs: number): void {
    const lease = this.#leases.get(session);
    if (lease?.isCondemned === false) lease.expiresAtMs = nowMs + lease.ttlMs;
  }

  /** From now on nothing renews it (rule C13). */
  condemn(session: SessionId): void {
    const lease = this.#leases.get(session);
    if (lease === undefined || lease.isCondemned) return;
    lease.isCondemned = true;
    this.#condemned++;
  }

  get hasCondemned(): boolean {
    return this.#condemned > 0;
  }

  isCondemned(session: SessionId): boolean {
    return this.#condemned > 0 && this.#leases.get(session)?.isCondemned === true;
  }

  /**
   * The loop or the commits stood still for `forMs`: keepalives may lie unread in sockets, so nobody expires for TTL/3.
   * At most once per TTL, or a leader that keeps stalling would keep the locks of the dead for ever.
   */
  stalled(forMs: number, nowMs: number): void {
    if (forMs <= STALL_MS) return;
    this.#stalledMs = Math.max(this.#stalledMs, forMs);
    if (nowMs - this.#graceFromMs >= this.#longestTtlMs) this.#graceFromMs = nowMs;
  }

  /** The longest standstill since this was last asked, 0 = none; for the metric. */
  takeStall(): number {
    const stalledMs = this.#stalledMs;
    this.#stalledMs = 0;
    return stalledMs;
  }

  /** This leadership begins. */
  start(nowMs: number): void {
    assert(this.#startedMs === Number.NEGATIVE_INFINITY, 'a leadership begins once');
    assert(this.#leases.size === 0, 'no lease is older than its leadership');
    this.#startedMs = nowMs;
  }

  /** A front end has connected and will say when its sessions are attached. */
  reattaching(frontEnd: object): void {
    this.#reattaching.add(frontEnd);
  }

  /** Its sessions are attached, or it is gone. */
  reattached(frontEnd: object): void {
    this.#reattaching.delete(frontEnd);
  }

  /** Sessions to end now. One pass over all: 20,000 cost under a millisecond, four times a second. */
  expired(nowMs: number): SessionId[] {
    const expired: SessionId[] = [];
    for (const [session, { ttlMs, expiresAtMs }] of this.#leases) {
      if (nowMs < expiresAtMs || nowMs < this.#graceFromMs + ttlMs / 3) continue;
      // One TTL after the take-over is owed anyway; for a front end that does not get ready, one more and no longer.
      if (this.#reattaching.size > 0 && nowMs < this.#startedMs + 2 * ttlMs) continue;
      expired.push(session);
    }
    return expired;
  }
}

/** The commands that end the sessions whose time is over, by their causes (rules S6, C13). */
export function verdicts(leases: Pick<Leases, 'expired' | 'isCondemned'>, nowMs: number): ExpireSessions[] {
  const over = leases.expired(nowMs);
  const threw = over.filter((session) => leases.isCondemned(session));
  const expired = threw.length === 0 ? over : over.filter((session) => !leases.isCondemned(session));
  const causes = [
    { sessions: threw, cause: 'threw' },
    { sessions: expired, cause: 'expired' },
  ] as const;
  return causes.flatMap(({ sessions, cause }) =>
    sessions.length === 0 ? [] : [{ type: 'expireSessions' as const, sessions, cause }],
  );
}
