/**
 * The leader's end of the streams between front ends and leader. Each front end has one; its newer stream closes the older one, unread, so
 * that a frame that was on its way there cannot come after what its sender has said since (rule S4).
 */
import type { Buffer } from 'node:buffer';
import { type handleUnaryCall, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { LeaderFrame } from '../../api/wire.ts';
import type { Timer, Timers } from '../../platform/runtime.ts';
import type { Leader } from '../leader/leader.ts';
import type { FrontEndLink } from '../leader/outbox.ts';
import type { Message } from './proto.ts';
import { CallError, toServiceError } from './status.ts';
import { BoundedWriter, type RelayMethod, type ServerStream } from './streams.ts';

/** How often a front end hears of a leader, at least every second time (rule S7): of one that has nothing to say, that it is there. */
const PING_MS = 200;
/** What a front end may leave unread: the answers to a few seconds of full load. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;

/** Which replica a stream comes from. Throws when it does not prove it. */
export type IdentifyPeer = (call: PeerCall) => string;
/** What shows who calls: of a stream or of a single call. */
export type PeerCall = Pick<ServerStream, 'metadata' | 'getPeer' | 'getAuthContext'>;

/** Single calls between replicas, each with the caller's proof looked at first. */
export function forPeers(
  service: UntypedServiceImplementation,
  identifyPeer: IdentifyPeer,
): UntypedServiceImplementation {
  const guarded = Object.entries(service).map(([name, handler]) => {
    const handle = handler as handleUnaryCall<Message, Message>;
    const guard: handleUnaryCall<Message, Message> = (call, callback) => {
      try {
        identifyPeer(call);
      } catch (error) {
        callback(toServiceError(error));
        return;
      }
      handle(call, callback);
    };
    return [name, guard] as const;
  });
  return Object.fromEntries(guarded);
}

export interface RelayServiceOptions {
  readonly method: RelayMethod;
  readonly timers: Timers;
  /** The leader in this process, while there is one. */
  readonly leader: () => Leader | null;
  readonly identifyPeer: IdentifyPeer;
}

export class RelayService {
  readonly implementation: UntypedServiceImplementation = {
    Relay: (call: ServerStream) => this.#accept(call),
  };
  readonly #options: RelayServiceOptions;
  readonly #links = new Map<string, RelayLink>();
  #ping: Timer | null = null;

  constructor(options: RelayServiceOptions) {
    this.#options = options;
  }

  /** This replica leads no more: front ends look for its successor. */
  closeAll(): void {
    for (const link of this.#links.values()) {
      link.close(new CallError(status.FAILED_PRECONDITION, 'this replica does not lead any more'));
    }
    this.#links.clear();
    this.#ping?.cancel();
    this.#ping = null;
  }

  #accept(call: ServerStream): void {
    const { identifyPeer, method } = this.#options;
    const leader = this.#options.leader();
    // Without a listener a call that is cancelled early would end the process.
    call.on('error', () => undefined);
    let serverId: string;
    try {
      serverId = identifyPeer(call);
      if (leader === null) throw new CallError(status.FAILED_PRECONDITION, 'this replica does not lead');
    } catch (error) {
      call.emit('error', toServiceError(error));
      return;
    }
    this.#links.get(serverId)?.close(new CallError(status.ABORTED, 'a newer stream of this front end'));
    const link = new RelayLink(call, method, leader, () => {
      if (this.#links.get(serverId) === link) this.#links.delete(serverId);
    });
    this.#links.set(serverId, link);
    link.open();
    if (this.#ping === null) this.#planPing();
  }

  #planPing(): void {
    this.#ping = this.#options.timers.after(PING_MS, () => {
      for (const link of this.#links.values()) link.tick();
      this.#planPing();
    });
  }
}

class RelayLink implements FrontEndLink {
  readonly #call: ServerStream;
  readonly #method: RelayMethod;
  readonly #leader: Leader;
  readonly #writer: BoundedWriter;
  readonly #onClosed: () => void;
  #isClosed = false;
  /** Something was sent since the last tick. */
  #hasSpoken = false;

  constructor(call: ServerStream, method: RelayMethod, leader: Leader, onClosed: () => void) {
    this.#call = call;
    this.#method = method;
    this.#leader = leader;
    this.#onClosed = onClosed;
    this.#writer = new BoundedWriter(call, UNREAD_BYTES_MAX, () =>
      this.close(new CallError(status.RESOURCE_EXHAUSTED, 'this front end does not read what it is sent')),
    );
  }

  /** Says that it is accepted, and listens. */
  open(): void {
    this.#leader.connect(this);
    this.ping();
    this.#call.on('cancelled', () => this.close());
    this.#call.on('end', () => this.close());
    this.#call.on('data', (bytes: Buffer) => {
      if (!this.#isClosed) this.#receive(bytes);
    });
  }

  send(frame: LeaderFrame): void {
    this.#hasSpoken = true;
    this.#writer.write(this.#method.response.encode(frame));
  }

  /** The standby there need not look for entries as long as it is told of them; once in a tick is often enough. */
  committed(): void {
    if (!this.#hasSpoken) this.ping();
  }

  tick(): void {
    if (!this.#hasSpoken) this.ping();
    this.#hasSpoken = false;
  }

  ping(): void {
    this.send({ position: this.#leader.position, groups: [] });
  }

  close(error?: CallError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#writer.close();
    this.#leader.disconnect(this);
    this.#onClosed();
    if (error === undefined) this.#call.end();
    else this.#call.emit('error', toServiceError(error));
  }

  #receive(bytes: Buffer): void {
    try {
      this.#leader.receive(this, this.#method.request.decode(bytes));
    } catch (error) {
      this.close(new CallError(status.INVALID_ARGUMENT, String(error)));
    }
  }
}
