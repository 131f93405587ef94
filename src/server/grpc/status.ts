/**
 * Errors as gRPC tells them: the status that belongs to each code of the error table, and the code itself in a trailer, so that
 * programs need not read texts.
 */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { type ErrorCode, LeaseholdError } from '../../api/errors.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import { CorruptLogError, TrimmedError } from '../../log/port.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import { AuditRunningError } from '../member/audit-running.ts';
import { isServiceError } from './peer-calls.ts';
import { MessageError } from './proto.ts';

/** Trailer with the code of the error table. */
export const CODE_TRAILER = 'leasehold-code';

const STATUS: Readonly<Record<ErrorCode, status>> = {
  INVALID: status.INVALID_ARGUMENT,
  UNAUTHENTICATED: status.UNAUTHENTICATED,
  FORBIDDEN: status.PERMISSION_DENIED,
  NOT_APPROVED: status.FAILED_PRECONDITION,
  QUOTA_EXCEEDED: status.RESOURCE_EXHAUSTED,
  NAMESPACE_NOT_FOUND: status.NOT_FOUND,
  NOT_FOUND: status.NOT_FOUND,
  METHOD_NOT_ALLOWED: status.UNIMPLEMENTED,
  HELD: status.FAILED_PRECONDITION,
  WAIT_TIMEOUT: status.FAILED_PRECONDITION,
  STALE_TOKEN: status.FAILED_PRECONDITION,
  CANCELLED: status.CANCELLED,
  QUARANTINED: status.FAILED_PRECONDITION,
  SESSION_EXPIRED: status.FAILED_PRECONDITION,
  NOT_HELD: status.FAILED_PRECONDITION,
  BODY_TOO_LARGE: status.RESOURCE_EXHAUSTED,
  QUEUE_FULL: status.RESOURCE_EXHAUSTED,
  RATE_LIMITED: status.RESOURCE_EXHAUSTED,
  UNAVAILABLE: status.UNAVAILABLE,
};

/** An error that gRPC has a word for and the error table has not. */
export class CallError extends Error {
  readonly status: status;

  constructor(code: status, message: string) {
    super(message);
    this.name = 'CallError';
    this.status = code;
  }
}

/** What a client of gRPC is told of `error`. */
export function toServiceError(error: unknown): ServiceError {
  // Another replica's answer is this one's.
  if (isServiceError(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const metadata = new Metadata();
  if (error instanceof LeaseholdError) metadata.set(CODE_TRAILER, error.code);
  return Object.assign(new Error(message), { code: statusOf(error), details: message, metadata });
}

function statusOf(error: unknown): status {
  if (error instanceof LeaseholdError) return STATUS[error.code];
  if (error instanceof CallError) return error.status;
  if (error instanceof NotLeadingError) return status.ABORTED;
  if (error instanceof AuditRunningError) return status.FAILED_PRECONDITION;
  if (error instanceof LogUnavailableError) return status.UNAVAILABLE;
  if (error instanceof TrimmedError) return status.OUT_OF_RANGE;
  if (error instanceof CorruptLogError) return status.DATA_LOSS;
  if (error instanceof MessageError) return status.INVALID_ARGUMENT;
  return status.INTERNAL;
}
