/**
 * The part of a replica that clients connect to: checks requests, adds the identity the client proved, counts against its
 * limits, and relays whole frames to the leader. It keeps no lock state; a client may use any front end.
 *
 * When the leader changes, clients keep their streams: the front end re-attaches their sessions with the new one and sends again what
 * has no answer yet (rule S4). While nobody leads requests wait, and clients are told so, lest they try their luck elsewhere (rule S8).
 */
import { ok as assert } from 'node:assert';
import type { NamespaceConfig } from '../../api/config.ts';
import type { Identity } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import {
  type Answer,
  type ClientFrame,
  type ClientHandler,
  type ClientStream,
  type LeaderFrame,
  type Mark,
  type Position,
  type RelayRequest,
  type ServerFrame,
  unavailable,
} from '../../api/wire.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import { Admission, NOBODY_LEADS, type Shard } from './admission.ts';
import { type Client, complete, groupOf, type LeaderPort } from './client.ts';
import { ClientLimiters } from './client-limiters.ts';
import { ClientMemory } from './client-memory.ts';
import { reattach, sendAgain } from './hand-on.ts';

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

/** Led elsewhere for so long, clients are sent away: waiting out rule S8 at two such front ends would cost them their sessions. */
const LED_ELSEWHERE_MS = 1_000;
/** Of a mark's texts: three times those of any that a leader has made. It is kept as long as its stream. */
const MARK_CHARACTERS_MAX = 512;
/** How often clients hear that nobody leads; they rely on it for a second (rule S8). */
const NO_LEADER_MS = 500;

export class FrontEnd {
  readonly #runtime: Runtime;
  readonly #admission: Admission;
  readonly #clients = new Map<number, Client>();
  readonly #clientLimiters: ClientLimiters;
  #lastClient = 0;
  #leader: LeaderPort | null = null;
  readonly #patienceMs: number | null;
  readonly #isLeaderless: () => boolean;
  readonly #isLedElsewhere: () => boolean;
  #leaderlessSinceMs: number;
  #ledElsewhereSinceMs = Number.POSITIVE_INFINITY;
  #leaderless: Timer | null = null;
  #isClosed = false;
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
    this.#admission = new Admission(runtime, config, shard ?? null);
    this.#patienceMs = patienceMs ?? null;
    this.#isLeaderless = isLeaderless;
    this.#isLedElsewhere = isLedElsewhere;
    this.#leaderlessSinceMs = runtime.clock.monotonicMs();
    this.#clientLimiters = new ClientLimiters(runtime.clock);
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
    this.#isClosed = true;
    this.#leaderless?.cancel();
    this.#closeAll();
  }

  #closeAll(): void {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const { handler, limiter } of clients) {
      limiter.leave();
      handler.onClose();
    }
  }

  #handOn(leader: LeaderPort): void {
    const clients = [...this.#clients.values()];
    reattach(leader, clients, this.#position);
    for (const client of clients) {
      const ids = client.memory.takeSettled();
      if (ids.length === 0) continue;
      const answers = ids.map((id) => ({
        id,
        body: unavailable('cancelled, or acknowledged, while nobody led'),
      }));
      this.#send(client, { answers, notices: [] });
    }
    for (const client of clients) sendAgain(leader, client);
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
    // A leader that ends while its replica is stopped is told of after that.
    if (this.#isClosed) return;
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
    this.#closeAll();
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
    const serving = {
      lineage: this.#position.lineage,
      isServed: this.#leader !== null || this.#patienceMs !== null,
    };
    for (const request of frame.requests) {
      const refusal =
        this.#halted === null ? this.#admission.refusal(client, request, serving) : unavailable(this.#halted);
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
    const { lineage, hash, seal } = mark;
    if (lineage.length + hash.length + seal.length > MARK_CHARACTERS_MAX) return undefined;
    client.mark = mark;
    client.lineage = lineage;
    return mark;
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
