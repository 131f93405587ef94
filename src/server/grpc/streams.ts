/**
 * Streams of frames over gRPC, with what all of them need: messages are encoded here rather than by the library, so that bytes can be
 * counted, and what a slow reader has not taken yet is bounded (rule S9).
 */
import type { Buffer } from 'node:buffer';
import type { ClientOptions, MethodDefinition, ServerDuplexStream } from '@grpc/grpc-js';
import type { ClientFrame, LeaderFrame, RelayFrame, ServerFrame } from '../../api/wire.ts';
import { type Codec, frameCodecs } from './frame-codec.ts';
import type { Protocol } from './proto.ts';

/** A bidirectional method whose messages are bytes to the library, and frames to us. */
export interface FrameMethod<Request, Response> {
  /** For `Server.addService`. */
  readonly definition: MethodDefinition<Buffer, Buffer>;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
}

/** Between clients and front ends. */
export type ConnectMethod = FrameMethod<ClientFrame, ServerFrame>;
/** Between front ends and the leader. */
export type RelayMethod = FrameMethod<RelayFrame, LeaderFrame>;

export type ServerStream = ServerDuplexStream<Buffer, Buffer>;

export const asIs = (bytes: Buffer): Buffer => bytes;

export function connectMethod(protocol: Protocol): ConnectMethod {
  const { client, server } = frameCodecs(protocol);
  const definition = ofBytes(protocol, 'leasehold.v1.LockService', 'Connect');
  return { definition, request: client, response: server };
}

export function relayMethod(protocol: Protocol): RelayMethod {
  const { relay, leader } = frameCodecs(protocol);
  const definition = ofBytes(protocol, 'leasehold.v1.RelayService', 'Relay');
  return { definition, request: relay, response: leader };
}

function ofBytes(protocol: Protocol, service: string, name: string): MethodDefinition<Buffer, Buffer> {
  const method = protocol.service(service)[name];
  if (method === undefined) throw new RangeError(`proto/ defines no method ${name}`);
  return {
    path: method.path,
    requestStream: method.requestStream,
    responseStream: method.responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

/** The library's own account of every message: nobody asks for it, and it costs a server of small frames a seventh of its time. */
export const WITHOUT_ACCOUNTS = { 'grpc.enable_channelz': 0 };

/**
 * For servers that others than replicas reach: so often a connection is asked whether anybody is there, and so long it has to answer. A machine
 * that is gone without a word leaves connections over which nothing may ever be sent again; without this they would stay as long as the process.
 */
export const ASKED_WHETHER_THERE = { 'grpc.keepalive_time_ms': 120_000, 'grpc.keepalive_timeout_ms': 60_000 };

/** For channels that are made for one stream and closed with it: a dead server is known as such at once, and not for longer. */
export const CHANNEL_OPTIONS: ClientOptions = {
  ...WITHOUT_ACCOUNTS,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
};

interface Writable {
  write(bytes: Buffer, written: () => void): unknown;
}

/** Writes until more waits than may; then says so once, and nothing is written any more. */
export class BoundedWriter {
  readonly #stream: Writable;
  readonly #bytesMax: number;
  readonly #onOverflow: () => void;
  #waitingBytes = 0;
  #isClosed = false;

  constructor(stream: Writable, bytesMax: number, onOverflow: () => void) {
    this.#stream = stream;
    this.#bytesMax = bytesMax;
    this.#onOverflow = onOverflow;
  }

  write(bytes: Buffer): void {
    if (this.#isClosed) return;
    const { length } = bytes;
    // One frame alone may be larger than the limit: the list of a session with very many locks.
    if (this.#waitingBytes > 0 && this.#waitingBytes + length > this.#bytesMax) {
      this.#isClosed = true;
      this.#onOverflow();
      return;
    }
    this.#waitingBytes += length;
    this.#stream.write(bytes, () => {
      this.#waitingBytes -= length;
    });
  }

  close(): void {
    this.#isClosed = true;
  }
}
