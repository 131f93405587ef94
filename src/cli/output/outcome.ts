/**
 * How commands end: what is printed, and with which exit code.
 */
import { once } from 'node:events';
import { LeaseholdError } from '../../api/errors.ts';
import { EXIT_OF_CODE, EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { type Failure, UnavailableError, UsageError } from '../errors.ts';

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
    const { message, exitCode } = await failureOf(error);
    console.error(message);
    process.exitCode = exitCode;
  }
}

/** Prints one line, at the pace of whoever reads it. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
}

async function failureOf(error: unknown): Promise<Failure> {
  if (!(error instanceof Error)) return { message: String(error), exitCode: EXIT_WRONG };
  const { message } = error;
  if (error instanceof UsageError) return { message, exitCode: EXIT_USAGE };
  if (error instanceof UnavailableError) return { message, exitCode: EXIT_UNAVAILABLE };
  if (error instanceof LeaseholdError) {
    return { message: `${error.code}: ${message}`, exitCode: EXIT_OF_CODE[error.code] };
  }
  // Knowing the errors of logs and of gRPC means loading both: only those who met one wait for that.
  const { failureOfParts } = await import('./failures.ts');
  return failureOfParts(error);
}
