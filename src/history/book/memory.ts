/**
 * What the checker remembers of requests, grants and sessions that are over: for repeats of a key, for client records that come
 * later than the events they speak of, and for beliefs that outlive a grant. Oldest endings are forgotten first.
 */
import type { SessionId, Token } from '../../api/entry.ts';
import type { GrantBook, RequestBook, SessionBook } from './subjects.ts';

export type Subject = RequestBook | GrantBook | SessionBook;

export const REMEMBERED_REQUESTS_DEFAULT = 200_000;
const REMEMBERED_SESSIONS_MAX = 20_000;

/** First in, first out, with a head that moves: shifting a long array costs too much. */
class Line<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    this.#head += 1;
    if (this.#head * 2 > this.#items.length && this.#head > 1_024) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T;
  }
}

export class Memory {
  /** Sessions by lineage; the ended ones stay until they are forgotten. */
  readonly #lineages = new Map<string, Map<SessionId, SessionBook>>();
  readonly #byToken = new Map<Token, GrantBook>();
  readonly #lastGrants = new Map<string, GrantBook>();
  readonly #endedRequests = new Line<RequestBook>();
  readonly #endedGrants = new Line<GrantBook>();
  readonly #endedSessions = new Line<SessionBook>();
  #forgottenToken = 0;
  readonly #requestsMax: number;
  readonly #lastLook: (subject: Subject) => void;

  constructor(requestsMax: number, lastLook: (subject: Subject) => void) {
    this.#requestsMax = requestsMax;
    this.#lastLook = lastLook;
  }

  sessionsOf(lineage: string): Map<SessionId, SessionBook> {
    let sessions = this.#lineages.get(lineage);
    if (sessions === undefined) {
      sessions = new Map();
      this.#lineages.set(lineage, sessions);
    }
    return sessions;
  }

  knowsLineage(lineage: string): boolean {
    return this.#lineages.has(lineage);
  }

  knownSession(lineage: string, id: SessionId): SessionBook | undefined {
    return this.#lineages.get(lineage)?.get(id);
  }

  granted(token: Token): GrantBook | undefined {
    return this.#byToken.get(token);
  }

  /** The latest grant of a name, also after its end. */
  lastGrant(name: string): GrantBook | undefined {
    return this.#lastGrants.get(name);
  }

  /** Whether the grant of `token` may have been forgotten; if not, an unknown token was never granted. */
  mayHaveForgotten(token: Token): boolean {
    return token <= this.#forgottenToken;
  }

  addGrant(grant: GrantBook): void {
    const before = this.#lastGrants.get(grant.name);
    if (before !== undefined) {
      before.next = grant;
      grant.previous = before;
    }
    this.#lastGrants.set(grant.name, grant);
    this.#byToken.set(grant.token, grant);
  }

  addEndedGrant(grant: GrantBook): void {
    this.#endedGrants.push(grant);
    while (this.#endedGrants.length > this.#requestsMax) {
      const oldest = this.#endedGrants.shift();
      if (oldest === undefined) continue;
      this.#lastLook(oldest);
      this.#unlink(oldest);
      this.#byToken.delete(oldest.token);
      // Grants that came later may still refer to it, but not through it to all before it.
      oldest.believers.clear();
      this.#forgottenToken = Math.max(this.#forgottenToken, oldest.token);
    }
  }

  /** One who holds a shared name for long must not keep all grants that came after it. */
  #unlink(grant: GrantBook): void {
    const { name, previous, next } = grant;
    if (previous !== null) previous.next = next;
    if (next !== null) next.previous = previous;
    grant.previous = null;
    grant.next = null;
    if (this.#lastGrants.get(name) !== grant) return;
    if (previous === null) this.#lastGrants.delete(name);
    else this.#lastGrants.set(name, previous);
  }

  addEndedRequest(request: RequestBook): void {
    this.#endedRequests.push(request);
    while (this.#endedRequests.length > this.#requestsMax) {
      const oldest = this.#endedRequests.shift();
      if (oldest !== undefined) this.#forgetRequest(oldest);
    }
  }

  addEndedSession(session: SessionBook): void {
    this.#endedSessions.push(session);
    while (this.#endedSessions.length > REMEMBERED_SESSIONS_MAX) {
      const oldest = this.#endedSessions.shift();
      if (oldest === undefined || oldest.state === 'alive' || oldest.state === 'ending') continue;
      this.#lastLook(oldest);
      this.#lineages.get(oldest.lineage)?.delete(oldest.id);
    }
  }

  /** A request that only a record spoke of and that was used since is still in use: nothing to forget. */
  #forgetRequest(request: RequestBook): void {
    if (request.state === 'waiting' || request.state === 'held') return;
    this.#lastLook(request);
    if (request.session.requests.get(request.key) === request) request.session.requests.delete(request.key);
  }

  *endedRequests(): Iterable<RequestBook> {
    yield* new Set(this.#endedRequests);
  }

  endedGrants(): Iterable<GrantBook> {
    return this.#endedGrants;
  }

  *allSessions(): Iterable<SessionBook> {
    for (const sessions of this.#lineages.values()) yield* sessions.values();
  }
}
