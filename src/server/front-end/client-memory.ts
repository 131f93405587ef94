/**
 * What a front end remembers of one of its client streams, so that a change of leader costs the client nothing: the requests that have
 * no answer yet, to be sent again, and the sessions it has attached, to be re-attached in bulk (rule S4). Every request can be sent twice:
 * by its key, its token or its attach number the second one finds what the first one did (rules C4, C7, S3).
 */
import { ok as assert } from 'node:assert';
import type { SessionId } from '../../api/entry.ts';
import { KEY_BYTES_MAX } from '../../api/limits.ts';
import type { Answer, KeepaliveAnswer, RelayRequest, SessionNotice } from '../../api/wire.ts';
import { isRefusable } from '../refusable.ts';

/** Requests of one client without an answer; more acquires and reads are refused. */
const UNANSWERED_MAX = 10_000;
/** Bytes that they may take: with a name, a purpose and its acknowledged keys one can have 18 KB. */
const UNANSWERED_BYTES_MAX = 4 * 1024 * 1024;
/** What gives something back is refused only from twice as many on (rule S9). */
const HARD = 2;

/** What its numbers, key and short texts take. */
const REQUEST_BYTES = 256;

interface Unanswered {
  readonly request: RelayRequest;
  readonly sinceMs: number;
  readonly bytes: number;
}

export class ClientMemory {
  readonly #unanswered = new Map<number, Unanswered>();
  #bytes = 0;
  readonly #sessions = new Map<SessionId, number>();

  /** Sessions with their attach numbers, as far as answers have told. */
  get sessions(): ReadonlyMap<SessionId, number> {
    return this.#sessions;
  }

  /** In the order in which they came. */
  get unanswered(): readonly RelayRequest[] {
    return [...this.#unanswered.values()].map(({ request }) => request);
  }

  /** One of this id has no answer yet: another one could not be told from it, nor be counted. */
  isWaiting(id: number): boolean {
    return this.#unanswered.has(id);
  }

  /** False: too many have no answer yet, and this one is refused. */
  remember(request: RelayRequest, nowMs: number): boolean {
    assert(!this.#unanswered.has(request.id), 'one id stands for one request');
    const share = isRefusable(request.body) ? 1 : HARD;
    const bytes = bytesOf(request.body);
    if (this.#unanswered.size >= share * UNANSWERED_MAX) return false;
    if (this.#bytes + bytes > share * UNANSWERED_BYTES_MAX) return false;
    this.#unanswered.set(request.id, { request, sinceMs: nowMs, bytes });
    this.#bytes += bytes;
    return true;
  }

  /** Takes those that have waited since before `sinceMs`. */
  takeOlder(sinceMs: number): readonly number[] {
    const ids: number[] = [];
    for (const [id, unanswered] of this.#unanswered) if (unanswered.sinceMs <= sinceMs) ids.push(id);
    for (const id of ids) this.#take(id);
    return ids;
  }

  /**
   * Takes the acquires whose cancel or acknowledgement follows: a notice may have told of the outcome before the answer. Where both were
   * committed and only the answers were lost, the core has forgotten the key (rule C5): sent again, the acquire would be granted once more
   * (rule C3). What follows alone is right in either case.
   */
  takeSettled(): readonly number[] {
    const ids: number[] = [];
    const settled = new Set<string>();
    for (const [id, { request }] of [...this.#unanswered].reverse()) {
      const { body } = request;
      if (body.type === 'acquire' && settled.has(`${body.session} ${body.key}`)) ids.push(id);
      if (body.type === 'cancel') settled.add(`${body.session} ${body.key}`);
      if ('acks' in body) for (const key of body.acks) settled.add(`${body.session} ${key}`);
    }
    for (const id of ids) this.#take(id);
    return ids;
  }

  answered({ id, body }: Answer): void {
    const command = this.#take(id)?.request.body;
    if (command === undefined) return;
    if (command.type === 'openSession' && body.type === 'opened') this.#attached(body.session, 1);
    else if (command.type === 'attach' && body.type === 'attached') {
      this.#attached(command.session, command.attach);
    } else if (command.type === 'closeSession' && body.type === 'done') {
      this.#sessions.delete(command.session);
    }
  }

  noticed({ session, event }: SessionNotice): void {
    if (event.type === 'sessionEnding') this.#sessions.delete(session);
  }

  kept({ sessions }: KeepaliveAnswer): void {
    for (const { session, attach, alive } of sessions) {
      if (!alive && this.#sessions.get(session) === attach) this.#sessions.delete(session);
    }
  }

  #take(id: number): Unanswered | undefined {
    const unanswered = this.#unanswered.get(id);
    if (unanswered === undefined) return undefined;
    this.#unanswered.delete(id);
    this.#bytes -= unanswered.bytes;
    assert(this.#bytes >= 0, 'no request takes less than nothing');
    return unanswered;
  }

  #attached(session: SessionId, attach: number): void {
    assert(session > 0, 'a session that is attached has an id');
    assert(attach > (this.#sessions.get(session) ?? 0), 'attach numbers rise');
    this.#sessions.set(session, attach);
  }
}

/** About what a request takes in memory, and on its way to a leader. */
function bytesOf(body: RelayRequest['body']): number {
  let bytes = REQUEST_BYTES;
  if ('name' in body) bytes += body.name.length;
  if ('acks' in body) bytes += body.acks.length * KEY_BYTES_MAX;
  if (body.type === 'acquire') bytes += body.owner.length + body.purpose.length;
  return bytes;
}
