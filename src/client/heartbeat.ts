/** Keepalive calls of one session: each TTL/5, sooner after one that was not answered. */
import { errorOf, type LeaseholdError } from './errors.ts';
import type { Json, Transport } from './http.ts';
import type { ClientRuntime, Timer } from './runtime.ts';

export interface HeartbeatListener {
  /** A keepalive sent at `sentMs` was answered. */
  answered(sentMs: number, body: Json): void;
  /** The service does not know the session any more. */
  gone(error: LeaseholdError): void;
}

/** Wait after a keepalive that failed. */
const RETRY_MS = 250;

export class Heartbeat {
  readonly #runtime: ClientRuntime;
  readonly #transport: Transport;
  readonly #path: string;
  readonly #everyMs: number;
  readonly #listener: HeartbeatListener;
  readonly #stopped = new AbortController();
  #next: Timer;

  constructor(
    runtime: ClientRuntime,
    transport: Transport,
    session: { readonly id: string; readonly everyMs: number },
    listener: HeartbeatListener,
  ) {
    this.#runtime = runtime;
    this.#transport = transport;
    this.#path = `/v1/sessions/${session.id}/keepalive`;
    this.#everyMs = session.everyMs;
    this.#listener = listener;
    this.#next = this.#after(session.everyMs);
  }

  stop(): void {
    this.#stopped.abort();
    this.#next.cancel();
  }

  #after(delayMs: number): Timer {
    return this.#runtime.timers.after(delayMs, () => void this.#beat(), true);
  }

  /** One call at a time, each given up after TTL/5: one that hangs costs no more than one interval (case J05). */
  async #beat(): Promise<void> {
    const sentMs = this.#runtime.clock.monotonicMs();
    const isAnswered = await this.#call(sentMs);
    if (this.#stopped.signal.aborted) return;
    const sinceMs = this.#runtime.clock.monotonicMs() - sentMs;
    this.#next = this.#after(isAnswered ? Math.max(0, this.#everyMs - sinceMs) : RETRY_MS);
  }

  async #call(sentMs: number): Promise<boolean> {
    try {
      const answer = await this.#transport.call({
        method: 'POST',
        path: this.#path,
        limitMs: this.#everyMs,
        signals: [this.#stopped.signal],
        isBackground: true,
      });
      if (this.#stopped.signal.aborted) return false;
      if (answer.status === 200) {
        this.#listener.answered(sentMs, answer.body);
        return true;
      }
      const error = errorOf(answer);
      if (error.code === 'SESSION_EXPIRED') this.#listener.gone(error);
      return false;
    } catch {
      // Without an answer, time decides (rule A1).
      return false;
    }
  }
}
