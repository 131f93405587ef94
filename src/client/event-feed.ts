/**
 * The event stream of one session, opened again when it breaks. With keepalive `both` a break of the connection alone ends the
 * session at once, while after a death of the sidecar the session goes on: which of the two it was shows when the stream is
 * opened again, or nothing listens any more (rule A3).
 */
import { errorOf, type LeaseholdError } from './errors.ts';
import { type Json, type LineStream, NoAnswerError, type Transport } from './http.ts';
import type { ClientRuntime, Timer } from './runtime.ts';

export interface FeedListener {
  line(line: Json): void;
  /** The stream has ended; whether the session goes on is not known. */
  broken(): void;
  /** Nothing listens: the sidecar itself is down, and that ends no session. */
  serverDown(): void;
  /** The stream is back. */
  back(): void;
  /** The service does not know the session any more. */
  gone(error: LeaseholdError): void;
}

const OPEN_MS_MAX = 2_000;
/** A sidecar that restarts renews nothing before this stream is back, so it is tried often. */
const REOPEN_MS_MIN = 50;
const REOPEN_MS_SPREAD = 200;

export class EventFeed {
  readonly #runtime: ClientRuntime;
  readonly #transport: Transport;
  readonly #path: string;
  readonly #listener: FeedListener;
  readonly #stopped = new AbortController();
  #stream: LineStream | null = null;
  #isOpen = false;
  #retry: Timer | null = null;

  constructor(runtime: ClientRuntime, transport: Transport, sessionId: string, listener: FeedListener) {
    this.#runtime = runtime;
    this.#transport = transport;
    this.#path = `/v1/sessions/${sessionId}/events`;
    this.#listener = listener;
  }

  /** Resolves when the stream is open for the first time. @throws LeaseholdError, NoAnswerError */
  async open(): Promise<void> {
    this.#watch(await this.#connect(false));
  }

  /** Whether what happens is told now. What happened while it was not open is not told later. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  stop(): void {
    this.#stopped.abort();
    this.#retry?.cancel();
    this.#stream?.close();
  }

  async #connect(isBackground: boolean): Promise<LineStream> {
    const opened = await this.#transport.stream(
      {
        method: 'GET',
        path: this.#path,
        limitMs: OPEN_MS_MAX,
        signals: [this.#stopped.signal],
        isBackground,
      },
      (line) => {
        if (!this.#stopped.signal.aborted) this.#listener.line(line);
      },
    );
    if ('status' in opened) throw errorOf(opened);
    return opened;
  }

  #watch(stream: LineStream): void {
    this.#stream = stream;
    this.#isOpen = true;
    if (this.#stopped.signal.aborted) stream.close();
    void stream.ended.then(() => {
      this.#isOpen = false;
      if (this.#stopped.signal.aborted) return;
      this.#listener.broken();
      this.#reopen();
    });
  }

  #reopen(): void {
    if (this.#stopped.signal.aborted) return;
    this.#connect(true).then(
      (stream) => {
        this.#watch(stream);
        if (!this.#stopped.signal.aborted) this.#listener.back();
      },
      (error: unknown) => this.#notOpened(error),
    );
  }

  #notOpened(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    if (error instanceof NoAnswerError) {
      if (error.kind === 'refused') this.#listener.serverDown();
    } else if (isGone(error)) {
      this.#listener.gone(error);
      return;
    }
    const delayMs = REOPEN_MS_MIN + this.#runtime.random.fraction() * REOPEN_MS_SPREAD;
    this.#retry = this.#runtime.timers.after(delayMs, () => this.#reopen(), true);
  }
}

function isGone(error: unknown): error is LeaseholdError {
  return error instanceof Error && 'code' in error && error.code === 'SESSION_EXPIRED';
}
