/**
 * `Connect`: a client's stream, served by the front end of every replica. Here its bytes become frames, and what the stream proves becomes
 * an identity; everything else is the front end's.
 */
import type { Buffer } from 'node:buffer';
import { status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Identity } from '../../api/entry.ts';
import type { ClientStream } from '../../api/wire.ts';
import type { FrontEnd } from '../front-end.ts';
import { CallError, toServiceError } from './status.ts';
import { BoundedWriter, type ConnectMethod, type ServerStream } from './streams.ts';

/** What a client may leave unread; then its stream is cut, and it attaches anew (rule S9). */
const UNREAD_BYTES_MAX = 1024 * 1024;

/** Who a stream comes from. Throws when it does not prove it. */
export type Identify = (stream: ServerStream) => Identity;

export interface LockServiceOptions {
  readonly method: ConnectMethod;
  readonly frontEnd: FrontEnd;
  readonly identify: Identify;
}

export function lockService(options: LockServiceOptions): UntypedServiceImplementation {
  return { Connect: (call: ServerStream) => serve(call, options) };
}

function serve(call: ServerStream, { method, frontEnd, identify }: LockServiceOptions): void {
  let stream: ClientStream | null = null;
  const end = (error?: unknown): void => {
    writer.close();
    stream?.close();
    stream = null;
    if (error === undefined) call.end();
    else call.emit('error', toServiceError(error));
  };
  const writer = new BoundedWriter(call, UNREAD_BYTES_MAX, () =>
    end(new CallError(status.RESOURCE_EXHAUSTED, 'this client does not read what it is sent')),
  );
  call.on('cancelled', () => end());
  call.on('end', () => end());
  try {
    stream = frontEnd.connect(identify(call), {
      onFrame: (frame) => writer.write(method.response.encode(frame)),
      onClose: () => end(),
    });
  } catch (error) {
    end(error);
    return;
  }
  call.on('data', (bytes: Buffer) => {
    try {
      stream?.send(method.request.decode(bytes));
    } catch (error) {
      end(error);
    }
  });
}
