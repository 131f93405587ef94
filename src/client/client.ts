/**
 * The library's front: locks as functions. A client owns its sessions and connections; there is no state outside it. It never
 * installs signal handlers and never ends the process.
 */
import { Acquirer } from './acquire.ts';
import { asUnavailable, ClientClosedError, errorOf, invalid } from './errors.ts';
import type { Surroundings } from './grant-calls.ts';
import { type HoldingAll, holdAll, holdOne } from './hold.ts';
import { HttpTransport, type Transport } from './http.ts';
import type { Holding, Lock } from './lock.ts';
import {
  aliasOf,
  type ClientOptions,
  checkClientOptions,
  checkLockOptions,
  checkTryOptions,
  checkWork,
  durationOf,
  type LockOptions,
  type TryOptions,
  urlFrom,
} from './options.ts';
import { type ClientRuntime, nameOfProcess, systemRuntime, whileAlive } from './runtime.ts';
import { SessionPool } from './session-pool.ts';
import { Tasks } from './tasks.ts';
import { describeLock, type LockDescription, listLocks } from './views.ts';

const REPORT_MS_MAX = 10_000;

type Work<Held, T> = (holding: Held) => Promise<T> | T;
/** Options may be left out. */
type OptionsAndWork<Held, T> =
  | readonly [work: Work<Held, T>]
  | readonly [options: LockOptions, work: Work<Held, T>];

export class Client implements AsyncDisposable {
  readonly #around: Surroundings;
  readonly #pool: SessionPool;
  readonly #acquirer: Acquirer;
  readonly #closing = new AbortController();
  #closed: Promise<void> | null = null;

  constructor(options: ClientOptions, runtime: ClientRuntime, transport: Transport) {
    const { client = nameOfProcess(), keepalive = 'both', ttlMs } = options;
    this.#around = { runtime, transport, tasks: new Tasks() };
    this.#pool = new SessionPool(this.#around, {
      client,
      keepalive,
      ...(ttlMs !== undefined && { ttlMs: durationOf('ttlMs', ttlMs) }),
    });
    this.#acquirer = new Acquirer(this.#around, this.#pool, this.#closing.signal);
  }

  /**
   * Runs `work` while the lock `name` (`<alias>/<rest>`) is held, and gives it back however the work ends. It waits for the
   * work to end also when the lock is lost: watch `signal`.
   * @throws what `work` throws; HeldError when somebody else holds it; LockLostError when the work ended normally but the
   * lock had been lost; other LeaseholdErrors of docs/ERRORS.md
   */
  withLock<T>(name: string, work: Work<Holding, T>): Promise<T>;
  /** The same, with options. */
  withLock<T>(name: string, options: LockOptions, work: Work<Holding, T>): Promise<T>;
  async withLock<T>(name: string, ...given: OptionsAndWork<Holding, T>): Promise<T> {
    const { options, work } = optionsAndWork(given);
    const lock = await this.acquire(name, options);
    return await holdOne(this.#around.runtime, lock, work);
  }

  /**
   * Runs `work` while all of `names` are held. They are taken in byte order of their names, so that two callers never wait for
   * each other; all or none; `waitMs` is for all of them together; they are given back in reverse order.
   * @throws as `withLock`, and INVALID for a name that stands there twice
   */
  withLocks<T>(names: readonly string[], work: Work<HoldingAll, T>): Promise<T>;
  /** The same, with options. */
  withLocks<T>(names: readonly string[], options: LockOptions, work: Work<HoldingAll, T>): Promise<T>;
  async withLocks<T>(names: readonly string[], ...given: OptionsAndWork<HoldingAll, T>): Promise<T> {
    const { options, work } = optionsAndWork(given);
    if (!Array.isArray(names)) throw invalid('names', 'is not an array; for one lock there is withLock');
    for (const name of names) aliasOf(name);
    const acquire = (name: string, given: LockOptions): Promise<Lock> => this.acquire(name, given);
    return await holdAll(this.#around.runtime, acquire, { names, options }, work);
  }

  /**
   * Takes a lock, to be given back by `release` or by `await using`.
   * @throws HeldError when somebody else holds it (at once, or still after `waitMs`); CANCELLED when `signal` fired;
   * other LeaseholdErrors
   */
  async acquire(name: string, options: LockOptions = {}): Promise<Lock> {
    checkLockOptions(options);
    return await whileAlive(this.#around.runtime, () => this.#acquirer.acquire(name, options));
  }

  /** Takes a lock if it is free, after several tries if asked to; null when somebody else holds it. @throws LeaseholdError */
  async tryLock(name: string, options: TryOptions = {}): Promise<Lock | null> {
    checkTryOptions(options);
    return await whileAlive(this.#around.runtime, () => this.#acquirer.tryLock(name, options));
  }

  /** Who holds a lock and who waits for it, for people to look at. A free lock has holder null. @throws LeaseholdError */
  async describe(name: string): Promise<LockDescription> {
    aliasOf(name);
    return await this.#told(() => describeLock(this.#around.transport, name));
  }

  /** All locks in use whose full name starts with `prefix`: at least `<alias>/`, or '' for all. @throws LeaseholdError */
  async *list(prefix: string): AsyncGenerator<LockDescription, void> {
    if (typeof prefix !== 'string') throw invalid('prefix', "is not a string, as 'jobs/', or '' for all");
    this.#throwIfClosed();
    try {
      yield* listLocks(this.#around.transport, prefix);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** A resource refused `token` since it had seen a higher one: to be counted and recorded. @throws LeaseholdError */
  async reportStale(name: string, token: number, resource: string): Promise<void> {
    aliasOf(name);
    const path = `/v1/locks/${encodeURIComponent(name)}/stale-reports`;
    const body = { token, resource };
    const answer = await this.#told(() =>
      this.#around.transport.call({ method: 'POST', path, body, limitMs: REPORT_MS_MAX }),
    );
    if (answer.status !== 200) throw errorOf(answer);
  }

  /**
   * Gives up everything: waits are cancelled, the signals of held locks fire, their sessions are closed. Resolves, within some
   * seconds, also when the service cannot be reached; what it could not be told ends with the TTL.
   */
  close(): Promise<void> {
    this.#closed ??= whileAlive(this.#around.runtime, () => this.#close());
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#closing.abort(new ClientClosedError());
    await this.#pool.closeAll();
    await this.#around.tasks.settled();
    this.#around.transport.close();
  }

  #throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw new ClientClosedError();
  }

  async #told<T>(call: () => Promise<T>): Promise<T> {
    this.#throwIfClosed();
    try {
      return await call();
    } catch (error) {
      throw asUnavailable(error);
    }
  }
}

/** @throws LeaseholdError INVALID */
function optionsAndWork<Held, T>(given: OptionsAndWork<Held, T>) {
  const [options = {}, work] = given.length === 2 ? given : [{}, given[0]];
  checkLockOptions(options);
  checkWork(work);
  return { options, work };
}

/**
 * A client of the sidecar or of `leasehold dev`. Nothing is opened before the first lock.
 * @throws LeaseholdError INVALID for a URL that is none, and for options that are not there
 */
export function createClient(options: ClientOptions = {}): Client {
  checkClientOptions(options);
  return new Client(options, systemRuntime, new HttpTransport(urlFrom(options), systemRuntime));
}
