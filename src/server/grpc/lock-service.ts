/**
 * `Connect`: a client's stream, served by the front end of every replica. Here its bytes become frames, and what the stream proves becomes
 * an identity; everything else is the front end's.
 */
import type { Buffer } from 'node:buffer';
import { Metadata, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { ClientStream, ServerFrame } from '../../api/wire.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { FrontEnd } from '../front-end/front-end.ts';
import type { Proof } from '../security/tokens.ts';
import { FairTurns } from './fair-turns.ts';
import { CallError, toServiceError } from './status.ts';
import { BoundedWriter, type ConnectMethod, type ServerStream } from './streams.ts';

/** What a client may leave unread; then its stream is cut, and it attaches anew (rule S9). */
const UNREAD_BYTES_MAX = 1024 * 1024;

/** Who a stream comes from. Rejects when it does not prove it. */
export type Identify = (stream: ServerStream) => Promise<Caller>;

/** `untilMs` left out: nobody has to prove anything here. */
export type Caller = Pick<Proof, 'identity'> & Partial<Proof>;

export interface LockServiceOptions {
  readonly runtime: Pick<Runtime, 'clock' | 'timers'>;
  readonly method: ConnectMethod;
  readonly frontEnd: FrontEnd;
  readonly identify: Identify;
}

export function lockService(options: LockServiceOptions): UntypedServiceImplementation {
  const turns = new FairTurns(options.runtime);
  return { Connect: (call: ServerStream) => serve(call, turns, options) };
}

function serve(
  call: ServerStream,
  turns: FairTurns,
  { method, frontEnd, identify }: LockServiceOptions,
): void {
  let stream: ClientStream | null = null;
  let isOpen = true;
  const end = (error?: unknown): void => {
    if (!isOpen) return;
    isOpen = false;
    writer.close();
    stream?.close();
    stream = null;
    if (error === undefined) call.end();
    else call.emit('error', toServiceError(error));
  };
  const writer = new BoundedWriter(call, UNREAD_BYTES_MAX, () =>
    end(new CallError(status.RESOURCE_EXHAUSTED, 'this client does not read what it is sent')),
  );
  // Without a listener a call that is cancelled early would end the process.
  call.on('error', () => undefined);
  call.on('cancelled', () => end());
  // After what has arrived before it.
  call.on('end', () => void turns.run(() => end()));
  const take = (bytes: Buffer): void => {
    try {
      stream?.send(method.request.decode(bytes));
    } catch (error) {
      end(error);
    }
  };
  const connect = ({ identity, untilMs }: Caller): void => {
    if (!isOpen) return;
    const onFrame = (frame: ServerFrame) => writer.write(method.response.encode(frame));
    stream = frontEnd.connect(identity, { onFrame, onClose: () => end() }, untilMs);
    // Says that the stream is accepted, before there is anything to answer.
    call.sendMetadata(new Metadata());
    // Only now: until then what the client sends waits.
    call.on('data', (bytes: Buffer) => {
      let isDone = false;
      const isNow = turns.run(() => {
        take(bytes);
        isDone = true;
        if (call.isPaused()) call.resume();
      });
      if (!isNow && !isDone) call.pause();
    });
  };
  identify(call).then(connect, end);
}
