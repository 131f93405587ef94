/**
 * A front end's stream to the leader of its group.
 */
import type { Buffer } from 'node:buffer';
import { Client, Metadata, type StatusObject, status } from '@grpc/grpc-js';
import type { RelayFrame } from '../../api/wire.ts';
import type { Timers } from '../../platform/runtime.ts';
import type { DialLeader, LeaderStream, LeaderStreamHandler } from '../front-end/leader-link.ts';
import type { Dial } from '../security/tls.ts';
import { GatheredFrames } from './gathered-frames.ts';
import { asIs, BoundedWriter, CHANNEL_OPTIONS, type RelayMethod } from './streams.ts';

/** Which replica it is that calls; its certificate must prove it. */
export const SERVER_ID_HEADER = 'leasehold-server-id';
/** What the leader may leave unread, before the stream counts as broken. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;

export interface RelayClientOptions {
  readonly method: RelayMethod;
  readonly timers: Timers;
  /** Of this replica. */
  readonly serverId: string;
  /** Where the relay service of each replica is, by server id. */
  readonly addresses: Readonly<Record<string, string>>;
  /** How a replica is dialled; asked for each stream, since certificates may have been replaced. */
  readonly dial: (serverId: string) => Dial;
}

export function relayDialer(options: RelayClientOptions): DialLeader {
  return (serverId, handler) => {
    const { addresses } = options;
    const address = Object.hasOwn(addresses, serverId) ? addresses[serverId] : undefined;
    return address === undefined ? null : dial({ serverId, address }, handler, options);
  };
}

function dial(
  leader: { readonly serverId: string; readonly address: string },
  handler: LeaderStreamHandler,
  { method, timers, serverId, dial: dialTo }: RelayClientOptions,
): LeaderStream {
  const { credentials, options } = dialTo(leader.serverId);
  const client = new Client(leader.address, credentials, { ...CHANNEL_OPTIONS, ...options });
  const metadata = new Metadata();
  metadata.set(SERVER_ID_HEADER, serverId);
  const call = client.makeBidiStreamRequest(method.definition.path, asIs, asIs, metadata);
  let isOpen = true;
  const end = (isAnswered: boolean): void => {
    if (!isOpen) return;
    isOpen = false;
    gathered.drop();
    writer.close();
    call.cancel();
    client.close();
    handler.onClose(isAnswered);
  };
  const writer = new BoundedWriter(call, UNREAD_BYTES_MAX, () => end(false));
  const gathered = new GatheredFrames(timers, (frame) => writer.write(method.request.encode(frame)));
  call.on('data', (bytes: Buffer) => {
    if (!isOpen) return;
    try {
      handler.onFrame(method.response.decode(bytes));
    } catch (error) {
      handler.onError(error);
      end(false);
    }
  });
  // Every end is reported as a status; an error that nobody listens to would end the process.
  call.on('error', () => undefined);
  call.on('status', ({ code }: StatusObject) => end(code === status.FAILED_PRECONDITION));
  return {
    send: (frame: RelayFrame) => gathered.send(frame),
    close: () => end(true),
  };
}
