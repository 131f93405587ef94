/**
 * Until when the grants of a session may be believed in, on this process's own monotonic clock. Each answer says how many
 * milliseconds are left; counted from the moment the question was *sent*, so that neither a slow answer nor a process that
 * stood still while it lay there lengthens anything (rule A1).
 */
import { suspendMs } from '../api/lease.ts';
import type { ClientRuntime, Timer } from './runtime.ts';

export class Lease {
  readonly #runtime: ClientRuntime;
  readonly #suspendMs: number;
  /** Called each time the deadline passes without having been moved. */
  readonly #onPassed: () => void;
  #deadlineMs = Number.NEGATIVE_INFINITY;
  #wallAheadMs: number;
  #timer: Timer | null = null;

  constructor(runtime: ClientRuntime, ttlMs: number, onPassed: () => void) {
    this.#runtime = runtime;
    this.#suspendMs = suspendMs(ttlMs);
    this.#onPassed = onPassed;
    this.#wallAheadMs = this.#wallAheadNowMs();
  }

  /** A question sent at `sentMs` was answered with `deadlineInMs`. A promise once given is not shortened by a later one. */
  cover(sentMs: number, deadlineInMs: number): void {
    const deadlineMs = sentMs + deadlineInMs;
    if (deadlineMs <= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    if (this.#timer === null) this.#arm();
  }

  get remainingMs(): number {
    return this.#deadlineMs - this.#runtime.clock.monotonicMs();
  }

  get isPassed(): boolean {
    return this.remainingMs <= 0;
  }

  /** The machine has slept since the service last confirmed what is held: other machines' clocks ran on (rule A2). */
  get isSuspected(): boolean {
    return this.#wallAheadNowMs() > this.#wallAheadMs + this.#suspendMs;
  }

  /** The service has confirmed everything that is held. */
  confirm(): void {
    this.#wallAheadMs = this.#wallAheadNowMs();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #wallAheadNowMs(): number {
    const { clock } = this.#runtime;
    return clock.wallMs() - clock.monotonicMs();
  }

  /** The timer is not moved with each answer: when it fires it looks where the deadline is by then. */
  #arm(): void {
    this.#timer = this.#runtime.timers.after(Math.max(0, this.remainingMs), () => this.#wake(), true);
  }

  #wake(): void {
    this.#timer = null;
    if (this.isPassed) this.#onPassed();
    else this.#arm();
  }
}
