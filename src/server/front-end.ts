/**
 * The part of a replica that clients connect to: checks requests, adds the identity the client proved, counts against its
 * limits, and relays whole frames to the leader. It keeps no lock state; a client may use any front end.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type { ClientCommand, Identity } from '../api/entry.ts';
import { FORMAT_VERSION } from '../api/limits.ts';
import type {
  Answer,
  AnswerBody,
  ClientFrame,
  ClientHandler,
  ClientRequest,
  ClientStream,
  LeaderFrame,
  Position,
  ReadQuery,
  RelayFrame,
  RelayRequest,
  ServerFrame,
} from '../api/wire.ts';
import { sha256 } from '../core/index.ts';
import type { Runtime } from '../platform/runtime.ts';
import { RateLimiter } from './rate-limiter.ts';
import { requestProblem } from './validate.ts';

/** The leader as a front end sees it; in one process the leader itself, in a group a stream to it. */
export interface LeaderPort {
  readonly position: Position;
  send(frame: RelayFrame): void;
}

interface Client {
  readonly number: number;
  readonly identity: Identity;
  readonly handler: ClientHandler;
  readonly limiter: RateLimiter;
}

export class FrontEnd {
  readonly #runtime: Runtime;
  readonly #config: () => NamespaceConfig | null;
  readonly #clients = new Map<number, Client>();
  readonly #namespaceLimiter: RateLimiter;
  #lastClient = 0;
  #leader: LeaderPort | null = null;
  #position: Position = { lineage: '', epoch: 0, index: 0 };

  constructor(runtime: Runtime, config: () => NamespaceConfig | null) {
    this.#runtime = runtime;
    this.#config = config;
    this.#namespaceLimiter = new RateLimiter(runtime.clock.monotonicMs());
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** From now on requests go to this leader; null: nobody leads, and everything is answered UNAVAILABLE. */
  setLeader(leader: LeaderPort | null): void {
    this.#leader = leader;
    if (leader !== null) this.#position = leader.position;
  }

  connect(identity: Identity, handler: ClientHandler): ClientStream {
    const now = this.#runtime.clock.monotonicMs();
    const number = ++this.#lastClient;
    this.#clients.set(number, { number, identity, handler, limiter: new RateLimiter(now) });
    return {
      send: (frame) => this.#receive(number, frame),
      close: () => this.#closed(number),
    };
  }

  /** A frame of the leader: each group goes to its client, unchanged. */
  fromLeader(frame: LeaderFrame): void {
    this.#position = frame.position;
    for (const { client: number, answers, notices, keepalives } of frame.groups) {
      const client = this.#clients.get(number);
      if (client === undefined) continue;
      const first = keepalives[0];
      this.#send(client, { answers, notices, ...(first === undefined ? {} : { keepalive: first }) });
      for (const keepalive of keepalives.slice(1))
        this.#send(client, { answers: [], notices: [], keepalive });
    }
  }

  /** Closes every client stream, for instance because this replica stops. */
  close(): void {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const { handler } of clients) handler.onClose();
  }

  #closed(number: number): void {
    if (!this.#clients.delete(number)) return;
    this.#leader?.send({ format: FORMAT_VERSION, groups: [], closed: [number] });
  }

  #receive(number: number, frame: ClientFrame): void {
    const client = this.#clients.get(number);
    if (client === undefined) return;
    const refused: Answer[] = [];
    const requests: RelayRequest[] = [];
    for (const request of frame.requests) {
      const refusal = this.#refusal(client, request);
      if (refusal === null) requests.push(complete(request, client.identity));
      else refused.push({ id: request.id, body: refusal });
    }
    if (refused.length > 0) this.#send(client, { answers: refused, notices: [] });
    if (this.#leader === null || (requests.length === 0 && frame.keepalive === undefined)) return;
    const group = { client: number, requests };
    const { keepalive } = frame;
    const groups = [keepalive === undefined ? group : { ...group, keepalive }];
    this.#leader.send({ format: FORMAT_VERSION, groups, closed: [] });
  }

  /** Refusals that need no state: they consume nothing, not even the request's key. */
  #refusal(client: Client, { body }: ClientRequest): AnswerBody | null {
    const problem = requestProblem(body);
    if (problem !== null) return { type: 'rejected', code: 'INVALID', ...problem };
    if (this.#leader === null) {
      return {
        type: 'rejected',
        code: 'UNAVAILABLE',
        message: 'no lock server leads this namespace right now',
      };
    }
    // Rule S9: what gives something back, or keeps it, has no rate limit.
    const isLimited = body.type === 'acquire' || body.type === 'getLock' || body.type === 'listLocks';
    return isLimited ? this.#rateRefusal(client) : null;
  }

  #rateRefusal({ limiter }: Client): AnswerBody | null {
    const config = this.#config();
    if (config === null) return null;
    const now = this.#runtime.clock.monotonicMs();
    const ownMs = limiter.take(config.operationsPerSecondPerClient, now);
    if (ownMs > 0) return this.#rateLimited('this client', config.operationsPerSecondPerClient, ownMs);
    const sharedMs = this.#namespaceLimiter.take(config.operationsPerSecond, now);
    if (sharedMs === 0) return null;
    limiter.giveBack();
    return this.#rateLimited('this namespace', config.operationsPerSecond, sharedMs);
  }

  #rateLimited(who: string, limit: number, waitMs: number): AnswerBody {
    const retryAfterMs = Math.ceil(waitMs + this.#runtime.random.fraction() * 1000);
    const message = `${who} may start ${limit} operations per second`;
    return { type: 'rejected', code: 'RATE_LIMITED', message, limit, retryAfterMs };
  }

  #send({ number, handler }: Client, frame: Omit<ServerFrame, 'position' | 'leading'>): void {
    try {
      handler.onFrame({ position: this.#position, leading: this.#leader !== null, ...frame });
    } catch (error) {
      // What goes wrong at one client must not reach the leader that is publishing, nor the other clients: it attaches anew.
      this.#runtime.logger.error(
        { client: number, error: String(error) },
        'client failed on a frame; stream closed',
      );
      this.#closed(number);
      handler.onClose();
    }
  }
}

/** Turns a client's request into what the leader takes. */
function complete({ id, body }: ClientRequest, identity: Identity): RelayRequest {
  return { id, body: toCommand(body, identity) };
}

function toCommand(body: ClientRequest['body'], identity: Identity): ClientCommand | ReadQuery {
  if (body.type === 'open') {
    const { client, ttlMs, maxHoldMs, secretHash } = body;
    return { type: 'openSession', client, identity, ttlMs, maxHoldMs, secretHash };
  }
  if (body.type === 'attachWithSecret') {
    const { session, attach, secret } = body;
    return { type: 'attach', session, attach, secretHash: sha256(secret) };
  }
  return body;
}
