/**
 * What a commit means for clients: answers, notices, reads, keepalives (rules S1, S2). Called after the commit and before
 * the next entry is applied, so the state it reads is exactly the committed one.
 */
import type { Command, CommandResult, LockEvent, SessionId } from '../../api/entry.ts';
import type {
  BulkReattachment,
  KeepaliveRequest,
  KeepaliveStatus,
  Mark,
  Position,
  Rejected,
} from '../../api/wire.ts';
import { type Applied, liveSessions, read, type State, sessionStatus } from '../../core/index.ts';
import type { Asked, Batch } from './inbox.ts';
import { Leases } from './leases.ts';
import { sessionToTell } from './notices.ts';
import { Outbox, type Outgoing } from './outbox.ts';
import type { RecentEvents } from './recent-events.ts';
import { Routes } from './routes.ts';

/**
 * Keepalives of one stream that wait for a commit; of more the newest are answered. An honest client has left its front end before it has
 * sent so many without an answer (rule S8).
 */
const KEEPALIVES_WAITING_MAX = 8;

interface PendingKeepalive {
  readonly to: Outgoing;
  readonly request: KeepaliveRequest;
}

interface ReattachParts {
  readonly recent: RecentEvents;
  /** Of the last entry that was published. */
  readonly position: Position;
  readonly clientOf: (client: number) => Outgoing;
}

/** One entry that is committed, and what waits for its commit. */
export interface Commit {
  readonly position: Position;
  readonly batch: Batch;
  readonly applied: Applied;
  readonly keepalives: readonly PendingKeepalive[];
}

export class Publisher {
  readonly leases = new Leases();
  readonly #makeMark: () => Mark;
  readonly #outbox = new Outbox();
  readonly #routes = new Routes();
  readonly #keepalives = new Map<Outgoing, KeepaliveRequest[]>();

  /** `makeMark`: for the commit that is being published. */
  constructor(makeMark: () => Mark) {
    this.#makeMark = makeMark;
  }

  /** A new leader owes every session a full TTL (rule S5). */
  startLeases(state: State, nowMs: number): void {
    this.leases.start(nowMs);
    for (const { id, ttlMs } of liveSessions(state)) this.leases.add(id, ttlMs, nowMs);
  }

  get hasKeepalives(): boolean {
    return this.#keepalives.size > 0;
  }

  /** Renews leases at once, and answers with the next commit (rule S1). */
  keepalive(to: Outgoing, request: KeepaliveRequest, nowMs: number): void {
    for (const { session, attach } of request.sessions) {
      const route = this.#routes.get(session);
      if (route?.attach === attach && route.to === to) this.leases.renew(session, nowMs);
    }
    this.#awaitCommit(to, request);
  }

  #awaitCommit(to: Outgoing, request: KeepaliveRequest): void {
    const waiting = this.#keepalives.get(to);
    if (waiting === undefined) {
      this.#keepalives.set(to, [request]);
      return;
    }
    waiting.push(request);
    if (waiting.length > KEEPALIVES_WAITING_MAX) waiting.shift();
  }

  /**
   * A front end's sessions, as its clients hold them: from now on their notices go there, and what was lost on the way is told again.
   * No lease is renewed (rule S4). One that has been attached elsewhere since is left where it is.
   */
  reattach(
    state: State,
    { sessions, seen }: BulkReattachment,
    { recent, position, clientOf }: ReattachParts,
  ): void {
    const attached = new Set<SessionId>();
    for (const { client, session, attach } of sessions) {
      if (state.sessions.get(session)?.attach !== attach) continue;
      this.#routes.set(session, clientOf(client), attach);
      attached.add(session);
    }
    if (seen.lineage !== position.lineage || attached.size === 0) return;
    for (const event of recent.between(seen.index, position.index)) {
      const session = sessionToTell(event);
      if (session !== null && attached.has(session)) this.#notify(session, event);
    }
    this.#outbox.flush(position);
  }

  /** Whether a session is attached by this very stream. */
  isAttached(session: SessionId, to: Outgoing): boolean {
    return this.#routes.get(session)?.to === to;
  }

  /** Keepalives that have arrived by now; those that arrive later wait for a later entry. */
  takeKeepalives(): readonly PendingKeepalive[] {
    const taken = [...this.#keepalives].flatMap(([to, requests]) =>
      requests.map((request) => ({ to, request })),
    );
    this.#keepalives.clear();
    return taken;
  }

  /** Their entry was not appended: they wait for the next one, before those that came meanwhile. */
  returnKeepalives(taken: readonly PendingKeepalive[]): void {
    const later = this.takeKeepalives();
    for (const { to, request } of [...taken, ...later]) {
      if (!to.isClosed) this.#awaitCommit(to, request);
    }
  }

  /** Refused without any state: needs no commit. */
  reject({ from, id }: Asked, rejected: Rejected, position: Position): void {
    this.#outbox.answer(from, id, rejected);
    this.#outbox.flush(position);
  }

  publish(state: State, { position, batch, applied, keepalives }: Commit, nowMs: number): void {
    for (let i = 0; i < batch.commands.length; i++) {
      const to = batch.from[i] as Outgoing;
      const result = applied.results[i] as CommandResult;
      this.#learn(batch.commands[i] as Command, result, to, nowMs);
      this.#outbox.answer(to, batch.ids[i] as number, result);
    }
    for (let i = 0; i < applied.events.length; i++) this.#notice(applied.events[i] as LockEvent);
    for (const { query, to, id } of batch.reads) this.#outbox.answer(to, id, read(state, query));
    for (const { to, request } of keepalives) {
      this.#outbox.keepalive(to, { number: request.number, sessions: this.#statuses(state, to, request) });
    }
    this.#outbox.flush(position, { nowMs, make: this.#makeMark });
  }

  /**
   * Over another stream than the session was attached by, a keepalive renews nothing and so acknowledges nothing: what it
   * names is left out, unless it is over.
   */
  #statuses(state: State, to: Outgoing, { sessions }: KeepaliveRequest): KeepaliveStatus[] {
    const statuses: KeepaliveStatus[] = [];
    for (const { session, attach } of sessions) {
      const status = this.leases.isCondemned(session)
        ? ({ session, attach, alive: false } as const)
        : statusOf(state, session, attach);
      if (!status.alive || this.#routes.get(session)?.to === to) statuses.push(status);
    }
    return statuses;
  }

  /** These client streams have closed. */
  forget(gone: readonly Outgoing[]): void {
    if (gone.length === 0) return;
    for (const to of gone) {
      this.#routes.close(to);
      this.#keepalives.delete(to);
    }
  }

  /** Where a session's notices go from now on, and its lease. */
  #learn(command: Command, result: CommandResult, to: Outgoing, nowMs: number): void {
    if (command.type === 'openSession' && result.type === 'opened') {
      this.#routes.set(result.session, to, 1);
      this.leases.add(result.session, command.ttlMs, nowMs);
    } else if (command.type === 'attach' && result.type === 'attached') {
      this.#routes.set(command.session, to, command.attach);
      this.leases.add(command.session, result.ttlMs, nowMs);
    }
  }

  /** Tells a session what happened to it otherwise than as the answer to its own request. */
  #notice(event: LockEvent): void {
    if (event.type === 'sessionEnding') this.leases.remove(event.session);
    const session = sessionToTell(event);
    if (session !== null) this.#notify(session, event);
    if (event.type === 'sessionEnded') this.#routes.delete(event.session);
  }

  #notify(session: SessionId, event: LockEvent): void {
    const route = this.#routes.get(session);
    if (route !== undefined) this.#outbox.notify(route.to, session, route.attach, event);
  }
}

function statusOf(state: State, session: SessionId, attach: number): KeepaliveStatus {
  const status = sessionStatus(state, session, attach);
  if (status === null) return { session, attach, alive: false };
  const { grants, digest, revoking } = status;
  return { session, attach, alive: true, grants, digest, revoking };
}
