/**
 * What the checker remembers of requests and sessions that are over: for repeats of a key, for client records that come
 * later than the events they speak of, and for beliefs that outlive a grant. Oldest endings are forgotten first.
 */
import type { SessionId, Token } from '../../api/entry.ts';
import type { RequestBook, SessionBook } from './subjects.ts';

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
  readonly #byToken = new Map<Token, RequestBook>();
  readonly #lastGrants = new Map<string, RequestBook>();
  readonly #endedRequests = new Line<RequestBook>();
  readonly #endedSessions = new Line<SessionBook>();
  #forgottenToken = 0;
  readonly #requestsMax: number;
  readonly #lastLook: (subject: RequestBook | SessionBook) => void;

  constructor(requestsMax: number, lastLook: (subject: RequestBook | SessionBook) => void) {
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

  granted(token: Token): RequestBook | undefined {
    return this.#byToken.get(token);
  }

  /** The latest grant of a name, also after its end. */
  lastGrant(name: string): RequestBook | undefined {
    return this.#lastGrants.get(name);
  }

  /** Whether the grant of `token` may have been forgotten; if not, an unknown token was never granted. */
  mayHaveForgotten(token: Token): boolean {
    return token <= this.#forgottenToken;
  }

  addGrant(request: RequestBook): void {
    const before = this.#lastGrants.get(request.name);
    if (before !== undefined && before.successor === null) before.successor = request;
    this.#lastGrants.set(request.name, request);
    this.#byToken.set(request.token, request);
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
    if (this.#lastGrants.get(request.name) === request) this.#lastGrants.delete(request.name);
    if (request.token === 0) return;
    this.#byToken.delete(request.token);
    this.#forgottenToken = Math.max(this.#forgottenToken, request.token);
  }

  *endedRequests(): Iterable<RequestBook> {
    yield* new Set(this.#endedRequests);
  }

  *allSessions(): Iterable<SessionBook> {
    for (const sessions of this.#lineages.values()) yield* sessions.values();
  }
}
