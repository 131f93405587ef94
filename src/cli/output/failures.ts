/** The errors of the parts that only some commands use (logs, histories, the admin socket) as exit codes. */
import { type ServiceError, status } from '@grpc/grpc-js';
import type { ErrorCode } from '../../api/errors.ts';
import { FormatError } from '../../core/index.ts';
import { HistoryFormatError } from '../../history/read.ts';
import { LogFormatError } from '../../log/errors.ts';
import { CorruptLogError, TrimmedError } from '../../log/port.ts';
import { isServiceError } from '../../server/grpc/peer-calls.ts';
import { CODE_TRAILER } from '../../server/grpc/status.ts';
import { EXIT_OF_CODE, EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import type { Failure } from '../errors.ts';

export function failureOfParts(error: Error): Failure {
  return { message: messageOf(error), exitCode: exitCodeOf(error) };
}

function messageOf(error: Error): string {
  if (error instanceof TrimmedError) {
    return `entries up to ${error.below} were trimmed; read from ${error.below + 1} on`;
  }
  return isServiceError(error) ? error.details : error.message;
}

function exitCodeOf(error: Error): number {
  if (isServiceError(error)) return exitCodeOfRefusal(error) ?? exitCodeOfCall(error.code);
  if (error instanceof CorruptLogError || error instanceof FormatError) return EXIT_WRONG;
  const isUsage =
    error instanceof TrimmedError ||
    error instanceof LogFormatError ||
    error instanceof HistoryFormatError ||
    isFileError(error);
  return isUsage ? EXIT_USAGE : EXIT_WRONG;
}

/** By its code of the error table, if it has one. */
function exitCodeOfRefusal({ metadata }: ServiceError): number | null {
  const [code] = metadata?.get(CODE_TRAILER) ?? [];
  const isKnown = typeof code === 'string' && Object.hasOwn(EXIT_OF_CODE, code);
  return isKnown ? EXIT_OF_CODE[code as ErrorCode] : null;
}

function exitCodeOfCall(code: status): number {
  switch (code) {
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.OUT_OF_RANGE:
    case status.FAILED_PRECONDITION:
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return EXIT_USAGE;
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.RESOURCE_EXHAUSTED:
      return EXIT_UNAVAILABLE;
    default:
      return EXIT_WRONG;
  }
}

/** A file that is not there or may not be read. */
function isFileError(error: Error): boolean {
  return 'path' in error && 'syscall' in error;
}
