/**
 * The part of a replica that clients connect to: checks requests, adds the identity the client proved, counts against its
 * limits, and relays whole frames to the leader. It keeps no lock state; a client may use any front end.
 *
 * When the leader changes, clients keep their streams: the front end re-attaches their sessions with the new one and sends again what
 * has no answer yet (rule S4). While nobody leads requests wait, and clients are told so, lest they try their luck elsewhere (rule S8).
 */
import { ok as assert } from 'node:assert';
import type { NamespaceConfig } from '../../api/config.ts';
import type { ClientCommand, Identity } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import { bucketOf } from '../../api/names.ts';
import type {
  Answer,
  AnswerBody,
  ClientFrame,
  ClientHandler,
  ClientRequest,
  ClientStream,
  LeaderFrame,
  Mark,
  Position,
  ReadQuery,
  Reattachment,
  RelayFrame,
  RelayGroup,
  RelayRequest,
  ServerFrame,
} from '../../api/wire.ts';
import { sha256 } from '../../core/index.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { ClientLimiters, type SharedLimiter } from './client-limiters.ts';
import { ClientMemory } from './client-memory.ts';
import { RateLimiter } from './rate-limiter.ts';
import { requestProblem } from './validate.ts';

/** The leader as a front end sees it; in one process the leader itself, in a group a stream to it. */
export interface LeaderPort {
  readonly position: Position;
  send(frame: RelayFrame): void;
}

export interface FrontEndOptions {
  /**
   * In a group: how long a request waits while nobody leads before it is refused UNAVAILABLE. Left out: the leader is in this process and
   * has no successor, so nothing waits and nothing is re-attached.
   */
  readonly patienceMs?: number;
  /**
   * False: somebody does lead, only not within reach of this replica. Then clients are told nothing, so that they try another one
   * (rule S8). Left out: without a leader here there is none.
   */
  readonly isLeaderless?: () => boolean;
  /** True: somebody leads for certain, only not within reach of this replica. Left out: never. */
  readonly isLedElsewhere?: () => boolean;
  /** The names that this group serves, when several groups share them. Left out: all. */
  readonly shard?: () => Shard;
  /** Of the log; left out: known from the first leader. */
  readonly lineage?: string;
}

/** A group's part of its namespace's names: buckets, by the shard map of this version. */
export interface Shard {
  readonly mapVersion: number;
  readonly serves: (bucket: number) => boolean;
}

/** Led elsewhere for so long, clients are sent away: waiting out rule S8 at two such front ends would cost them their sessions. */
const LED_ELSEWHERE_MS = 1_000;
/** How often clients hear that nobody leads; they rely on it for a second (rule S8). */
const NO_LEADER_MS = 500;
/** Sessions, and requests, in one frame of a re-attachment. */
const PER_FRAME_MAX = 1_000;
/** Clocks may differ by so much before a token counts as expired. */
export const TOKEN_LEEWAY_MS = 60_000;

interface Client {
  readonly number: number;
  readonly identity: Identity;
  readonly handler: ClientHandler;
  readonly limiter: SharedLimiter;
  readonly memory: ClientMemory;
  /** Wall time after which what it proved counts no more for anything new; infinite when nothing had to be proved. */
  readonly provenUntilMs: number;
  /** The leader that knows its identity. */
  introducedTo: LeaderPort | null;
  /** What it showed at first, or was given since: shown to each leader that comes (rule S10). */
  mark: Mark | null;
  /** Of the mark that it showed: its sessions from before this stream are of that lineage. Empty: it showed none. */
  lineage: string;
  hasSent: boolean;
}

export class FrontEnd {
  readonly #runtime: Runtime;
  readonly #config: () => NamespaceConfig | null;
  readonly #clients = new Map<number, Client>();
  readonly #namespaceLimiter: RateLimiter;
  readonly #clientLimiters: ClientLimiters;
  readonly #shard: (() => Shard) | null;
  #lastClient = 0;
  #leader: LeaderPort | null = null;
  readonly #patienceMs: number | null;
  readonly #isLeaderless: () => boolean;
  readonly #isLedElsewhere: () => boolean;
  #leaderlessSinceMs: number;
  #ledElsewhereSinceMs = Number.POSITIVE_INFINITY;
  #leaderless: Timer | null = null;
  /** Of the newest frame that was passed on. */
  #position: Position;
  /** The log was rolled back: what to tell clients (rule S10). */
  #halted: string | null = null;

  constructor(
    runtime: Runtime,
    config: () => NamespaceConfig | null,
    {
      patienceMs,
      isLeaderless = () => true,
      isLedElsewhere = () => false,
      shard,
      lineage = '',
    }: FrontEndOptions = {},
  ) {
    this.#position = { lineage, epoch: 0, index: 0 };
    this.#runtime = runtime;
    this.#config = config;
    this.#patienceMs = patienceMs ?? null;
    this.#isLeaderless = isLeaderless;
    this.#isLedElsewhere = isLedElsewhere;
    this.#leaderlessSinceMs = runtime.clock.monotonicMs();
    this.#namespaceLimiter = new RateLimiter(runtime.clock.monotonicMs());
    this.#clientLimiters = new ClientLimiters(runtime.clock);
    this.#shard = shard ?? null;
    if (patienceMs !== undefined) this.#planTelling();
  }

  get clients(): number {
    return this.#clients.size;
  }

  /**
   * From now on requests go to this leader, after the sessions and requests that its predecessor leaves (rule S4); null: nobody leads.
   */
  setLeader(leader: LeaderPort | null): void {
    const isLoss = leader === null && this.#leader !== null;
    this.#leader = leader;
    if (this.#position.epoch === 0 && leader !== null) this.#position = leader.position;
    if (this.#patienceMs === null) return;
    if (leader !== null) {
      this.#ledElsewhereSinceMs = Number.POSITIVE_INFINITY;
      this.#leaderless?.cancel();
      this.#leaderless = null;
      this.#handOn(leader);
    } else if (isLoss || this.#leaderless === null) {
      this.#leaderlessSinceMs = this.#runtime.clock.monotonicMs();
      this.#tellLeaderless();
    }
  }

  /**
   * A client's stream begins. `provenUntilMs`: the identity was proved by a token that ends then (wall time): after it the stream may keep
   * and give back, and take nothing new. Its limits count for the identity, over all its streams here. Left out: nobody has to prove
   * anything, and the limits count for the stream.
   */
  connect(identity: Identity, handler: ClientHandler, provenUntilMs?: number): ClientStream {
    const number = ++this.#lastClient;
    this.#clients.set(number, {
      number,
      identity,
      handler,
      limiter: this.#clientLimiters.of(provenUntilMs === undefined ? null : identity),
      memory: new ClientMemory(),
      provenUntilMs: provenUntilMs ?? Number.POSITIVE_INFINITY,
      introducedTo: null,
      mark: null,
      lineage: '',
      hasSent: false,
    });
    return {
      send: (frame) => this.#receive(number, frame),
      close: () => this.#closed(number),
    };
  }

  /** A frame of the leader: each group goes to its client, unchanged. */
  fromLeader(frame: LeaderFrame): void {
    const { lineage, epoch } = this.#position;
    // Rule S2: what a deposed leader still says is not heard.
    if (frame.position.lineage === lineage && frame.position.epoch < epoch) return;
    this.#position = frame.position;
    for (const { client: number, answers, notices, keepalives, mark } of frame.groups) {
      const client = this.#clients.get(number);
      if (client === undefined) continue;
      for (const answer of answers) client.memory.answered(answer);
      for (const notice of notices) client.memory.noticed(notice);
      for (const keepalive of keepalives) client.memory.kept(keepalive);
      if (mark !== undefined) client.mark = mark;
      const first = keepalives[0];
      const given = mark === undefined ? {} : { mark };
      this.#send(client, {
        answers,
        notices,
        ...(first === undefined ? {} : { keepalive: first }),
        ...given,
      });
      for (const keepalive of keepalives.slice(1))
        this.#send(client, { answers: [], notices: [], keepalive });
    }
  }

  /** The log was rolled back: every request is refused with this text, and clients are told at once (rule S10). */
  halt(message: string): void {
    this.#halted = message;
    this.setLeader(null);
    for (const client of [...this.#clients.values()]) {
      const ids = client.memory.takeOlder(Number.POSITIVE_INFINITY);
      this.#send(client, { answers: ids.map((id) => ({ id, body: unavailable(message) })), notices: [] });
    }
  }

  /** Closes every client stream, for instance because this replica stops. */
  close(): void {
    this.#leaderless?.cancel();
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const { handler, limiter } of clients) {
      limiter.leave();
      handler.onClose();
    }
  }

  /** What the leader before leaves to this one: first the sessions, then the requests, in order. */
  #handOn(leader: LeaderPort): void {
    const clients = [...this.#clients.values()];
    const sessions = clients.flatMap(({ number: client, memory }) =>
      [...memory.sessions].map(([session, attach]): Reattachment => ({ client, session, attach })),
    );
    const seen = this.#position;
    for (const part of inParts(sessions)) {
      leader.send({ format: FORMAT_VERSION, groups: [], closed: [], reattach: { sessions: part, seen } });
    }
    leader.send({ format: FORMAT_VERSION, groups: [], closed: [], allAttached: true });
    for (const client of clients) {
      const ids = client.memory.takeCancelled();
      if (ids.length === 0) continue;
      const answers = ids.map((id) => ({ id, body: unavailable('cancelled while nobody led') }));
      this.#send(client, { answers, notices: [] });
    }
    for (const client of clients) {
      const { mark, memory } = client;
      if (mark !== null) {
        const groups = [groupOf(client, leader, { requests: [], mark })];
        leader.send({ format: FORMAT_VERSION, groups, closed: [] });
      }
      for (const requests of inParts(memory.unanswered)) {
        leader.send({ format: FORMAT_VERSION, groups: [groupOf(client, leader, { requests })], closed: [] });
      }
    }
    for (const client of clients) this.#tellNewLeader(client);
  }

  /** In two frames, so that whoever has not heard that nobody led hears of the change too, and sends its keepalives again. */
  #tellNewLeader(client: Client): void {
    const nothing = { answers: [], notices: [] };
    this.#send(client, nothing, false);
    this.#send(client, nothing);
  }

  /** Says that nobody leads, refuses what has waited for too long, and comes again. */
  #tellLeaderless(): void {
    const { clock } = this.#runtime;
    const patienceMs = this.#patienceMs ?? 0;
    const now = clock.monotonicMs();
    const isLeaderless = this.#halted !== null || this.#isLeaderless();
    const isLong = now - this.#leaderlessSinceMs >= patienceMs;
    for (const client of [...this.#clients.values()]) {
      const ids = isLong ? client.memory.takeOlder(now - patienceMs) : [];
      const answers = ids.map((id) => ({ id, body: unavailable(NOBODY_LEADS) }));
      if (answers.length > 0 || isLeaderless) this.#send(client, { answers, notices: [] });
    }
    this.#sendAway(now);
    this.#planTelling();
  }

  #planTelling(): void {
    this.#leaderless?.cancel();
    this.#leaderless = this.#runtime.timers.after(NO_LEADER_MS, () => this.#tellLeaderless());
  }

  /** Rule S8: who can be served elsewhere need not wait here until it is unheard. */
  #sendAway(now: number): void {
    const isElsewhere = this.#halted === null && this.#isLedElsewhere();
    this.#ledElsewhereSinceMs = isElsewhere
      ? Math.min(this.#ledElsewhereSinceMs, now)
      : Number.POSITIVE_INFINITY;
    if (now - this.#ledElsewhereSinceMs < LED_ELSEWHERE_MS || this.#clients.size === 0) return;
    assert(this.#leader === null, 'clients are sent away only by a front end without a leader');
    this.#runtime.logger.warn(
      { clients: this.#clients.size },
      'the leader is out of reach; clients are sent away',
    );
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const { handler } of clients) handler.onClose();
  }

  #closed(number: number): void {
    const client = this.#clients.get(number);
    if (client === undefined) return;
    this.#clients.delete(number);
    client.limiter.leave();
    this.#leader?.send({ format: FORMAT_VERSION, groups: [], closed: [number] });
  }

  #receive(number: number, frame: ClientFrame): void {
    const client = this.#clients.get(number);
    if (client === undefined) return;
    const now = this.#runtime.clock.monotonicMs();
    const mark = this.#shownBy(client, frame);
    const refused: Answer[] = [];
    const requests: RelayRequest[] = [];
    for (const request of frame.requests) {
      const refusal = this.#refusal(client, request);
      if (refusal !== null) {
        refused.push({ id: request.id, body: refusal });
        continue;
      }
      const completed = complete(request, client.identity);
      if (client.memory.remember(completed, now)) requests.push(completed);
      else refused.push({ id: request.id, body: unavailable('too many requests of this client wait') });
    }
    if (refused.length > 0) this.#send(client, { answers: refused, notices: [] });
    const { keepalive } = frame;
    if (this.#leader === null) return;
    if (requests.length === 0 && keepalive === undefined && mark === undefined) return;
    const parts = {
      requests,
      ...(keepalive === undefined ? {} : { keepalive }),
      ...(mark === undefined ? {} : { mark }),
    };
    const groups = [groupOf(client, this.#leader, parts)];
    this.#leader.send({ format: FORMAT_VERSION, groups, closed: [] });
  }

  /** The mark of a stream's first frame; in later ones it is not looked at, so that a client cannot keep the leader busy with them. */
  #shownBy(client: Client, { mark }: ClientFrame): Mark | undefined {
    const isFirst = !client.hasSent;
    client.hasSent = true;
    if (!isFirst || mark === undefined) return undefined;
    client.mark = mark;
    client.lineage = mark.lineage;
    return mark;
  }

  /**
   * Session ids begin anew with each lineage, so a session of another one must not be taken for one of this (rule S10). What was opened or
   * attached over this very stream is of this one, and an attach proves itself by its secret.
   */
  #isOfOtherLineage({ lineage, memory }: Client, body: ClientRequest['body']): boolean {
    const own = this.#position.lineage;
    if (lineage === '' || own === '' || lineage === own) return false;
    if (!('session' in body) || body.session === 0 || body.type === 'attachWithSecret') return false;
    return !memory.sessions.has(body.session);
  }

  /** Refusals that need no state: they consume nothing, not even the request's key. */
  #refusal(client: Client, { id, body }: ClientRequest): AnswerBody | null {
    if (this.#halted !== null) return unavailable(this.#halted);
    if (client.memory.isWaiting(id)) {
      const message = `another request ${id} of this stream has no answer yet`;
      return { type: 'rejected', code: 'INVALID', field: 'id', message };
    }
    const problem = requestProblem(body);
    if (problem !== null) return { type: 'rejected', code: 'INVALID', ...problem };
    if (this.#isOfOtherLineage(client, body)) {
      return { type: 'refused', code: 'SESSION_EXPIRED', message: 'this session is of an earlier lineage' };
    }
    const isLimited = body.type === 'acquire' || body.type === 'getLock' || body.type === 'listLocks';
    if ((isLimited || body.type === 'open') && this.#runtime.clock.wallMs() > client.provenUntilMs) {
      return expired(client.provenUntilMs);
    }
    const elsewhere = this.#elsewhere(body);
    if (elsewhere !== null) return elsewhere;
    if (this.#leader === null && this.#patienceMs === null) return unavailable(NOBODY_LEADS);
    // Rule S9: what gives something back, or keeps it, has no rate limit.
    return isLimited ? this.#rateRefusal(client) : null;
  }

  /** What is held already is kept and given back here, whatever the map says of its name by now. */
  #elsewhere(body: ClientRequest['body']): AnswerBody | null {
    if (this.#shard === null || (body.type !== 'acquire' && body.type !== 'getLock')) return null;
    const { serves, mapVersion } = this.#shard();
    return serves(bucketOf(body.name)) ? null : { type: 'wrongGroup', mapVersion };
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

  #send(
    { number, handler }: Client,
    frame: Omit<ServerFrame, 'position' | 'leading' | 'halted'>,
    leading = this.#leader !== null || (this.#halted === null && !this.#isLeaderless()),
  ): void {
    const halted = this.#halted === null ? {} : { halted: this.#halted };
    try {
      handler.onFrame({ position: this.#position, leading, ...halted, ...frame });
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

const NOBODY_LEADS = 'no lock server leads this namespace right now';

/** The first group on a leader's stream says who its client is. */
function groupOf(
  client: Client,
  leader: LeaderPort,
  parts: Pick<RelayGroup, 'requests' | 'keepalive' | 'mark'>,
): RelayGroup {
  const { number, identity, introducedTo } = client;
  if (introducedTo === leader) return { client: number, ...parts };
  client.introducedTo = leader;
  return { client: number, ...parts, identity };
}

function expired(untilMs: number): AnswerBody {
  const message = `the token of this stream ended at ${new Date(untilMs - TOKEN_LEEWAY_MS).toISOString()}: connect with a fresh one; what is held can be kept and given back meanwhile`;
  return { type: 'rejected', code: 'UNAUTHENTICATED', message };
}

function unavailable(message: string): AnswerBody {
  return { type: 'rejected', code: 'UNAVAILABLE', message };
}

function* inParts<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += PER_FRAME_MAX)
    yield items.slice(from, from + PER_FRAME_MAX);
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
