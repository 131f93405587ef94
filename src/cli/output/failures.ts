/** The errors of the parts that only some commands use (logs, histories, the admin socket) as exit codes. */
import { type ServiceError, status } from '@grpc/grpc-js';
import type { ErrorCode, ErrorDetails } from '../../api/errors.ts';
import { HistoryFormatError } from '../../history/read.ts';
import { LogFormatError, LogUnavailableError } from '../../log/errors.ts';
import { TrimmedError } from '../../log/port.ts';
import { isServiceError } from '../../server/grpc/peer-calls.ts';
import { CODE_TRAILER } from '../../server/grpc/status.ts';
import { EXIT_OF_CODE, EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import type { Failure, FailureCode } from '../errors.ts';

export function failureOfParts(error: Error): Failure {
  if (error instanceof TrimmedError) {
    const from = error.below + 1;
    return usage(`entries up to ${error.below} were trimmed; read from ${from} on`, {
      field: 'from',
      limit: from,
    });
  }
  if (isServiceError(error)) return failureOfCall(error);
  const { message } = error;
  // Not damage: a disk that fails now, or a folder that this user may not read.
  if (error instanceof LogUnavailableError) {
    return { code: 'UNAVAILABLE', message, exitCode: EXIT_UNAVAILABLE };
  }
  const isUsage =
    error instanceof LogFormatError || error instanceof HistoryFormatError || isFileError(error);
  return isUsage ? usage(message) : { code: 'FAILED', message, exitCode: EXIT_WRONG };
}

function usage(message: string, details: ErrorDetails = {}): Failure {
  return { code: 'INVALID', message, exitCode: EXIT_USAGE, details };
}

/** By its code of the error table, if it has one; else by gRPC's. */
function failureOfCall({ code: grpcCode, details: message, metadata }: ServiceError): Failure {
  const [told] = metadata?.get(CODE_TRAILER) ?? [];
  if (typeof told === 'string' && Object.hasOwn(EXIT_OF_CODE, told)) {
    const code = told as ErrorCode;
    return { code, message, exitCode: EXIT_OF_CODE[code] };
  }
  const code = codeOfCall(grpcCode);
  const exitCode = code === 'FAILED' ? EXIT_WRONG : code === 'REFUSED' ? EXIT_USAGE : EXIT_OF_CODE[code];
  return { code, message, exitCode };
}

function codeOfCall(code: status): FailureCode {
  switch (code) {
    case status.INVALID_ARGUMENT:
    case status.OUT_OF_RANGE:
      return 'INVALID';
    case status.NOT_FOUND:
      return 'NOT_FOUND';
    case status.PERMISSION_DENIED:
      return 'FORBIDDEN';
    case status.UNAUTHENTICATED:
      return 'UNAUTHENTICATED';
    case status.FAILED_PRECONDITION:
      return 'REFUSED';
    case status.ABORTED:
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.RESOURCE_EXHAUSTED:
      return 'UNAVAILABLE';
    default:
      return 'FAILED';
  }
}

/** A file that is not there or may not be read. */
function isFileError(error: Error): boolean {
  return 'path' in error && 'syscall' in error;
}
