/** Work under one lock or several: the locks are given back however it ends, and a loss is never taken for success. */
import { invalid, LeaseholdError } from './errors.ts';
import { type Holding, holdingOf, type Lock } from './lock.ts';
import { durationOf, type LockOptions } from './options.ts';
import { type ClientRuntime, onAbort, whileAlive } from './runtime.ts';

/** What the work under several locks is given. */
export interface HoldingAll {
  /** The fencing token of each lock, by full name. */
  readonly tokens: ReadonlyMap<string, number>;
  /** Fires when the first of them is lost; its `reason` is a `LockLostError`. */
  readonly signal: AbortSignal;
  /** Whether all of them may be believed in right now. */
  held(): boolean;
  /** How long all of them may be believed in without another keepalive, ms. */
  remainingMs(): number;
}

type Acquire = (name: string, options: LockOptions) => Promise<Lock>;

/** @throws what `work` throws; else LockLostError if a lock was lost before the work had ended */
async function runUnder<T>(
  runtime: ClientRuntime,
  locks: readonly Lock[],
  work: () => Promise<T> | T,
): Promise<T> {
  let result: T;
  try {
    result = await whileAlive(runtime, async () => await work());
  } catch (error) {
    await releaseAll(locks);
    throw error;
  }
  const [problem] = (await releaseAll(locks)).filter(isLoss);
  if (problem !== undefined) throw problem;
  return result;
}

/** In reverse order; gives what went wrong. */
async function releaseAll(locks: readonly Lock[]): Promise<unknown[]> {
  const problems: unknown[] = [];
  for (const lock of locks.toReversed()) {
    await lock.release().catch((error: unknown) => problems.push(error));
  }
  return problems;
}

/** A release that is not confirmed yet changes nothing for the work that was done: it goes on, and ends with the lease at last. */
function isLoss(problem: unknown): boolean {
  return !(problem instanceof LeaseholdError && problem.code === 'UNAVAILABLE');
}

export async function holdOne<T>(
  runtime: ClientRuntime,
  lock: Lock,
  work: (holding: Holding) => Promise<T> | T,
): Promise<T> {
  return await runUnder(runtime, [lock], () => work(holdingOf(lock)));
}

/**
 * Byte order of the names, the same for everybody: whoever takes several locks in it cannot wait in a circle.
 * @throws LeaseholdError INVALID
 */
function inOrder(names: readonly string[]): string[] {
  if (names.length === 0) throw invalid('names', 'names no lock');
  const sorted = names.toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
  const twice = sorted.find((name, index) => name === sorted[index + 1]);
  if (twice !== undefined) throw invalid('names', `${JSON.stringify(twice)} stands there twice`);
  return sorted;
}

export async function holdAll<T>(
  runtime: ClientRuntime,
  acquire: Acquire,
  request: { readonly names: readonly string[]; readonly options: LockOptions },
  work: (holding: HoldingAll) => Promise<T> | T,
): Promise<T> {
  const names = inOrder(request.names);
  const { waitMs = 0, signal } = request.options;
  const waitUntilMs = runtime.clock.monotonicMs() + durationOf('waitMs', waitMs);
  const locks: Lock[] = [];
  const lost = new AbortController();
  const giveUp = new AbortController();
  if (signal?.aborted === true) giveUp.abort(signal.reason);
  // Not by AbortSignal.any: what it makes leaves a trace in the caller's signal, which may live as long as the process.
  const forget = onAbort(signal === undefined ? [] : [signal], () => giveUp.abort(signal?.reason));
  try {
    for (const name of names) {
      const leftMs = Math.max(0, waitUntilMs - runtime.clock.monotonicMs());
      const lock = await acquire(name, { ...request.options, waitMs: leftMs, signal: giveUp.signal });
      locks.push(lock);
      const lose = (): void => {
        lost.abort(lock.signal.reason);
        giveUp.abort(lock.signal.reason);
      };
      lock.signal.addEventListener('abort', lose, { once: true });
      if (lock.signal.aborted) lose();
    }
  } catch (error) {
    await releaseAll(locks);
    throw lost.signal.aborted ? lost.signal.reason : error;
  } finally {
    forget();
  }
  const holding: HoldingAll = {
    tokens: new Map(locks.map(({ name, token }) => [name, token])),
    signal: lost.signal,
    held: () => locks.every((lock) => lock.held()),
    remainingMs: () => Math.min(...locks.map((lock) => lock.remainingMs())),
  };
  return await runUnder(runtime, locks, () => work(holding));
}
