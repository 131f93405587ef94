/**
 * An application's session (rule A6): an envelope around one session per namespace it has touched. Its life follows the
 * application's (rule A3): calls, or an open stream, or both.
 */
import { LeaseholdError } from '../api/errors.ts';
import { marginMs } from '../api/lease.ts';
import { assert } from '../core/assert.ts';
import type { Runtime, Timer } from '../platform/runtime.ts';
import type { NamespaceSession } from './namespace-session.ts';
import type { EventSubscription, Liveness, StreamLine } from './service.ts';

export interface EnvelopeOptions {
  readonly id: string;
  readonly client: string;
  /** How long it outlives its application's last sign of life at the least; a namespace's own TTL may be longer. */
  readonly ttlMs: number;
  readonly isTtlChosen: boolean;
  readonly keepalive: Liveness;
  /** 0 = the namespace's alone. */
  readonly maxHoldMs: number;
  /** Opened by an acquire without a session: goes with its lock. */
  readonly isSingle: boolean;
}

export class Envelope {
  readonly options: EnvelopeOptions;
  readonly namespaces = new Map<string, NamespaceSession>();
  readonly #runtime: Runtime;
  /** The application is gone: whatever is left must end, uncleanly. */
  readonly #onSilent: (reason: string) => void;
  #lastCallMs: number;
  #streamMissingSinceMs: number;
  #stream: ((line: StreamLine) => void) | null = null;
  #timer: Timer | null = null;
  #openCalls = 0;
  #endReason: string | null = null;

  constructor(runtime: Runtime, options: EnvelopeOptions, onSilent: (reason: string) => void) {
    this.options = options;
    this.#runtime = runtime;
    this.#onSilent = onSilent;
    this.#lastCallMs = runtime.clock.monotonicMs();
    this.#streamMissingSinceMs = this.#lastCallMs;
    this.#watch();
  }

  get isOver(): boolean {
    return this.#endReason !== null;
  }

  get hasStream(): boolean {
    return this.#stream !== null;
  }

  /** Whether only a stream shows that the application lives: then nothing is renewed until it is there (rule A3). */
  get needsStream(): boolean {
    return this.options.keepalive !== 'app';
  }

  /** Whether anything is held in it, or asked for. */
  get isUsed(): boolean {
    return this.#openCalls > 0 || [...this.namespaces.values()].some(({ grantCount }) => grantCount > 0);
  }

  /** The earliest deadline of its namespaces that are open (rule A6); without any, what one opened now would have. */
  get deadlineMs(): number {
    const { ttlMs } = this.options;
    const nowMs = this.#runtime.clock.monotonicMs();
    const open = [...this.namespaces.values()].filter(({ isOpening }) => !isOpening);
    if (open.length === 0)
      return Math.min(nowMs + ttlMs - marginMs(ttlMs), this.#silentSinceMs(nowMs) + ttlMs);
    const deadlines = open.map((namespace) => Math.min(namespace.deadlineMs, this.silentUntilMs(namespace)));
    return Math.min(...deadlines);
  }

  /** When this part of the session ends for want of a sign of life, if none comes: no deadline told may be later (rule A3). */
  silentUntilMs(namespace: NamespaceSession): number {
    return this.#silentSinceMs(this.#runtime.clock.monotonicMs()) + this.#silenceMsMax(namespace);
  }

  add(alias: string, namespace: NamespaceSession): void {
    assert(!this.namespaces.has(alias), 'a session has one part in a namespace');
    assert(!this.isOver, 'nothing is added to a session that is over');
    this.namespaces.set(alias, namespace);
    // It may have to end before the others.
    this.#watch();
  }

  /** The application called; throws when it is too late. */
  touch(): void {
    if (this.#endReason !== null) throw sessionExpired(this.options.id, this.#endReason);
    this.#lastCallMs = this.#runtime.clock.monotonicMs();
  }

  /** A call that stays open shows all the while that its application is there. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.touch();
    this.#openCalls++;
    try {
      return await call();
    } finally {
      this.#openCalls--;
      this.#lastCallMs = this.#runtime.clock.monotonicMs();
    }
  }

  openStream(onLine: (line: StreamLine) => void): EventSubscription {
    this.touch();
    if (this.#stream !== null) {
      const message =
        'the event stream of this session is open already; close that one, or open a session of your own';
      throw new LeaseholdError('INVALID', message, { field: 'session_id', limit: 'one event stream' });
    }
    this.#stream = onLine;
    for (const namespace of this.namespaces.values()) namespace.wake();
    return {
      close: () => {
        if (this.#stream !== onLine) return;
        this.#stream = null;
        this.#streamMissingSinceMs = this.#runtime.clock.monotonicMs();
        if (this.needsStream && this.#endReason === null)
          this.#onSilent('the application closed its event stream');
      },
    };
  }

  tell(line: StreamLine): void {
    this.#stream?.(line);
  }

  /** The process ends: whether the application lives is for the next one to see. */
  stop(): void {
    this.#timer?.cancel();
    for (const namespace of this.namespaces.values()) namespace.stop();
  }

  /** The last word on the stream; every later call is told SESSION_EXPIRED. */
  end(reason: string): void {
    if (this.#endReason !== null) return;
    this.#endReason = reason;
    this.#timer?.cancel();
    this.tell({ event: 'sessionLost', reason });
    this.#stream = null;
  }

  /** Looks again when the application's silence could have lasted one TTL, which is each namespace's own (rule A6). */
  #watch(): void {
    this.#timer?.cancel();
    const now = this.#runtime.clock.monotonicMs();
    const silentMs = now - this.#silentSinceMs(now);
    const reasonAfter = (limitMs: number) => `the application gave no sign of life for ${limitMs} ms`;
    const { ttlMs } = this.options;
    if (this.namespaces.size === 0 && silentMs >= ttlMs) this.#onSilent(reasonAfter(ttlMs));
    // With its last part the session is over as a whole.
    for (const namespace of [...this.namespaces.values()]) {
      const limitMs = this.#silenceMsMax(namespace);
      if (silentMs >= limitMs) namespace.end(reasonAfter(limitMs));
    }
    if (this.isOver) return;
    const limits = [...this.namespaces.values()].map((namespace) => this.#silenceMsMax(namespace));
    const nextMs = limits.length === 0 ? ttlMs : Math.min(...limits);
    assert(nextMs > silentMs, 'what has been silent for too long is over');
    this.#timer = this.#runtime.timers.after(nextMs - silentMs, () => this.#watch());
  }

  /** Not less than the application was told when it opened the session: whoever keeps to that loses nothing. */
  #silenceMsMax({ ttlMs }: NamespaceSession): number {
    return Math.max(ttlMs, this.options.ttlMs);
  }

  #silentSinceMs(nowMs: number): number {
    const calls = this.#openCalls > 0 ? nowMs : this.#lastCallMs;
    const stream = this.#stream !== null ? nowMs : this.#streamMissingSinceMs;
    switch (this.options.keepalive) {
      case 'app':
        return calls;
      case 'stream':
        return stream;
      case 'both':
        return Math.min(calls, stream);
    }
  }
}

export function sessionExpired(id: string, reason: string): LeaseholdError {
  return new LeaseholdError('SESSION_EXPIRED', `session ${id}: ${reason}`, { session_id: id });
}
