/**
 * How the book takes in what clients say. A record may come before the entry it speaks of: then it is parked until the
 * session or the grant appears, and what is still parked at the end spoke of something that was never committed.
 */
import type { ClientRecord } from '../records.ts';
import type { Book } from './book.ts';
import { type GrantBook, NEVER, newRequest, type RequestBook, type SessionBook } from './subjects.ts';

const PARKED_RECORDS_MAX = 100_000;
/** Stops of one client that are remembered. */
const STOPS_MAX = 1_000;

export type Note =
  | {
      readonly outcome: 'noted';
      readonly session: SessionBook;
      readonly request: RequestBook | null;
      readonly grant: GrantBook | null;
    }
  /** No such grant is in the record, and none can come any more. */
  | { readonly outcome: 'neverGranted' }
  | { readonly outcome: 'parked' }
  /** What it speaks of is forgotten already, or too many records are parked. */
  | { readonly outcome: 'unjudged' };

export class Notes {
  readonly #book: Book;
  readonly #parked: Map<string, ClientRecord[]> = new Map();
  #parkedCount = 0;

  constructor(book: Book) {
    this.#book = book;
  }

  note(record: ClientRecord): Note {
    const book = this.#book;
    const session = book.memory.knownSession(record.lineage, record.session);
    if (session === undefined || session.state === 'unknown') {
      const passed =
        record.lineage === book.lineage
          ? record.session <= book.highestSession
          : book.memory.knowsLineage(record.lineage);
      return passed
        ? { outcome: 'unjudged' }
        : this.#park(sessionPlace(record.lineage, record.session), record);
    }
    if (!('token' in record)) {
      return { outcome: 'noted', session, request: noteOfSession(book, session, record), grant: null };
    }
    const grant = book.memory.granted(record.token);
    if (grant === undefined) {
      if (record.token > book.highestToken) return this.#park(tokenPlace(record.token), record);
      return { outcome: book.memory.mayHaveForgotten(record.token) ? 'unjudged' : 'neverGranted' };
    }
    noteOfGrant(grant, record);
    return { outcome: 'noted', session, request: null, grant };
  }

  /** Takes out what waited for this session or grant to appear. */
  unpark(appeared: { readonly session: number; readonly token?: number }): readonly ClientRecord[] {
    if (this.#parkedCount === 0) return [];
    const { session, token } = appeared;
    const place = token === undefined ? sessionPlace(this.#book.lineage, session) : tokenPlace(token);
    const records = this.#parked.get(place) ?? [];
    this.#parked.delete(place);
    this.#parkedCount -= records.length;
    return records;
  }

  *parked(): Iterable<ClientRecord> {
    for (const records of this.#parked.values()) yield* records;
  }

  #park(place: string, record: ClientRecord): Note {
    if (this.#parkedCount >= PARKED_RECORDS_MAX) return { outcome: 'unjudged' };
    const records = this.#parked.get(place);
    if (records === undefined) this.#parked.set(place, [record]);
    else records.push(record);
    this.#parkedCount += 1;
    return { outcome: 'parked' };
  }
}

function sessionPlace(lineage: string, session: number): string {
  return `session ${session} of ${lineage}`;
}

function tokenPlace(token: number): string {
  return `token ${token}`;
}

type OfGrant = Extract<ClientRecord, { readonly token: number }>;

function noteOfSession(
  book: Book,
  session: SessionBook,
  record: Exclude<ClientRecord, OfGrant>,
): RequestBook | null {
  switch (record.type) {
    case 'keepaliveAcknowledged':
      session.keptAliveUntil = Math.max(session.keptAliveUntil, record.sentAt + record.ttlMs);
      session.lastSentAt = Math.max(session.lastSentAt, record.sentAt);
      return null;
    case 'clientStopped':
      session.stops.push({ from: record.at, to: NEVER });
      if (session.stops.length > STOPS_MAX) session.stops.shift();
      return null;
    case 'clientResumed': {
      const stop = session.stops.at(-1);
      if (stop !== undefined) stop.to = Math.min(stop.to, record.at);
      return null;
    }
    case 'cancelConfirmed': {
      let request = session.requests.get(record.key);
      if (request === undefined) {
        request = newRequest(session, record.key, '');
        session.requests.set(record.key, request);
        book.memory.addEndedRequest(request);
      }
      request.cancelConfirmedAt = Math.min(request.cancelConfirmedAt, record.at);
      return request;
    }
  }
}

function noteOfGrant(grant: GrantBook, record: OfGrant): void {
  switch (record.type) {
    case 'grantReported':
      grant.reportedAt = Math.min(grant.reportedAt, record.at);
      grant.toldKeys.add(record.key);
      return;
    case 'heldInterval':
      grant.reportedAt = Math.min(grant.reportedAt, record.from);
      grant.believedUntil = Math.max(grant.believedUntil, record.to);
      for (let next = grant.next; next !== null; next = next.next) {
        if (next.granted.runAt >= grant.believedUntil) break;
        next.believers.add(grant);
      }
      return;
    case 'gaveUp':
      grant.gaveUpAt = Math.min(grant.gaveUpAt, record.at);
      return;
    case 'lost':
      grant.timesLost += 1;
      grant.lostAt = Math.min(grant.lostAt, record.at);
      return;
    case 'releaseConfirmed': {
      const { key = '', at } = record;
      grant.releasesConfirmed.set(key, Math.min(grant.releasesConfirmed.get(key) ?? NEVER, at));
      return;
    }
  }
}
