/**
 * Calls of applications to their sidecar, as HTTP on localhost would carry them: a call travels, is served, its answer is
 * written and travels back; either side may die or leave at any point in between. Each call has a bound, and one that
 * exceeds it is a finding (check 2 of the public cases).
 */
import { LeaseholdError } from '../../../src/api/errors.ts';
import type { EventSubscription, SidecarService, StreamLine } from '../../../src/sidecar/service.ts';
import type { Random } from '../../support/random.ts';
import type { Findings } from '../judge/findings.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { US_PER_MS, type World } from '../world/world.ts';

export type Outcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'refused'; readonly error: LeaseholdError }
  /** The connection broke: nobody knows what became of it. */
  | { readonly kind: 'broken' }
  | { readonly kind: 'hungUp' };

/** `finished`: after its last line; `expired`: there is no such session; `refused`: for another reason. */
export type StreamEnd = 'broken' | 'finished' | 'expired' | 'refused';

export interface CallOptions<T> {
  readonly what: string;
  /** The session whose application thereby shows that it lives; undefined: the call names none. */
  readonly session?: string;
  /** Longest time from arrival to answer, on the sidecar's clock and without its stops, ms. */
  readonly boundMs: number;
  /** For acquires: what is waited for, so that waits without a caller can be told. */
  readonly waitsFor?: string;
  readonly run: (service: SidecarService, hangUp: AbortSignal) => Promise<T> | T;
  /** At the sidecar, in the moment of the outcome. */
  readonly onServed?: (outcome: Outcome<T>) => void;
}

export interface Call<T> {
  readonly outcome: Promise<Outcome<T>>;
  hangUp(): void;
}

/** What a session's application has shown of itself, as far as it reached the sidecar. */
export interface Signs {
  openCalls: number;
  lastUs: number;
  isStreamOpen: boolean;
  /** When the stream was last missing from; means nothing while it is open. */
  streamMissingSinceUs: number;
}

interface OpenCall {
  readonly app: Life;
  readonly options: CallOptions<unknown>;
  readonly arrivedUs: number;
  readonly arrivedMonotonicMs: number;
  readonly pausedUsAtArrival: number;
  readonly controller: AbortController;
  isWritten: boolean;
  readonly break: () => void;
}

interface OpenStream {
  readonly app: Life;
  readonly sessionId: string;
  readonly subscription: EventSubscription;
  readonly break: () => void;
}

/** The sidecar behind it. */
export interface Served {
  readonly name: string;
  readonly process: VirtualProcess;
  /** Null while it does not run. */
  readonly sidecar: SidecarService | null;
}

export interface LocalHttpOptions {
  readonly sidecar: Served;
  readonly findings: Findings;
  readonly delayMs: number;
}

export class LocalHttp {
  readonly signs = new Map<string, Signs>();
  readonly #world: World;
  readonly #options: LocalHttpOptions;
  readonly #random: Random;
  readonly #calls = new Set<OpenCall>();
  readonly #streams = new Set<OpenStream>();
  /** Connections that a stopped sidecar has not looked at yet. */
  readonly #accepted = new Set<{ readonly break: () => void }>();
  calls = 0;

  constructor(world: World, options: LocalHttpOptions) {
    this.#world = world;
    this.#options = options;
    this.#random = world.random(`http ${options.sidecar.name}`);
  }

  call<T>(app: Life, options: CallOptions<T>): Call<T> {
    let settle: (outcome: Outcome<T>) => void = () => undefined;
    let isSettled = false;
    const outcome = new Promise<Outcome<T>>((resolve) => {
      settle = resolve;
    });
    /** Travels back and is read by the application, unless it has left by then. */
    const answer = (result: Outcome<T>): void => {
      this.#travel(() =>
        app.process.enter(app, 'message', () => {
          if (isSettled) return;
          isSettled = true;
          settle(result);
        }),
      );
    };
    let serving: OpenCall | null = null;
    let hasLeft = false;
    const number = ++this.calls;
    const { trace } = this.#world;
    trace?.(`${app.process.name} call ${number}: ${options.what} in ${options.session}`);
    if (trace !== undefined) {
      void outcome.then((result) =>
        trace(`${app.process.name} call ${number}: ${result.kind} ${textOf(result)}`),
      );
    }
    this.#arrive(
      (service) => {
        if (!hasLeft) serving = this.#serve(app, service, options, answer);
      },
      () => answer({ kind: 'broken' }),
    );
    const leave = (): void => {
      hasLeft = true;
      if (serving !== null) this.#left(serving);
    };
    return {
      outcome,
      hangUp: () => {
        if (isSettled) return;
        isSettled = true;
        settle({ kind: 'hungUp' });
        this.#travel(leave);
      },
    };
  }

  /** Opens the event stream of a session. Returns how to close it. */
  openStream(
    app: Life,
    sessionId: string,
    onLine: (line: StreamLine) => void,
    onEnd: (why: StreamEnd) => void,
  ): () => void {
    let open: OpenStream | null = null;
    let hasLeft = false;
    let isOver = false;
    let lastUs = 0;
    /** Lines arrive in the order in which they were written. */
    const toApp = (action: () => void): void => {
      lastUs = Math.max(lastUs + 1, this.#world.nowUs + this.#drawDelayUs());
      this.#world.at(lastUs, () => app.process.enter(app, 'message', action));
    };
    const over = (why: StreamEnd): void =>
      toApp(() => {
        if (isOver) return;
        isOver = true;
        onEnd(why);
      });
    const broke = (): void => over('broken');
    this.#arrive((service) => {
      if (hasLeft || app.isOver) return;
      try {
        const subscription = service.openEvents(sessionId, (line) => {
          toApp(() => {
            if (!isOver) onLine(line);
          });
          if (line.event !== 'sessionLost' || open === null) return;
          this.#streamEnded(open);
          over('finished');
        });
        open = { app, sessionId, subscription, break: broke };
        this.#streams.add(open);
        this.#signsOf(sessionId).isStreamOpen = true;
      } catch (error) {
        this.#checkError(error, 'events');
        over(error instanceof LeaseholdError && error.code === 'SESSION_EXPIRED' ? 'expired' : 'refused');
      }
    }, broke);
    return () => {
      isOver = true;
      this.#travel(() => {
        hasLeft = true;
        if (open !== null) this.#closeStream(open);
      });
    };
  }

  /** The application is dead: its connections close. */
  applicationDied(app: Life): void {
    for (const call of [...this.#calls]) if (call.app === app) this.#travel(() => this.#left(call));
    for (const stream of [...this.#streams])
      if (stream.app === app) this.#travel(() => this.#closeStream(stream));
  }

  /** The sidecar is dead: what was open breaks. */
  died(): void {
    for (const call of [...this.#calls]) call.break();
    this.#calls.clear();
    for (const stream of [...this.#streams]) stream.break();
    this.#streams.clear();
    for (const connection of [...this.#accepted]) connection.break();
    this.#accepted.clear();
    this.signs.clear();
  }

  signsOf(sessionId: string): Signs {
    return this.#signsOf(sessionId);
  }

  /** Whether a call waits here for this lock, of this session or, if it names none, of any. */
  isWaitedFor(name: string, sessionId: string): boolean {
    for (const { options } of this.#calls) {
      if (options.waitsFor === name && (options.session === undefined || options.session === sessionId))
        return true;
    }
    return false;
  }

  get openCalls(): number {
    return this.#calls.size;
  }

  /** Calls that have taken too long and are still open. */
  checkBounds(): void {
    for (const call of this.#calls) this.#checkBound(call, 'is still open');
  }

  #serve<T>(
    app: Life,
    service: SidecarService,
    options: CallOptions<T>,
    answer: (outcome: Outcome<T>) => void,
  ): OpenCall {
    const { process } = this.#options.sidecar;
    const call: OpenCall = {
      app,
      options: options as CallOptions<unknown>,
      arrivedUs: this.#world.nowUs,
      arrivedMonotonicMs: process.machine.monotonicMs(),
      pausedUsAtArrival: process.pausedUs,
      controller: new AbortController(),
      isWritten: false,
      break: () => answer({ kind: 'broken' }),
    };
    this.#calls.add(call);
    if (options.session !== undefined) this.#signsOf(options.session).openCalls++;
    void this.#outcomeOf(service, options, call).then((outcome) => {
      if (options.session !== undefined) {
        const signs = this.#signsOf(options.session);
        signs.openCalls = Math.max(0, signs.openCalls - 1);
        signs.lastUs = this.#world.nowUs;
      }
      this.#checkBound(call, `ended ${outcome.kind}`);
      options.onServed?.(outcome);
      // The answer is written a moment later: the caller may leave in between (rule A5).
      this.#world.at(this.#world.nowUs + this.#random.int(300), () => {
        call.isWritten = true;
        if (this.#calls.delete(call)) answer(outcome);
      });
    });
    return call;
  }

  async #outcomeOf<T>(service: SidecarService, options: CallOptions<T>, call: OpenCall): Promise<Outcome<T>> {
    try {
      return { kind: 'done', value: await options.run(service, call.controller.signal) };
    } catch (error) {
      this.#checkError(error, options.what);
      return error instanceof LeaseholdError ? { kind: 'refused', error } : { kind: 'broken' };
    }
  }

  #checkError(error: unknown, what: string): void {
    if (error instanceof LeaseholdError) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#options.findings.add('api-error', `${what} failed otherwise than by the error table: ${text}`);
  }

  #checkBound({ options, arrivedMonotonicMs, pausedUsAtArrival }: OpenCall, how: string): void {
    const { process } = this.#options.sidecar;
    const pausedMs = (process.pausedUs - pausedUsAtArrival) / US_PER_MS;
    const tookMs = process.machine.monotonicMs() - arrivedMonotonicMs - pausedMs * process.machine.rate;
    if (tookMs <= options.boundMs) return;
    this.#options.findings.add(
      'call-bound',
      `${options.what} ${how} after ${Math.round(tookMs)} ms; its bound is ${options.boundMs} ms`,
    );
  }

  #left(call: OpenCall): void {
    const { process } = this.#options.sidecar;
    if (call.isWritten || !this.#calls.has(call) || process.life === null) return;
    process.enter(process.life, 'message', () => {
      if (!call.isWritten) call.controller.abort();
    });
  }

  #closeStream(stream: OpenStream): void {
    const { process } = this.#options.sidecar;
    if (!this.#streams.has(stream) || process.life === null) return;
    process.enter(process.life, 'message', () => {
      this.#streamEnded(stream);
      stream.subscription.close();
    });
  }

  #streamEnded(stream: OpenStream): void {
    this.#streams.delete(stream);
    const signs = this.#signsOf(stream.sessionId);
    signs.isStreamOpen = false;
    signs.streamMissingSinceUs = this.#world.nowUs;
  }

  #arrive(serve: (service: SidecarService) => void, onRefused: () => void): void {
    this.#travel(() => {
      const { process, sidecar } = this.#options.sidecar;
      if (process.life === null || sidecar === null) return onRefused();
      const { life } = process;
      const connection = { break: onRefused };
      this.#accepted.add(connection);
      process.enter(life, 'message', () => {
        this.#accepted.delete(connection);
        serve(sidecar);
      });
    });
  }

  #signsOf(sessionId: string): Signs {
    let signs = this.signs.get(sessionId);
    if (signs === undefined) {
      const nowUs = this.#world.nowUs;
      signs = { openCalls: 0, lastUs: nowUs, isStreamOpen: false, streamMissingSinceUs: nowUs };
      this.signs.set(sessionId, signs);
    }
    return signs;
  }

  #travel(action: () => void): void {
    this.#world.at(this.#world.nowUs + this.#drawDelayUs(), action);
  }

  #drawDelayUs(): number {
    return Math.ceil(this.#options.delayMs * US_PER_MS * (this.#random.int(1_000) / 1_000));
  }
}

function textOf(outcome: Outcome<unknown>): string {
  if (outcome.kind === 'refused') return `${outcome.error.code}: ${outcome.error.message}`;
  const plain = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);
  return outcome.kind === 'done' ? JSON.stringify(outcome.value, plain) : '';
}
