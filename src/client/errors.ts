/** What the library throws: the errors of the API's table, two kinds of them that programs catch by name, and how answers become errors. */
import { ERRORS, type ErrorCode, type ErrorDetails, LeaseholdError } from '../api/errors.ts';
import { type Answer, NoAnswerError } from './http.ts';

export { type ErrorCode, type ErrorDetails, LeaseholdError } from '../api/errors.ts';

/** Somebody else holds the lock: at once (HELD), or still after `waitMs` (WAIT_TIMEOUT). */
export class HeldError extends LeaseholdError {
  constructor(code: 'HELD' | 'WAIT_TIMEOUT', message: string, details: ErrorDetails) {
    super(code, message, details);
    this.name = 'HeldError';
  }
}

/**
 * How a lock was lost.
 * - `revoking`: it is being taken away (break, max hold, ...); the holder has less than one TTL to give it up;
 * - `lost`: the service says it is over;
 * - `session`: the session is over, with everything it held;
 * - `deadline`: the local deadline passed without an acknowledged keepalive;
 * - `disconnected`: the event stream broke, and within a second nobody said whether the session goes on;
 * - `closed`: this client was closed.
 */
export type LossCause = 'revoking' | 'lost' | 'session' | 'deadline' | 'disconnected' | 'closed';

export interface Loss {
  readonly cause: LossCause;
  readonly reason: string;
}

/** A lock ended before its holder gave it up. Also the `reason` of the lock's AbortSignal. */
export class LockLostError extends LeaseholdError {
  /** Full name of the lock. */
  readonly lock: string;
  readonly token: number;
  readonly how: LossCause;

  constructor(lock: string, token: number, { cause, reason }: Loss) {
    super('NOT_HELD', `lost ${lock} (token ${token}): ${reason}`, { name: lock, token, reason });
    this.name = 'LockLostError';
    this.lock = lock;
    this.token = token;
    this.how = cause;
  }
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code);
}

/** The error of an answer that is no success; what is not in our words (a proxy's page) becomes UNAVAILABLE or INVALID. */
export function errorOf({ status, body }: Answer): LeaseholdError {
  const { code: told, message, ...details } = body;
  const code = isErrorCode(told) ? told : status >= 500 ? 'UNAVAILABLE' : 'INVALID';
  const text = typeof message === 'string' ? message : `unexpected answer with status ${status}`;
  return code === 'HELD' || code === 'WAIT_TIMEOUT'
    ? new HeldError(code, heldText(text, details), details)
    : new LeaseholdError(code, text, details);
}

/** A program's log often has the message alone: it must say which lock, and who has it. */
function heldText(text: string, { name, holder }: ErrorDetails): string {
  const about = typeof name === 'string' ? `${name}: ${text}` : text;
  if (typeof holder !== 'object' || holder === null || !('owner' in holder)) return about;
  return typeof holder.owner === 'string' && holder.owner !== '' ? `${about} (by ${holder.owner})` : about;
}

/** As what a caller of the library sees a missing answer; any other error stays what it is. */
export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof NoAnswerError)) return error;
  return new LeaseholdError('UNAVAILABLE', error.message, {}, { cause: error });
}

/** What is asked of a client that was closed, or was closed meanwhile. */
export class ClientClosedError extends LeaseholdError {
  constructor(message = 'the client is closed', options?: ErrorOptions) {
    super('CANCELLED', message, {}, options);
  }

  /** Never: another call on the same client fares no better, and a loop that goes by this alone must end. */
  override get retryable(): boolean {
    return false;
  }
}

export function cancelled(reason: unknown): LeaseholdError {
  if (reason instanceof ClientClosedError) {
    return new ClientClosedError(`${reason.message}; nothing is held`, { cause: reason });
  }
  return new LeaseholdError('CANCELLED', 'the caller gave up; nothing is held', {}, { cause: reason });
}

export function invalid(field: string, reason: string): LeaseholdError {
  return new LeaseholdError('INVALID', `${field}: ${reason}`, { field });
}
