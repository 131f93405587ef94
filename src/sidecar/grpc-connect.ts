/**
 * The sidecar's way to the replicas of a lock group over gRPC: each new stream goes to the next one of them, so that a replica that does not
 * answer is left (rule S8).
 */
import type { Buffer } from 'node:buffer';
import { Client, Metadata, type StatusObject, status } from '@grpc/grpc-js';
import type { ClientFrame, ClientHandler, ClientStream, StreamRefusal } from '../api/wire.ts';
import type { Runtime } from '../platform/runtime.ts';
import { asIs, BoundedWriter, CHANNEL_OPTIONS, type ConnectMethod } from '../server/grpc/streams.ts';
import { type Dial, dialPlaintext } from '../server/security/tls.ts';
import type { Connect } from './group-client.ts';

/** What the server may leave unread, before the stream counts as broken. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** The same refusal is logged again only after so long, however often the sidecar tries. */
const TELL_REFUSAL_EVERY_MS = 60_000;

export interface GrpcConnectOptions {
  readonly method: ConnectMethod;
  readonly runtime: Runtime;
  /** `host:port` of each replica. */
  readonly endpoints: readonly string[];
  /** How an endpoint is dialled; asked for each stream, since certificates may have been replaced. Left out: in plain text. */
  readonly dial?: (endpoint: string) => Dial;
  /** Which of them comes first; left out: any. */
  readonly first?: number;
  /** What proves who calls, asked for each stream: a token may have been renewed. */
  readonly metadata?: () => Metadata;
}

export function grpcConnect(options: GrpcConnectOptions): Connect {
  const { endpoints, runtime } = options;
  if (endpoints.length === 0) throw new RangeError('a lock group has at least one endpoint');
  const refusals = new RefusalLog(runtime);
  let next = options.first ?? Math.floor(runtime.random.fraction() * endpoints.length);
  return (handler) => {
    const endpoint = endpoints[next % endpoints.length] as string;
    next++;
    return openStream(endpoint, handler, { ...options, refusals });
  };
}

class RefusalLog {
  readonly #runtime: Runtime;
  readonly #toldMs = new Map<string, number>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  refused(endpoint: string, details: string): void {
    const { clock, logger } = this.#runtime;
    const now = clock.monotonicMs();
    if (now - (this.#toldMs.get(endpoint) ?? Number.NEGATIVE_INFINITY) < TELL_REFUSAL_EVERY_MS) return;
    this.#toldMs.set(endpoint, now);
    logger.error({ endpoint, details }, 'the lock server refuses the identity of this sidecar');
  }
}

function refusalIn({ code, details: message }: StatusObject): StreamRefusal | undefined {
  if (code === status.UNAUTHENTICATED) return { code: 'UNAUTHENTICATED', message };
  return code === status.PERMISSION_DENIED ? { code: 'FORBIDDEN', message } : undefined;
}

function openStream(
  endpoint: string,
  handler: ClientHandler,
  {
    method,
    runtime,
    dial = dialPlaintext,
    metadata,
    refusals,
  }: GrpcConnectOptions & { refusals: RefusalLog },
): ClientStream {
  const { credentials, options } = dial(endpoint);
  const client = new Client(endpoint, credentials, { ...CHANNEL_OPTIONS, ...options });
  const call = client.makeBidiStreamRequest(
    method.definition.path,
    asIs,
    asIs,
    metadata?.() ?? new Metadata(),
  );
  let isOpen = true;
  const end = (refusal?: StreamRefusal): void => {
    if (!isOpen) return;
    isOpen = false;
    writer.close();
    call.cancel();
    client.close();
    handler.onClose(refusal);
  };
  const writer = new BoundedWriter(call, UNREAD_BYTES_MAX, () => end());
  call.on('metadata', () => {
    if (isOpen) handler.onOpen?.();
  });
  call.on('data', (bytes: Buffer) => {
    if (!isOpen) return;
    try {
      handler.onFrame(method.response.decode(bytes));
    } catch (error) {
      runtime.logger.error({ endpoint, error }, 'a frame of the lock server cannot be taken');
      end();
    }
  });
  // Every end is reported as a status; an error that nobody listens to would end the process.
  call.on('error', () => undefined);
  call.on('status', (ended) => {
    const { code, details } = ended;
    const refusal = refusalIn(ended);
    if (refusal !== undefined) refusals.refused(endpoint, details);
    else if (isOpen) runtime.logger.info({ endpoint, code, details }, 'stream to the lock server closed');
    end(refusal);
  });
  return {
    send: (frame: ClientFrame) => writer.write(method.request.encode(frame)),
    close: () => end(),
  };
}
