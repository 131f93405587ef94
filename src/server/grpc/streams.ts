/**
 * Streams of frames over gRPC, with what all of them need: messages are encoded here rather than by the library, so that bytes can be
 * counted, and what a slow reader has not taken yet is bounded (rule S9).
 */
import type { Buffer } from 'node:buffer';
import type { ClientOptions, MethodDefinition, ServerDuplexStream, ServiceDefinition } from '@grpc/grpc-js';
import type { Message } from './proto.ts';

/** A bidirectional method whose messages are bytes on both sides. */
export interface BytesMethod {
  /** For `Server.addService`. */
  readonly definition: MethodDefinition<Buffer, Buffer>;
  readonly encodeRequest: (message: Message) => Buffer;
  readonly decodeRequest: (bytes: Buffer) => Message;
  readonly encodeResponse: (message: Message) => Buffer;
  readonly decodeResponse: (bytes: Buffer) => Message;
}

export type ServerStream = ServerDuplexStream<Buffer, Buffer>;

export const asIs = (bytes: Buffer): Buffer => bytes;

export function bytesMethod(service: ServiceDefinition, name: string): BytesMethod {
  const method = service[name];
  if (method === undefined) throw new RangeError(`proto/ defines no method ${name}`);
  return {
    definition: {
      path: method.path,
      requestStream: method.requestStream,
      responseStream: method.responseStream,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
    encodeRequest: method.requestSerialize,
    decodeRequest: (bytes) => method.requestDeserialize(bytes) as Message,
    encodeResponse: method.responseSerialize,
    decodeResponse: (bytes) => method.responseDeserialize(bytes) as Message,
  };
}

/** For channels that are made for one stream and closed with it: a dead server is known as such at once, and not for longer. */
export const CHANNEL_OPTIONS: ClientOptions = {
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
