/**
 * The sidecar's line to one lock group: one stream, many sessions. Sends keepalives for all of them in one frame, reconnects,
 * attaches the sessions again and sends again what was not answered. Every request here can be repeated without harm.
 */
import type { LockEvent, SessionId } from '../api/entry.ts';
import { FORMAT_VERSION } from '../api/limits.ts';
import type {
  AnswerBody,
  ClientHandler,
  ClientRequestBody,
  ClientStream,
  KeepaliveAnswer,
  KeepaliveStatus,
  Mark,
  Position,
  ReadQuery,
  ServerFrame,
  SessionNotice,
  StreamRefusal,
} from '../api/wire.ts';
import type { Runtime, Timer } from '../platform/runtime.ts';
import { Keepalives } from './keepalives.ts';
import type { Moment } from './lease-clock.ts';
import { type OnAnswer, StreamRequests } from './stream-requests.ts';

/** What the client needs of a session on it; `GroupSession` is the one there is. */
export interface AttachableSession {
  readonly id: SessionId;
  readonly attach: number;
  readonly ttlMs: number;
  /** Milliseconds until it is time to try another way to the group; 0 or less: it is time (rule S8). */
  readonly unheardInMs: number;
  connected(): void;
  disconnected(): void;
  /** What it adds to the keepalive frame; null when it must not be renewed now. */
  keepalive(): { readonly session: SessionId; readonly attach: number } | null;
  kept(status: KeepaliveStatus, sent: Moment): void;
  notice(event: LockEvent): void;
}

/** A way to a front end of the group; each call opens a new stream. */
export type Connect = (handler: ClientHandler) => ClientStream;

/** So long a client believes its front end that nobody leads, and seeks no other (rule S8). */
const NO_LEADER_MS = 1_000;
/**
 * A front end that serves answers an attach with the next entry, or says soon that nobody leads. On a new stream without a word it is left
 * after this time, doubled by each that was as silent (rule S8): two of them would cost the sessions otherwise.
 */
const FIRST_WORD_MS = 1_500;
const RECONNECT_MS_MIN = 50;
const RECONNECT_MS_MAX = 1_000;
/** A stream that proves who this is anew and is not taken is tried again after so long. */
const RENEW_RETRY_MS = 5_000;
/** One that is neither taken nor refused by then is given up: its server may stand still for as long as the old token lasts. */
const RENEW_MS_MAX = 5_000;

export interface MarkKeeping {
  readonly mark?: Mark | null;
  readonly keepMark?: (mark: Mark) => void;
}

export class GroupClient {
  readonly runtime: Runtime;
  readonly #connect: Connect;
  readonly #sessions = new Set<AttachableSession>();
  readonly #byId = new Map<SessionId, AttachableSession>();
  #stream: ClientStream | null = null;
  /** Of the newest stream: what an older one still says is not heard. */
  #streamNumber = 0;
  #isClosed = false;
  #failures = 0;
  #reconnect: Timer | null = null;
  /** A stream that is to take the place of the one in use, or the wait for another try. */
  #renewal: { cancel(): void } | null = null;
  readonly #requests: StreamRequests;
  readonly #keepalives: Keepalives;
  /** The front end has said that nobody leads, and not yet that somebody does. */
  #isLeaderless = false;
  #leaderLosses = 0;
  /** So long it is believed that it does what it can. */
  #believedUntilMs = Number.NEGATIVE_INFINITY;
  /** The change to another front end, planned with jitter. */
  #change: Timer | null = null;
  /** Ends a stream on which no word comes. */
  #firstWord: Timer | null = null;
  #seen: Position = { lineage: '', epoch: 0, index: 0 };
  /** The newest that was given here or to an earlier life of this process (rule S10). */
  #mark: Mark | null;
  readonly #keepMark: (mark: Mark) => void;
  #halted: string | null = null;
  #refused: StreamRefusal | null = null;

  /** `mark`: what an earlier life has kept; `keepMark` keeps a newer one for the next. */
  constructor(
    runtime: Runtime,
    connect: Connect,
    { mark = null, keepMark = () => undefined }: MarkKeeping = {},
  ) {
    this.runtime = runtime;
    this.#keepalives = new Keepalives(runtime, () => this.#keepalive());
    this.#requests = new StreamRequests(runtime.timers, (requests) => {
      this.#stream?.send({ format: FORMAT_VERSION, requests });
    });
    this.#connect = connect;
    this.#mark = mark;
    this.#keepMark = keepMark;
  }

  get isConnected(): boolean {
    return this.#stream !== null;
  }

  /** Why nobody serves this group: its log was rolled back. Null: it is served, as far as is known (rule S10). */
  get halted(): string | null {
    return this.#halted;
  }

  /** The last stream was not accepted, and none has been since. */
  get refused(): StreamRefusal | null {
    return this.#refused;
  }

  /** What this client saw last of the log. */
  get seen(): Position {
    return this.#seen;
  }

  open(): void {
    if (this.#stream !== null || this.#isClosed) return;
    const number = ++this.#streamNumber;
    let isOpen = true;
    const handler: ClientHandler = {
      onOpen: () => {
        if (isOpen && number === this.#streamNumber) this.#refused = null;
      },
      onFrame: (frame) => {
        if (isOpen && number === this.#streamNumber) this.#receive(frame);
      },
      onClose: (refusal) => {
        const isNews = isOpen && number === this.#streamNumber;
        isOpen = false;
        if (!isNews) return;
        // One that cannot be reached says nothing about what another has refused.
        this.#refused = refusal ?? this.#refused;
        this.#lost();
      },
    };
    const stream = this.#connect(handler);
    // It may have closed before it was there; then the next one is planned already.
    if (!isOpen) return;
    this.#use(stream);
  }

  /** What was seen last is shown first (rule S10). */
  #use(stream: ClientStream): void {
    this.#stream = stream;
    if (this.#mark !== null) stream.send({ format: FORMAT_VERSION, requests: [], mark: this.#mark });
    for (const session of this.#sessions) session.connected();
    this.#awaitFirstWord();
  }

  /** Gives the connection up for good; sessions are left to expire unless they were closed before. */
  close(): void {
    this.#isClosed = true;
    this.#streamNumber++;
    this.#reconnect?.cancel();
    this.#change?.cancel();
    this.#firstWord?.cancel();
    this.#renewal?.cancel();
    this.#keepalives.stop();
    this.#stream?.close();
    this.#stream = null;
  }

  /** Drops the stream and takes another: what it carried may have been lost (rule S8). */
  reconnect(): void {
    const stream = this.#stream;
    this.#streamNumber++;
    this.#lost();
    stream?.close();
  }

  /**
   * Proves anew who this is: opens another stream beside the one in use, and moves the sessions there once it is accepted. One that is
   * refused costs nothing, and is tried again.
   */
  renew(): void {
    this.#renewal?.cancel();
    this.#renewal = null;
    if (this.#stream === null || this.#isClosed) return;
    let number = 0;
    let isOpen = true;
    const late = this.runtime.timers.after(RENEW_MS_MAX, () => this.renew());
    const stream = this.#connect({
      onOpen: () => {
        if (!isOpen || number !== 0) return;
        late.cancel();
        this.#renewal = null;
        number = this.#adopt(stream);
      },
      onFrame: (frame) => {
        if (isOpen && number === this.#streamNumber) this.#receive(frame);
      },
      onClose: () => {
        const isNews = isOpen;
        isOpen = false;
        late.cancel();
        if (!isNews) return;
        if (number === 0) this.#renewLater();
        else if (number === this.#streamNumber) this.#lost();
      },
    });
    const cancel = (): void => {
      late.cancel();
      isOpen = false;
      stream.close();
    };
    if (isOpen && number === 0) this.#renewal = { cancel };
  }

  #renewLater(): void {
    this.#renewal = this.runtime.timers.after(RENEW_RETRY_MS, () => this.renew());
  }

  /** Number of the stream, which is the one in use from now on. */
  #adopt(stream: ClientStream): number {
    const old = this.#stream;
    const number = ++this.#streamNumber;
    this.#reconnect?.cancel();
    this.#reconnect = null;
    this.#forgetStream();
    this.#use(stream);
    old?.close();
    return number;
  }

  add(session: AttachableSession): void {
    this.#sessions.add(session);
    if (!this.#isClosed) this.#keepalives.cover(session.ttlMs);
    if (this.#stream !== null) session.connected();
  }

  /** The session knows its id now; notices and keepalive answers find it by that. */
  identified(session: AttachableSession): void {
    this.#byId.set(session.id, session);
  }

  remove(session: AttachableSession): void {
    this.#sessions.delete(session);
    // In a new lineage numbers begin anew: another session may have this one by now.
    if (this.#byId.get(session.id) === session) this.#byId.delete(session.id);
    if (this.#sessions.size === 0) this.#keepalives.stop();
  }

  /**
   * Sends one request on the current stream; `onAnswer` is not called when the stream ends before. Requests of one turn share
   * a frame. Returns the request's id, 0 when there is no stream.
   */
  send(body: ClientRequestBody, onAnswer: OnAnswer): number {
    if (this.#stream === null) return 0;
    return this.#requests.add(body, { epoch: this.#seen.epoch, losses: this.#leaderLosses }, onAnswer);
  }

  /** A read; null when the group did not answer within `limitMs`. */
  read(query: ReadQuery, limitMs: number): Promise<AnswerBody | null> {
    return new Promise((resolve) => {
      const timer = this.runtime.timers.after(limitMs, () => {
        this.#requests.giveUp(id);
        resolve(null);
      });
      const id = this.send(query, (answer) => {
        timer.cancel();
        resolve(answer);
      });
    });
  }

  #receive(frame: ServerFrame): void {
    this.#failures = 0;
    this.#refused = null;
    this.#firstWord?.cancel();
    this.#heardWhetherLed(frame.leading);
    this.#halted = frame.halted ?? null;
    const isOld = isOlder(frame.position, this.#seen);
    if (!isOld) this.#sees(frame);
    const led = frame.leading ? { epoch: frame.position.epoch, losses: this.#leaderLosses } : null;
    for (const { id, body } of frame.answers) {
      // What a front end refuses by itself says nothing of the log, and it may be behind what was seen through another one.
      if (!isOld || body.type === 'rejected' || body.type === 'wrongGroup')
        this.#requests.answered(id, body, led);
    }
    if (isOld) return;
    for (const notice of frame.notices) this.#notice(notice);
    if (frame.keepalive !== undefined) this.#keepaliveAnswered(frame.keepalive);
  }

  #sees({ mark, position }: ServerFrame): void {
    if (mark !== undefined) this.#marked(mark);
    if (position.lineage !== '') this.#seen = position;
  }

  #heardWhetherLed(isLed: boolean): void {
    const isNew = isLed && this.#isLeaderless;
    if (!isLed && !this.#isLeaderless) this.#leaderLosses++;
    this.#isLeaderless = !isLed;
    if (!isLed) this.#believedUntilMs = this.runtime.clock.monotonicMs() + NO_LEADER_MS;
    // What was sent to the leader before is not acknowledged any more, and the next keepalive may be far.
    if (isNew) this.#keepalive();
  }

  /** Within a lineage the highest one counts, whatever is given later: that is what proves a roll-back (rule S10). */
  #marked(mark: Mark): void {
    const { lineage, index } = this.#mark ?? { lineage: '', index: 0 };
    if (mark.lineage === lineage && mark.index <= index) return;
    this.#mark = mark;
    this.#keepMark(mark);
  }

  #notice({ session: id, attach, event }: SessionNotice): void {
    const session = this.#byId.get(id);
    if (session?.attach === attach) session.notice(event);
  }

  #lost(): void {
    this.#forgetStream();
    if (this.#isClosed || this.#reconnect !== null) return;
    const ceilingMs = Math.min(RECONNECT_MS_MAX, RECONNECT_MS_MIN * 2 ** this.#failures++);
    this.#reconnect = this.runtime.timers.after(
      ceilingMs * (0.5 + this.runtime.random.fraction() / 2),
      () => {
        this.#reconnect = null;
        this.open();
      },
    );
  }

  /** What was under way on it is sent again on the next one. */
  #forgetStream(): void {
    this.#stream = null;
    this.#change?.cancel();
    this.#change = null;
    this.#firstWord?.cancel();
    this.#firstWord = null;
    this.#isLeaderless = false;
    this.#believedUntilMs = Number.NEGATIVE_INFINITY;
    this.#requests.forget();
    this.#keepalives.forget();
    for (const session of this.#sessions) session.disconnected();
  }

  /** Until this front end has had its time: it does not answer, and does not say why (rule S8). */
  get #changeInMs(): number {
    const believedForMs = this.#believedUntilMs - this.runtime.clock.monotonicMs();
    const unheardInMs = Math.min(...[...this.#sessions].map((session) => session.unheardInMs));
    return Math.max(believedForMs, unheardInMs);
  }

  #awaitFirstWord(): void {
    const waitMs = Math.min(
      FIRST_WORD_MS * 2 ** Math.max(0, this.#failures - 1),
      2 * this.#keepalives.everyMs,
    );
    const afterMs = waitMs * (1 + this.runtime.random.fraction() / 4);
    this.#firstWord = this.runtime.timers.after(afterMs, () => {
      const hasAsked = [...this.#sessions].some(
        ({ unheardInMs }) => unheardInMs !== Number.POSITIVE_INFINITY,
      );
      if (this.#stream !== null && hasAsked) this.reconnect();
    });
  }

  /**
   * Spread out, so that the clients of a front end that is gone do not all come to the next one at once. Counted from the very moment at
   * which it is due: what is lost until the next keepalive would be missing before the deadline of the grants (rule A1).
   */
  #planChange(): void {
    const dueMs = this.#changeInMs;
    // What is overdue stays as it is planned.
    if (dueMs > 0) {
      this.#change?.cancel();
      this.#change = null;
    }
    const { everyMs } = this.#keepalives;
    if (dueMs > everyMs) return;
    const spreadMs = (5 * everyMs) / 8;
    const afterMs = Math.max(0, dueMs) + spreadMs * this.runtime.random.fraction();
    this.#change ??= this.runtime.timers.after(afterMs, () => {
      this.#change = null;
      if (this.#stream !== null && this.#changeInMs <= 0) this.reconnect();
    });
  }

  #keepalive(): void {
    if (this.#stream === null) return;
    this.#planChange();
    const sessions = [...this.#sessions].flatMap((session) => session.keepalive() ?? []);
    if (sessions.length === 0) return;
    const number = this.#keepalives.number();
    this.#stream.send({ format: FORMAT_VERSION, requests: [], keepalive: { number, sessions } });
  }

  /** Rule S2: the deadline counts from when *this* keepalive was sent, not from another one's time or the answer's. */
  #keepaliveAnswered({ number, sessions }: KeepaliveAnswer): void {
    const sent = this.#keepalives.takeSent(number);
    if (sent === undefined) return;
    for (const status of sessions) this.#byId.get(status.session)?.kept(status, sent);
  }
}

/** Rule S2: frames of an older epoch, or of an older index of the same one, say nothing new. */
function isOlder(position: Position, seen: Position): boolean {
  if (position.lineage !== seen.lineage) return false;
  return position.epoch < seen.epoch || (position.epoch === seen.epoch && position.index < seen.index);
}
