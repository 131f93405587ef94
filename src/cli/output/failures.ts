/** The errors of the parts that only some commands use (logs, histories, the admin socket) as exit codes. */
import { status } from '@grpc/grpc-js';
import { FormatError } from '../../core/index.ts';
import { HistoryFormatError } from '../../history/read.ts';
import { LogFormatError } from '../../log/errors.ts';
import { CorruptLogError, TrimmedError } from '../../log/port.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
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
  if (isServiceError(error)) return exitCodeOfCall(error.code);
  if (error instanceof CorruptLogError || error instanceof FormatError) return EXIT_WRONG;
  const isUsage =
    error instanceof TrimmedError ||
    error instanceof LogFormatError ||
    error instanceof HistoryFormatError ||
    isFileError(error);
  return isUsage ? EXIT_USAGE : EXIT_WRONG;
}

function exitCodeOfCall(code: status): number {
  switch (code) {
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.OUT_OF_RANGE:
    case status.FAILED_PRECONDITION:
      return EXIT_USAGE;
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.RESOURCE_EXHAUSTED:
      return EXIT_UNAVAILABLE;
    default:
      return EXIT_WRONG;
  }
}

function isServiceError(error: Error): error is Error & { code: status; details: string } {
  return 'details' in error && 'code' in error && typeof error.code === 'number';
}

/** A file that is not there or may not be read. */
function isFileError(error: Error): boolean {
  return 'path' in error && 'syscall' in error;
}
