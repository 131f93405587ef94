/**
 * A group's refusals in the words of the HTTP API.
 */
import type { RefusalCode } from '../api/entry.ts';
import { type ErrorDetails, LeaseholdError } from '../api/errors.ts';
import type { Refusal } from './group-session.ts';

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

export function errorOf(refusal: Refusal): LeaseholdError {
  const { type: _type, code, message, ...details } = refusal;
  // An attach under another number came in between: nothing was done, and the same call may be tried again.
  return new LeaseholdError(code === 'SUPERSEDED' ? 'UNAVAILABLE' : code, message, inApiWords(details));
}

/** Details are named as the HTTP API names things. */
function inApiWords({
  retryAfterMs,
  ...details
}: {
  readonly retryAfterMs?: number;
  readonly [detail: string]: unknown;
}): ErrorDetails {
  return retryAfterMs === undefined ? details : { ...details, retry_after_ms: retryAfterMs };
}
