/**
 * How these commands end: what is printed, and with which exit code.
 */
import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import { InvalidArgumentError, Option } from 'commander';
import { FormatError } from '../../core/index.ts';
import { HistoryFormatError } from '../../history/read.ts';
import { LogFormatError } from '../../log/errors.ts';
import { CorruptLogError, TrimmedError } from '../../log/port.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';

/** Something that the caller can mend by calling differently. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** The lock server that was asked is not there. */
export class UnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnavailableError';
  }
}

/** Runs a command's action: its errors become one line on stderr and an exit code; `false` from it means "wrong". */
export async function conclude(work: () => Promise<boolean>): Promise<void> {
  // The reader of a pipe may have seen enough (`| head`): that is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  try {
    process.exitCode = (await work()) ? 0 : EXIT_WRONG;
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = exitCodeOf(error);
  }
}

/** Prints one line, at the pace of whoever reads it. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
}

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'table, or json for programs')
    .choices(['table', 'json'])
    .default('table');
}

/** Parses an option that is an index of the log. */
export function parseIndex(value: string): number {
  const index = Number(value);
  if (Number.isSafeInteger(index) && index >= 1) return index;
  throw new InvalidArgumentError('an index is a whole number from 1 on');
}

function messageOf(error: unknown): string {
  if (error instanceof TrimmedError) {
    return `entries up to ${error.below} were trimmed; read from ${error.below + 1} on`;
  }
  if (isServiceError(error)) return error.details;
  return error instanceof Error ? error.message : String(error);
}

function exitCodeOf(error: unknown): number {
  if (isServiceError(error)) return exitCodeOfCall(error.code);
  if (error instanceof UnavailableError) return EXIT_UNAVAILABLE;
  if (error instanceof CorruptLogError || error instanceof FormatError) return EXIT_WRONG;
  const isUsage =
    error instanceof UsageError ||
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

function isServiceError(error: unknown): error is Error & { code: status; details: string } {
  return error instanceof Error && 'details' in error && 'code' in error && typeof error.code === 'number';
}

/** A file that is not there or may not be read. */
function isFileError(error: unknown): boolean {
  return error instanceof Error && 'path' in error && 'syscall' in error;
}
