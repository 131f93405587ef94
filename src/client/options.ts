/** What callers may choose, and what is checked before anything is sent. All durations are milliseconds. */
import type { Mode } from '../api/config.ts';
import { API_URL_DEFAULT } from '../api/limits.ts';
import { splitAlias } from '../api/names.ts';
import type { Backoff } from './backoff.ts';
import { invalid } from './errors.ts';
import { urlOfEnvironment } from './runtime.ts';

export interface ClientOptions {
  /** Where the API is; by default LEASEHOLD_URL as it stands when the client is made, else http://127.0.0.1:7070. */
  readonly url?: string;
  /** What this program calls itself, shown to people; by default host name and process number. At most 256 bytes. */
  readonly client?: string;
  /** How long a lock outlives its holder's last sign of life, 5,000 to 60,000; by default the namespace's. */
  readonly ttlMs?: number;
  /**
   * What proves that this program lives. `both` (default): its calls and its open event stream; either missing ends the
   * session. `app`: its calls alone, for connections that do not last (port-forwards, proxies).
   */
  readonly keepalive?: 'both' | 'app';
}

export interface LockOptions {
  /** How long to wait in the queue; 0 (default) = not at all. Covers outages and a restart of the sidecar too. At most 24 h. */
  readonly waitMs?: number;
  readonly mode?: Mode;
  /** Of a semaphore; default 1. */
  readonly permits?: number;
  /** Join a hold of this client that was taken re-entrantly under the same `owner`, instead of queueing behind it. */
  readonly reentrant?: boolean;
  /** Who holds it, shown to people; by default the client. At most 256 bytes. */
  readonly owner?: string;
  /** What for, shown to people. At most 1,024 bytes. */
  readonly purpose?: string;
  /** Gives up while it is waited for: the request is cancelled at the service, and CANCELLED is thrown. */
  readonly signal?: AbortSignal;
  /** The lock is taken away after that, 1,000 to 2,592,000,000; by default the namespace's maxHold. */
  readonly maxHoldMs?: number;
}

export interface TryOptions extends Omit<LockOptions, 'waitMs'> {
  /** By default one try. Between tries a uniformly random part of `baseMs * 2^n`, at most `capMs`, on top of Retry-After. */
  readonly retry?: { readonly tries: number } & Partial<Backoff>;
}

/** @throws LeaseholdError INVALID */
export function urlFrom({ url = urlOfEnvironment() ?? API_URL_DEFAULT }: ClientOptions): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw invalid('url', `${JSON.stringify(url)} is not an http or https URL (option url, or LEASEHOLD_URL)`);
  }
  return parsed;
}

/** Every option there is, by the compiler's word. */
const CLIENT_OPTIONS: Record<keyof ClientOptions, true> = {
  url: true,
  client: true,
  ttlMs: true,
  keepalive: true,
};
const TRY_OPTIONS: Record<keyof TryOptions, true> = {
  mode: true,
  permits: true,
  reentrant: true,
  owner: true,
  purpose: true,
  signal: true,
  maxHoldMs: true,
  retry: true,
};
const { retry: _tryLockOnly, ...TRY_AND_LOCK_OPTIONS } = TRY_OPTIONS;
const LOCK_OPTIONS: Record<keyof LockOptions, true> = { waitMs: true, ...TRY_AND_LOCK_OPTIONS };
const RETRY_OPTIONS: Record<'tries' | keyof Backoff, true> = { tries: true, baseMs: true, capMs: true };
const KEEPALIVES: readonly unknown[] = ['both', 'app', undefined];

/** A misspelt option would be a default that nobody chose. @throws LeaseholdError INVALID naming it, and what there is */
function checkNames(field: string, given: unknown, known: Readonly<Record<string, true>>): void {
  const names = Object.keys(known).join(', ');
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(field, `${shown(given)} is not an object with options (there are ${names})`);
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) throw invalid(unknown, `is not an option here; there are ${names}`);
}

/** @throws LeaseholdError INVALID */
export function checkClientOptions(options: ClientOptions): void {
  checkNames('options', options, CLIENT_OPTIONS);
  const { keepalive } = options;
  if (!KEEPALIVES.includes(keepalive)) throw invalid('keepalive', `${shown(keepalive)} is not both or app`);
}

/** @throws LeaseholdError INVALID */
export function checkLockOptions(options: LockOptions): void {
  checkNames('options', options, LOCK_OPTIONS);
  checkSignal(options.signal);
}

/** @throws LeaseholdError INVALID */
export function checkTryOptions(options: TryOptions): void {
  checkNames('options', options, TRY_OPTIONS);
  checkSignal(options.signal);
  if (options.retry !== undefined) checkNames('retry', options.retry, RETRY_OPTIONS);
}

function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalid('signal', `${shown(signal)} is not an AbortSignal`);
  }
}

/** @throws LeaseholdError INVALID */
export function checkWork(work: unknown): void {
  if (typeof work !== 'function') throw invalid('work', `${shown(work)} is not a function`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** The alias of a full name. @throws LeaseholdError INVALID */
export function aliasOf(name: string): string {
  if (typeof name !== 'string') throw invalid('name', `${shown(name)} is not a string, as 'jobs/nightly'`);
  const parts = splitAlias(name);
  if (parts === null) throw invalid('name', `${JSON.stringify(name)} is not of the form <alias>/<name>`);
  // A lone surrogate has no UTF-8 and cannot be sent.
  if (!name.isWellFormed()) throw invalid('name', 'is not well-formed Unicode');
  return parts.alias;
}

/** @throws LeaseholdError INVALID; JSON would turn Infinity and NaN into null, and the service could not tell why */
export function durationOf(field: string, durationMs: number): number {
  if (Number.isFinite(durationMs) && durationMs >= 0) return Math.ceil(durationMs);
  throw invalid(field, `${durationMs} is not a number of milliseconds from 0 on`);
}
