/**
 * A group's refusals in the words of the HTTP API.
 */
import type { Ending, HolderView, RefusalCode } from '../api/entry.ts';
import { type ErrorDetails, LeaseholdError } from '../api/errors.ts';
import type { Refusal } from './session-owner.ts';

/** Why a waiter was refused, when only the code is known. */
export const REFUSAL_TEXTS: Readonly<Record<RefusalCode, string>> = {
  INVALID: 'the namespace does not allow this request any more',
  FORBIDDEN: 'this identity is not a consumer of the namespace any more',
  QUOTA_EXCEEDED: 'the namespace holds as many locks as it may',
  NAMESPACE_NOT_FOUND: 'the namespace has been removed',
  HELD: 'the lock is held',
  WAIT_TIMEOUT: 'the lock did not become free in time',
  QUARANTINED: 'the name is out of service',
  SESSION_EXPIRED: 'the session has ended',
  QUEUE_FULL: 'the queue is full',
};

export function waitedFor(waitMs: number): LeaseholdError {
  return new LeaseholdError('WAIT_TIMEOUT', `not granted within ${waitMs} ms`);
}

/** An acquire that ended without its client hearing of it. */
export function endingError(by: Ending): LeaseholdError {
  if (by === 'RELEASED' || by === 'REVOKED') {
    return new LeaseholdError('CANCELLED', 'the lock was granted, and taken back before this could be told');
  }
  return new LeaseholdError(by, REFUSAL_TEXTS[by]);
}

export function errorOf(refusal: Refusal): LeaseholdError {
  const { type: _type, code, message, ...details } = refusal;
  // An attach under another number came in between: nothing was done, and the same call may be tried again.
  if (code === 'SUPERSEDED') return new LeaseholdError('UNAVAILABLE', message);
  return new LeaseholdError(code, message, inApiWords(message, details));
}

/**
 * The name belongs to another group of its namespace. Whoever has several groups asks another one (sharded-service.ts); for an application it
 * is an outage.
 */
export function wrongGroup(mapVersion: number): LeaseholdError {
  const message = 'this lock group does not serve the name any more';
  return new LeaseholdError('UNAVAILABLE', message, { map_version: mapVersion });
}

export function isWrongGroup(error: unknown): boolean {
  return error instanceof LeaseholdError && error.details.map_version !== undefined;
}

interface Details {
  readonly field?: string;
  readonly limit?: number;
  readonly retryAfterMs?: number;
  readonly waiters?: number;
  readonly lockDelayMs?: number;
  readonly holder?: HolderView | null;
}

/** What a field of a refusal is held against, where that is no number. */
const LIMIT_WORDS: Readonly<Record<string, string>> = {
  mode: 'as spec.modes and spec.semaphores of the LockNamespace allow for this name',
};

/** Details are named, and counted in the units, as the HTTP API does it: `ttl_s` in seconds, all else in ms. */
function inApiWords(message: string, details: Details): ErrorDetails {
  const { field, limit, retryAfterMs, waiters, lockDelayMs, holder } = details;
  const words = field === undefined ? undefined : LIMIT_WORDS[field];
  const told = field === 'ttl_s' && limit !== undefined ? limit / 1000 : (limit ?? words);
  const problem = { field, ...(told === undefined ? {} : { limit: told }), reason: message };
  return {
    ...(field === undefined ? {} : { ...problem, problems: [problem] }),
    ...(field === undefined && told !== undefined ? { limit: told } : {}),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
    ...(waiters === undefined ? {} : { queue_position: waiters + 1 }),
    ...(lockDelayMs === undefined ? {} : { lock_delay_ms: lockDelayMs }),
    ...(holder === undefined ? {} : { holder }),
  };
}
