/** A line to a group whose streams are recorded, and sessions on it that note what they are told. */
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import type { LockEvent } from '../api/entry.ts';
import type { ClientFrame, ClientHandler, KeepaliveStatus, Position, ServerFrame } from '../api/wire.ts';
import { type AttachableSession, GroupClient } from './group-client.ts';
import type { Moment } from './lease-clock.ts';

export const POSITION: Position = { lineage: 'l', epoch: 2, index: 10 };

interface FakeStream {
  readonly handler: ClientHandler;
  readonly sent: ClientFrame[];
  isClosed: boolean;
}

/** `onConnect`: what the other end does while the stream is being opened. */
export function bench(onConnect: (handler: ClientHandler) => void = () => undefined) {
  const runtime = new VirtualRuntime();
  const streams: FakeStream[] = [];
  const client = new GroupClient(runtime, (handler) => {
    const stream: FakeStream = { handler, sent: [], isClosed: false };
    streams.push(stream);
    onConnect(handler);
    return {
      send: (frame) => void stream.sent.push(frame),
      close: () => {
        stream.isClosed = true;
      },
    };
  });
  const frame = (differs: Partial<ServerFrame> = {}): ServerFrame => ({
    position: POSITION,
    leading: true,
    answers: [],
    notices: [],
    ...differs,
  });
  return { runtime, streams, client, frame };
}

export class FakeSession implements AttachableSession {
  readonly id: number;
  attach = 1;
  ttlMs = 15_000;
  unheardInMs = Number.POSITIVE_INFINITY;
  isKept = true;
  connects = 0;
  disconnects = 0;
  readonly kept_: { readonly status: KeepaliveStatus; readonly sent: Moment }[] = [];
  readonly events: LockEvent[] = [];

  constructor(id: number) {
    this.id = id;
  }

  connected(): void {
    this.connects++;
  }

  disconnected(): void {
    this.disconnects++;
  }

  keepalive() {
    return this.isKept ? { session: this.id, attach: this.attach } : null;
  }

  kept(status: KeepaliveStatus, sent: Moment): void {
    this.kept_.push({ status, sent });
  }

  notice(event: LockEvent): void {
    this.events.push(event);
  }
}

export function alive(session: number): KeepaliveStatus {
  return { session, attach: 1, alive: true, grants: 0, digest: 0, revoking: [] };
}

export function joined(client: GroupClient, id: number): FakeSession {
  const session = new FakeSession(id);
  client.add(session);
  client.identified(session);
  return session;
}
