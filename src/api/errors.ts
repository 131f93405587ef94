/**
 * The one table of errors: code, HTTP status, whether the same request may simply be sent again, and what it means.
 * The HTTP API, the gRPC API, the client library and docs/ERRORS.md are all made from it.
 */

export interface ErrorRow {
  readonly status: number;
  /** True when repeating the identical request later can succeed. */
  readonly retryable: boolean;
  readonly text: string;
}

export const ERRORS = {
  INVALID: {
    status: 400,
    retryable: false,
    text: 'The request is malformed or breaks a limit; `field`, `limit` and `message` say which and how to mend it.',
  },
  UNAUTHENTICATED: {
    status: 401,
    retryable: false,
    text: 'The lock service does not take the identity that was presented: `message` says why, and what to look at.',
  },
  FORBIDDEN: {
    status: 403,
    retryable: false,
    text: 'This identity is not a consumer of the namespace, or the call came from a browser or under a foreign host name.',
  },
  NOT_APPROVED: {
    status: 403,
    retryable: false,
    text: 'The namespace has no approved safety declaration in force.',
  },
  QUOTA_EXCEEDED: {
    status: 403,
    retryable: true,
    text: 'A limit of the namespace or of this client is reached; release something or raise the limit.',
  },
  NAMESPACE_NOT_FOUND: {
    status: 404,
    retryable: false,
    text: 'No LockNamespace is served under this alias.',
  },
  NOT_FOUND: { status: 404, retryable: false, text: 'No such route.' },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false, text: 'The route exists, but not for this method.' },
  HELD: {
    status: 409,
    retryable: true,
    text: 'Somebody else holds the lock (or its lock-delay runs) and the request did not ask to wait.',
  },
  WAIT_TIMEOUT: { status: 409, retryable: true, text: 'The lock did not become free within `wait_ms`.' },
  STALE_TOKEN: {
    status: 409,
    retryable: false,
    text: 'The lock is now held under a higher token; the grant named here is over.',
  },
  CANCELLED: {
    status: 409,
    retryable: true,
    text: 'The acquire was cancelled before it was granted; nothing is held.',
  },
  QUARANTINED: {
    status: 409,
    retryable: false,
    text: 'The name was taken out of service after a fault; an administrator puts it back (`Unquarantine` on the admin socket).',
  },
  SESSION_EXPIRED: {
    status: 410,
    retryable: false,
    text: 'The session is unknown or has ended, and with it all its grants and waits. Open a new one.',
  },
  NOT_HELD: { status: 410, retryable: false, text: 'This grant is not held (any more).' },
  BODY_TOO_LARGE: { status: 413, retryable: false, text: 'The request body is larger than 64 KiB.' },
  QUEUE_FULL: { status: 429, retryable: true, text: 'The queue of this name (or of the namespace) is full.' },
  RATE_LIMITED: {
    status: 429,
    retryable: true,
    text: 'More operations per second than the limit allows; see Retry-After.',
  },
  UNAVAILABLE: {
    status: 503,
    retryable: true,
    text: 'The service cannot commit right now; nothing was granted and nothing expires meanwhile.',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Details that may accompany a code; every name is stable API. */
export interface ErrorDetails {
  readonly field?: string;
  readonly limit?: number | string;
  readonly [detail: string]: unknown;
}

/** An error of the table on its way to a caller, on both sides of the HTTP API. Decide by `code`; messages are for people. */
export class LeaseholdError extends Error {
  /** A code of docs/ERRORS.md. */
  readonly code: ErrorCode;
  /** What the refusal says besides code and message, under the names of docs/API.md (`holder`, `retry_after_ms`, ...). */
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LeaseholdError';
    this.code = code;
    this.details = details;
  }

  /** The same error, saying more; what it said already wins. */
  with(details: ErrorDetails): LeaseholdError {
    return new LeaseholdError(this.code, this.message, { ...details, ...this.details });
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** Whether the identical request may succeed later. */
  get retryable(): boolean {
    return ERRORS[this.code].retryable;
  }

  /** What the service asks to wait before the next try, ms; 0 = it said nothing. */
  get retryAfterMs(): number {
    const { retry_after_ms: told } = this.details;
    return typeof told === 'number' && told > 0 ? told : 0;
  }

  /** The JSON body of an error answer: `{code, message, ...details}`. */
  toBody(): Record<string, unknown> {
    return { ...this.details, code: this.code, message: this.message };
  }
}
