/**
 * A client that speaks to a front end with the protocol's frames, as a sidecar does: in one process or over gRPC.
 */
import type { Acquire } from '../src/api/entry.ts';
import { bucketOf } from '../src/api/names.ts';
import type {
  AnswerBody,
  ClientHandler,
  ClientRequest,
  ClientRequestBody,
  ClientStream,
  KeepaliveAnswer,
  OpenRequest,
  ServerFrame,
} from '../src/api/wire.ts';
import { sha256 } from '../src/core/index.ts';
import { createSystemRuntime } from '../src/platform/system-runtime.ts';
import { loadProtocol } from '../src/server/grpc/proto.ts';
import { connectMethod } from '../src/server/grpc/streams.ts';
import { grpcConnect } from '../src/sidecar/grpc-connect.ts';
import { SmallFrames } from './load/small-frames.ts';

export type Connect = (handler: ClientHandler) => ClientStream;

const TTL_MS = 60_000;
const OPEN: OpenRequest = {
  type: 'open',
  client: 'bench',
  ttlMs: TTL_MS,
  maxHoldMs: 0,
  secretHash: sha256('bench'),
};

const method = connectMethod(loadProtocol());
const runtime = createSystemRuntime({ logLevel: 'silent' });

/** Streams to the front end at `host:port`, each over a connection of its own. */
export function connectTo(endpoint: string): Connect {
  return grpcConnect({ method, runtime, endpoints: [endpoint] });
}

/** As `connectTo`, but with small frames alone, and all streams over one connection. */
export function connectSmall(endpoint: string): Connect {
  const connection = new SmallFrames(endpoint, method);
  return (handler) => connection.connect(handler);
}

export function openBody(): OpenRequest {
  return OPEN;
}

export class Client {
  session = 0;
  /** Set once its stream has ended: nothing is answered any more. */
  isClosed = false;
  readonly #stream: ClientStream;
  readonly #answers = new Map<number, (body: AnswerBody) => void>();
  readonly #grants = new Map<string, (token: number) => void>();
  readonly #kept = new Map<number, (answer: KeepaliveAnswer) => void>();
  /** Keys whose outcome has arrived, to be acknowledged with the next command (rule C5). */
  readonly #settled: string[] = [];
  #outgoing: ClientRequest[] = [];
  #lastId = 0;

  private constructor(connect: Connect) {
    this.#stream = connect({
      onFrame: (frame) => this.#receive(frame),
      onClose: () => {
        this.isClosed = true;
      },
    });
  }

  static async open(connect: Connect): Promise<Client> {
    const client = new Client(connect);
    const answer = await client.ask(openBody());
    if (answer.type !== 'opened') throw new Error(JSON.stringify(answer));
    client.session = answer.session;
    return client;
  }

  /** Resolves with the token, after waiting if need be. */
  async acquire(name: string, waitMs = 0): Promise<number> {
    const body = acquireBody(this.session, `k${++this.#lastId}`, name, waitMs, this.#settled.splice(0));
    const granted = new Promise<number>((resolve) => this.#grants.set(body.key, resolve));
    const answer = await this.ask(body);
    this.#settled.push(body.key);
    if (answer.type === 'queued') return granted;
    this.#grants.delete(body.key);
    if (answer.type !== 'granted') throw new Error(JSON.stringify(answer));
    return answer.token;
  }

  async release(name: string, token: number): Promise<void> {
    const acks = this.#settled.splice(0);
    const { session } = this;
    const answer = await this.ask({ type: 'release', session, attach: 1, name, token, key: '', acks });
    if (answer.type !== 'done') throw new Error(JSON.stringify(answer));
  }

  /** One frame that keeps these sessions of this stream alive; resolves with its answer. */
  keepalive(sessions: readonly number[] = [this.session]): Promise<KeepaliveAnswer> {
    const number = ++this.#lastId;
    const keepalive = { number, sessions: sessions.map((session) => ({ session, attach: 1 })) };
    return new Promise((resolve) => {
      this.#kept.set(number, resolve);
      this.#stream.send({ format: 1, requests: [], keepalive });
    });
  }

  ask(body: ClientRequestBody): Promise<AnswerBody> {
    const id = ++this.#lastId;
    this.#outgoing.push({ id, body });
    if (this.#outgoing.length === 1) setImmediate(() => this.#flush());
    return new Promise((resolve) => this.#answers.set(id, resolve));
  }

  /** Leaves its session to run out. */
  hangUp(): void {
    this.#stream.close();
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    await this.ask(closeBody(this.session));
    this.#stream.close();
  }

  /** What was asked within one turn of the event loop goes in one frame, as a sidecar has it. */
  #flush(): void {
    const requests = this.#outgoing;
    this.#outgoing = [];
    this.#stream.send({ format: 1, requests });
  }

  #receive({ answers, notices, keepalive }: ServerFrame): void {
    for (const { id, body } of answers) {
      this.#answers.get(id)?.(body);
      this.#answers.delete(id);
    }
    for (const { event } of notices) {
      if (event.type !== 'granted') continue;
      this.#grants.get(event.key)?.(event.token);
      this.#grants.delete(event.key);
    }
    if (keepalive === undefined) return;
    this.#kept.get(keepalive.number)?.(keepalive);
    this.#kept.delete(keepalive.number);
  }
}

export function closeBody(session: number): ClientRequestBody {
  return { type: 'closeSession', session, attach: 1, clean: true };
}

export function acquireBody(
  session: number,
  key: string,
  name: string,
  waitMs: number,
  acks: readonly string[],
): Acquire {
  return {
    type: 'acquire',
    session,
    attach: 1,
    key,
    name,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    owner: 'bench',
    purpose: '',
    waitMs,
    bucket: bucketOf(name),
    mapVersion: 1,
    acks,
  };
}
