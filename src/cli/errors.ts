/** What a command may fail with apart from a refusal of the service (`LeaseholdError`); each ends it with its own exit code. */

import type { ErrorCode, ErrorDetails } from '../api/errors.ts';

/**
 * What scripts decide by: a code of the error table, or, where a command has met something that is no answer to a request, `REFUSED` (the
 * state of what was asked does not allow it) or `FAILED` (what was looked at is wrong, or this program is).
 */
export type FailureCode = ErrorCode | 'REFUSED' | 'FAILED';

/** How a command failed. */
export interface Failure {
  readonly message: string;
  /** What people are told; left out: the message. */
  readonly shown?: string;
  readonly exitCode: number;
  /** For programs: printed as `{code, message, ...details}` where JSON was asked for. */
  readonly code: FailureCode;
  readonly details?: ErrorDetails;
}

/** Something that the caller can mend by calling differently. `details`: what a program may want to know besides. */
export class UsageError extends Error {
  readonly details: ErrorDetails;

  constructor(message: string, options?: ErrorOptions & { readonly details?: ErrorDetails }) {
    super(message, options);
    this.name = 'UsageError';
    this.details = options?.details ?? {};
  }
}

/** The state of what was asked does not allow it, whatever the words of the call. */
export class RefusedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RefusedError';
  }
}

/** The lock server that was asked is not there, or does not answer. */
export class UnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnavailableError';
  }
}
