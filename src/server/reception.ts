/**
 * What arrives at the leader: frames of front ends, taken apart into the inbox and the keepalives that wait for a commit.
 * Only what needs no state is refused here.
 */
import type { Attach } from '../api/entry.ts';
import type { BulkReattachment, Position, RelayFrame, RelayRequest } from '../api/wire.ts';
import type { State } from '../core/index.ts';
import { Clients } from './clients.ts';
import type { Faults } from './faults.ts';
import type { Inbox } from './inbox.ts';
import type { FrontEndLink, Outgoing } from './outbox.ts';
import type { Publisher } from './publisher.ts';
import type { RecentEvents } from './recent-events.ts';

/** The leader it works for. */
export interface Receiving {
  readonly position: Position;
  readonly isLeading: boolean;
  readonly state: State;
}

interface ReceptionParts {
  readonly inbox: Inbox;
  readonly publisher: Publisher;
  readonly faults: Faults;
  readonly recent: RecentEvents;
}

export class Reception {
  readonly #leader: Receiving;
  readonly #inbox: Inbox;
  readonly #publisher: Publisher;
  readonly #faults: Faults;
  readonly #recent: RecentEvents;
  readonly #clients = new Clients();
  /** Front ends that send again to a successor what has no answer from here. */
  readonly #connected = new Set<FrontEndLink>();
  /** How far the standby at the other end has applied the log (rule L4). */
  readonly #applied = new Map<FrontEndLink, number>();

  constructor(leader: Receiving, { inbox, publisher, faults, recent }: ReceptionParts) {
    this.#leader = leader;
    this.#inbox = inbox;
    this.#publisher = publisher;
    this.#faults = faults;
    this.#recent = recent;
  }

  /** Indexes up to which attached standbys have applied the log. */
  get standbys(): readonly number[] {
    return [...this.#applied.values()];
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
    if (frame.allAttached === true) this.#publisher.leases.reattached(link);
    for (const { client, requests, keepalive } of frame.groups) {
      const from = this.#clients.of(link, client);
      for (let i = 0; i < requests.length; i++) this.#take(from, requests[i] as RelayRequest, nowMs);
      if (keepalive !== undefined && this.#leader.isLeading)
        this.#publisher.keepalive(from, keepalive, nowMs);
    }
    for (const client of frame.closed) {
      this.#clients.close(link, client);
      this.#publisher.forget(link, client);
    }
  }

  disconnect(link: FrontEndLink): void {
    this.#clients.closeAll(link);
    this.#publisher.forget(link);
    this.#publisher.leases.reattached(link);
    this.#connected.delete(link);
    this.#applied.delete(link);
  }

  #reattach(link: FrontEndLink, bulk: BulkReattachment): void {
    const { state, position } = this.#leader;
    const clientOf = (client: number): Outgoing => this.#clients.of(link, client);
    this.#publisher.reattach(state, bulk, { recent: this.#recent, position, clientOf });
  }

  #take(from: Outgoing, { id, body }: RelayRequest, nowMs: number): void {
    if (body.type === 'attach') this.#renewFor(body, nowMs);
    if (!this.#leader.isLeading) {
      if (this.#connected.has(from.link)) return;
      this.#reject(from, id, 'UNAVAILABLE', 'this server does not lead any more');
    } else if (this.#faults.isKnown(body)) {
      this.#reject(from, id, 'INVALID', 'this request has made the state machine fail before');
    } else if (!this.#inbox.push(body, from, id)) {
      this.#reject(from, id, 'UNAVAILABLE', 'too many requests wait for the log');
    }
  }

  #reject(from: Outgoing, id: number, code: 'UNAVAILABLE' | 'INVALID', message: string): void {
    this.#publisher.reject(from, id, this.#leader.position, code, message);
  }

  /** An attach that will be accepted counts as a keepalive from its arrival on, however long it waits (rules S3, S6). */
  #renewFor({ session: id, attach, secretHash }: Attach, nowMs: number): void {
    const session = this.#leader.state.sessions.get(id);
    if (session === undefined || session.secretHash !== secretHash || attach <= session.attach) return;
    this.#publisher.leases.renew(id, nowMs);
  }
}
