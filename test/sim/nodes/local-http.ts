/**
 * Calls of applications to their sidecar, as HTTP on localhost would carry them: a call travels, is served, its answer is
 * written and travels back; either side may die or leave at any point in between. Each call has a bound, and one that
 * exceeds it is a finding (check 2 of the public cases).
 */
import { type ErrorCode, LeaseholdError } from '../../../src/api/errors.ts';
import type { SidecarService } from '../../../src/sidecar/service.ts';
import type { Life } from '../world/process.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import { LocalStreams } from './local-streams.ts';
import { Localhost, type LocalhostOptions } from './localhost.ts';

export type Outcome<T> =
  /** `isStale`: the machine has slept while the answer was on its way, so deadlines in it mean nothing (rule A2). */
  | { readonly kind: 'done'; readonly value: T; readonly isStale?: boolean }
  | { readonly kind: 'refused'; readonly error: LeaseholdError }
  /** The connection broke: nobody knows what became of it. */
  | { readonly kind: 'broken' }
  | { readonly kind: 'hungUp' };

export interface CallOptions<T> {
  readonly what: string;
  /** The session whose application thereby shows that it lives; undefined: the call names none. */
  readonly session?: string;
  /** Longest time from arrival to answer, on the sidecar's clock and without its stops, ms. */
  readonly boundMs: number;
  /** Refusals with these codes need less time, ms. */
  readonly refusedWithinMs?: Partial<Record<ErrorCode, number>>;
  /** For acquires: what is waited for, so that waits without a caller can be told. */
  readonly waitsFor?: string;
  readonly run: (service: SidecarService, hangUp: AbortSignal) => Promise<T> | T;
  /** At the sidecar, in the moment of the outcome. */
  readonly onServed?: (outcome: Outcome<T>) => unknown;
}

export interface Call<T> {
  readonly outcome: Promise<Outcome<T>>;
  hangUp(): void;
}

interface OpenCall {
  readonly app: Life;
  readonly options: CallOptions<unknown>;
  readonly arrivedMonotonicMs: number;
  readonly pausedUsAtArrival: number;
  readonly controller: AbortController;
  isWritten: boolean;
  readonly break: () => void;
}

/** Longest time between an outcome and its last byte: the caller may leave in between (rule A5). */
const WRITING_US_MAX = 300;

export class LocalHttp {
  readonly localhost: Localhost;
  readonly streams: LocalStreams;
  readonly #world: World;
  readonly #open = new Set<OpenCall>();
  /** Calls made so far. */
  calls = 0;

  constructor(world: World, options: LocalhostOptions) {
    this.#world = world;
    this.localhost = new Localhost(world, options);
    this.streams = new LocalStreams(this.localhost);
  }

  get openCalls(): number {
    return this.#open.size;
  }

  call<T>(app: Life, options: CallOptions<T>): Call<T> {
    const { promise, resolve } = Promise.withResolvers<Outcome<T>>();
    this.#tell(app, options, promise);
    let isSettled = false;
    /** Travels back and is read by the application, unless it has left by then. */
    const answer = (outcome: Outcome<T>): void => {
      const { sleeps } = app.process.machine;
      this.localhost.travel(() =>
        app.process.enter(app, 'message', () => {
          isSettled = true;
          const isStale = app.process.machine.sleeps !== sleeps;
          resolve(outcome.kind === 'done' ? { ...outcome, isStale } : outcome);
        }),
      );
    };
    let serving: OpenCall | null = null;
    let hasLeft = false;
    this.localhost.arrive(
      (service) => {
        if (!hasLeft) serving = this.#serve(app, service, options, answer);
      },
      () => answer({ kind: 'broken' }),
    );
    const leave = (): void => {
      hasLeft = true;
      if (serving !== null) this.#left(serving);
    };
    const hangUp = (): void => {
      if (isSettled) return;
      isSettled = true;
      resolve({ kind: 'hungUp' });
      this.localhost.travel(leave);
    };
    return { outcome: promise, hangUp };
  }

  /** The application is dead: its connections close. */
  applicationDied(app: Life): void {
    for (const call of [...this.#open]) {
      if (call.app === app) this.localhost.travel(() => this.#left(call));
    }
    this.streams.applicationDied(app);
  }

  /** The sidecar is dead: what was open breaks. */
  sidecarDied(): void {
    for (const call of [...this.#open]) call.break();
    this.#open.clear();
    this.streams.sidecarDied();
    this.localhost.sidecarDied();
  }

  /** Whether a call waits here for this lock, of this session or, if it names none, of any. */
  isWaitedFor(name: string, sessionId: string): boolean {
    for (const { options } of this.#open) {
      const isOfSession = options.session === undefined || options.session === sessionId;
      if (options.waitsFor === name && isOfSession) return true;
    }
    return false;
  }

  /** Calls that have taken too long and are still open. */
  checkBounds(): void {
    for (const call of this.#open) this.#checkBound(call, 'is still open', call.options.boundMs);
  }

  #serve<T>(
    app: Life,
    service: SidecarService,
    options: CallOptions<T>,
    answer: (outcome: Outcome<T>) => void,
  ): OpenCall {
    const { process } = this.localhost.sidecar;
    const call: OpenCall = {
      app,
      options: options as CallOptions<unknown>,
      arrivedMonotonicMs: process.machine.monotonicMs(),
      pausedUsAtArrival: process.pausedUs,
      controller: new AbortController(),
      isWritten: false,
      break: () => answer({ kind: 'broken' }),
    };
    this.#open.add(call);
    const { session } = options;
    if (session !== undefined) this.localhost.signsOf(session).openCalls++;
    void this.#outcomeOf(service, options, call).then((outcome) => {
      if (session !== undefined) this.#noteSign(session);
      this.#checkBound(call, `ended ${outcome.kind}`, boundOf(options, outcome));
      options.onServed?.(outcome);
      this.#world.at(this.#world.nowUs + this.localhost.random.int(WRITING_US_MAX), () => {
        call.isWritten = true;
        if (this.#open.delete(call)) answer(outcome);
      });
    });
    return call;
  }

  async #outcomeOf<T>(service: SidecarService, options: CallOptions<T>, call: OpenCall): Promise<Outcome<T>> {
    try {
      return { kind: 'done', value: await options.run(service, call.controller.signal) };
    } catch (error) {
      this.localhost.checkError(error, options.what);
      return error instanceof LeaseholdError ? { kind: 'refused', error } : { kind: 'broken' };
    }
  }

  #noteSign(session: string): void {
    const signs = this.localhost.signsOf(session);
    signs.openCalls = Math.max(0, signs.openCalls - 1);
    signs.lastUs = this.#world.nowUs;
  }

  #checkBound(
    { options, arrivedMonotonicMs, pausedUsAtArrival }: OpenCall,
    how: string,
    boundMs: number,
  ): void {
    const { process } = this.localhost.sidecar;
    const pausedMs = (process.pausedUs - pausedUsAtArrival) / US_PER_MS;
    const tookMs = process.machine.monotonicMs() - arrivedMonotonicMs - pausedMs * process.machine.rate;
    if (tookMs <= boundMs) return;
    this.localhost.findings.add(
      'call-bound',
      `${options.what} ${how} after ${Math.round(tookMs)} ms; its bound is ${boundMs} ms`,
    );
  }

  #left(call: OpenCall): void {
    if (call.isWritten || !this.#open.has(call)) return;
    this.localhost.enterSidecar(() => {
      if (!call.isWritten) call.controller.abort();
    });
  }

  #tell<T>(app: Life, { what, session }: CallOptions<T>, outcome: Promise<Outcome<T>>): void {
    const number = ++this.calls;
    const { trace } = this.#world;
    if (trace === undefined) return;
    const call = `${app.process.name} call ${number}`;
    trace(`${call}: ${what}${session === undefined ? '' : ` in ${session}`}`);
    void outcome.then((result) => trace(`${call}: ${result.kind} ${textOf(result)}`));
  }
}

function boundOf<T>({ boundMs, refusedWithinMs = {} }: CallOptions<T>, outcome: Outcome<T>): number {
  return outcome.kind === 'refused' ? (refusedWithinMs[outcome.error.code] ?? boundMs) : boundMs;
}

function textOf(outcome: Outcome<unknown>): string {
  if (outcome.kind === 'refused') return `${outcome.error.code}: ${outcome.error.message}`;
  const plain = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);
  return outcome.kind === 'done' ? JSON.stringify(outcome.value, plain) : '';
}
