/**
 * What arrives at the leader: frames of front ends, taken apart into the inbox and the keepalives that wait for a commit.
 * Only what needs no state is refused here.
 */
import { ok as assert } from 'node:assert';
import type { Attach, Identity } from '../../api/entry.ts';
import {
  type BulkReattachment,
  type Position,
  type Rejected,
  type RelayFrame,
  type RelayRequest,
  unavailable,
} from '../../api/wire.ts';
import { levelOf, type State } from '../../core/index.ts';
import { Clients } from './clients.ts';
import { type Faults, MADE_IT_FAIL } from './faults.ts';
import type { Inbox } from './inbox.ts';
import type { Marks } from './marks.ts';
import type { FrontEndLink, Outgoing } from './outbox.ts';
import type { Publisher } from './publisher.ts';
import type { RecentEvents } from './recent-events.ts';

const LEADS_NO_MORE = unavailable('this server does not lead any more');
const INBOX_FULL = unavailable('too many requests wait for the log');
const LEVEL_TOO_LOW = unavailable(
  'exclusive locks without re-entrancy alone are available until every replica of this group is connected and of a version that knows others',
);

/** The leader it works for. */
export interface Receiving {
  readonly position: Position;
  readonly isLeading: boolean;
  readonly state: State;
  /** So long nothing is granted yet: a new lineage waits for the holders of the one before (rule S10). 0 = no wait. */
  readonly quietMs: number;
}

interface ReceptionParts {
  readonly inbox: Inbox;
  readonly publisher: Publisher;
  readonly faults: Faults;
  readonly recent: RecentEvents;
  readonly marks: Marks;
}

export class Reception {
  readonly #leader: Receiving;
  readonly #inbox: Inbox;
  readonly #publisher: Publisher;
  readonly #faults: Faults;
  readonly #recent: RecentEvents;
  readonly #marks: Marks;
  readonly #clients = new Clients();
  /** Front ends that send again to a successor what has no answer from here. */
  readonly #connected = new Set<FrontEndLink>();
  #acquireRefusal: string | null = null;
  #refusesSessions = false;
  /** How far the standby at the other end has applied the log (rule L4). */
  readonly #applied = new Map<FrontEndLink, number>();
  /** What the replica at the other end can apply (rule C15). */
  readonly #behaviours = new Map<FrontEndLink, number>();

  constructor(leader: Receiving, { inbox, publisher, faults, recent, marks }: ReceptionParts) {
    this.#leader = leader;
    this.#inbox = inbox;
    this.#publisher = publisher;
    this.#faults = faults;
    this.#recent = recent;
    this.#marks = marks;
  }

  /** Those that are connected. */
  get frontEnds(): number {
    return this.#connected.size;
  }

  /** Rule L5: acquires get this answer, null: they are taken. `sessionsToo`: and whoever wants to open a session for one. */
  refuseAcquires(why: string | null, sessionsToo: boolean): void {
    this.#acquireRefusal = why;
    this.#refusesSessions = sessionsToo;
  }

  /** Indexes up to which attached standbys have applied the log. */
  get standbys(): readonly number[] {
    return [...this.#applied.values()];
  }

  /** Behaviour levels that connected replicas support, one of each that has said so. */
  get behaviourLevels(): readonly number[] {
    return [...this.#behaviours.values()];
  }

  /** An entry is committed and published. */
  committed(): void {
    for (const link of this.#connected) link.committed?.();
  }

  /** A front end of another replica begins; until it has re-attached its sessions nobody expires (rule S4). */
  connect(link: FrontEndLink): void {
    this.#connected.add(link);
    this.#publisher.leases.reattaching(link);
  }

  /** Takes a frame that arrived now. */
  receive(link: FrontEndLink, frame: RelayFrame, nowMs: number): void {
    if (frame.reattach !== undefined) this.#reattach(link, frame.reattach);
    if (frame.applied !== undefined && this.#connected.has(link)) this.#applied.set(link, frame.applied);
    if (frame.behaviour !== undefined && this.#connected.has(link))
      this.#behaviours.set(link, frame.behaviour);
    if (frame.allAttached === true) this.#publisher.leases.reattached(link);
    for (const { client, requests, keepalive, identity, mark } of frame.groups) {
      if (mark !== undefined && this.#leader.isLeading) this.#marks.show(mark);
      const from = this.#clients.of(link, client);
      if (identity !== undefined) introduce(from, identity);
      for (let i = 0; i < requests.length; i++) this.#take(from, requests[i] as RelayRequest, nowMs);
      if (keepalive !== undefined && this.#leader.isLeading)
        this.#publisher.keepalive(from, keepalive, nowMs);
    }
    this.#publisher.forget(this.#clients.close(link, frame.closed));
  }

  disconnect(link: FrontEndLink): void {
    this.#publisher.forget(this.#clients.closeAll(link));
    this.#publisher.leases.reattached(link);
    this.#connected.delete(link);
    this.#applied.delete(link);
    this.#behaviours.delete(link);
  }

  #reattach(link: FrontEndLink, bulk: BulkReattachment): void {
    const { state, position } = this.#leader;
    const clientOf = (client: number): Outgoing => this.#clients.of(link, client);
    this.#publisher.reattach(state, bulk, { recent: this.#recent, position, clientOf });
  }

  #take(from: Outgoing, { id, body: asked }: RelayRequest, nowMs: number): void {
    const body = this.#bound(asked, from);
    if (body.type === 'attach') this.#renewFor(body, nowMs);
    // The front end sends it again to the successor.
    if (!this.#leader.isLeading && this.#connected.has(from.link)) return;
    const rejected = this.#rejectedNow(body);
    if (rejected !== null) this.#reject(from, id, rejected);
    else if (!this.#inbox.push(body, from, id)) this.#reject(from, id, INBOX_FULL);
  }

  /** Null: it may wait for a place in the log. */
  #rejectedNow(body: RelayRequest['body']): Rejected | null {
    if (!this.#leader.isLeading) return LEADS_NO_MORE;
    if (this.#faults.isKnown(body)) return MADE_IT_FAIL;
    if (body.type === 'acquire') {
      const { quietMs } = this.#leader;
      if (quietMs > 0) return quietFor(quietMs);
      // Refused for good it would be by the core, at this level; but it waits for a replica alone (rule C15).
      if (levelOf(body) > this.#leader.state.behaviour) return LEVEL_TOO_LOW;
    }
    return this.#acquireRefusal !== null && this.#isRefused(body) ? unavailable(this.#acquireRefusal) : null;
  }

  #isRefused({ type }: RelayRequest['body']): boolean {
    return type === 'acquire' || (type === 'openSession' && this.#refusesSessions);
  }

  /**
   * Rule C7: whoever has session id, attach number and token may act only under the session's identity, and over the stream that attached
   * it with the session's secret. A request for a session of another identity is put to the core as one of no session, over another stream
   * as one under no attach number: the core refuses both, and the refusal is answered after a commit like any other (rule S1). An honest
   * client then attaches again, with its secret; a guesser learns nothing. `state` may be an entry ahead of the log, which is no harm: a
   * session's identity never changes, and a session is told to its client only after the commit.
   */
  #bound(body: RelayRequest['body'], from: Outgoing): RelayRequest['body'] {
    if (!('session' in body) || body.session === 0) return body;
    const { sessions, lastSession } = this.#leader.state;
    const session = sessions.get(body.session);
    const isForeign =
      session === undefined ? body.session > lastSession : !isSame(session.identity, from.identity);
    if (isForeign) return { ...body, session: 0 };
    if (body.type === 'attach' || body.type === 'reportStale' || session === undefined) return body;
    return this.#publisher.isAttached(body.session, from) ? body : { ...body, attach: 0 };
  }

  #reject(from: Outgoing, id: number, rejected: Rejected): void {
    this.#publisher.reject({ from, id }, rejected, this.#leader.position);
  }

  /** An attach that will be accepted counts as a keepalive from its arrival on, however long it waits (rules S3, S6). */
  #renewFor({ session: id, attach, secretHash }: Attach, nowMs: number): void {
    const session = this.#leader.state.sessions.get(id);
    if (session === undefined || session.secretHash !== secretHash || attach <= session.attach) return;
    this.#publisher.leases.renew(id, nowMs);
  }
}

/** Rule S10: holders of the lineage before may still believe. */
function quietFor(quietMs: number): Rejected {
  const seconds = Math.ceil(quietMs / 1000);
  const message = `a new lineage has begun: nothing is granted for another ${seconds} s, until the locks of the one before are over`;
  return { ...unavailable(message), retryAfterMs: quietMs };
}

function introduce(from: Outgoing, identity: Identity): void {
  assert(from.identity === null || isSame(identity, from.identity), 'a stream proves one identity');
  from.identity = identity;
}

function isSame(identity: Identity, other: Identity | null): boolean {
  return other !== null && identity.account === other.account && identity.podUid === other.podUid;
}
