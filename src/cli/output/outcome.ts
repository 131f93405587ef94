/**
 * How commands end: what is printed, and with which exit code.
 */
import { once } from 'node:events';
import { LeaseholdError } from '../../api/errors.ts';
import { EXIT_OF_CODE, EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { type Failure, RefusedError, UnavailableError, UsageError } from '../errors.ts';
import type { OutputFormat } from '../options.ts';
import { refusalText } from './held.ts';

/**
 * Runs a command's action: its errors become a line on stderr and an exit code; `false` from it means "wrong". With `-o json` they are also
 * one line on stdout, `{code, message, ...details}`: whoever reads JSON from there reads how it failed, too.
 */
export async function conclude(
  work: () => Promise<boolean>,
  output: OutputFormat | 'text' = 'table',
): Promise<void> {
  // The reader of a pipe may have seen enough (`| head`): that is no error, nor does it make a good end of a bad one.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });
  try {
    process.exitCode = (await work()) ? 0 : EXIT_WRONG;
  } catch (error) {
    const failure = await failureOf(error);
    process.exitCode = failure.exitCode;
    console.error(failure.shown ?? failure.message);
    if (output === 'json') await print(failureJson(failure));
  }
}

/** To be told before it is printed: whoever reads may stop before the end. */
export function verdict(isRight: boolean): boolean {
  process.exitCode = isRight ? 0 : EXIT_WRONG;
  return isRight;
}

/** Prints one line, at the pace of whoever reads it. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
}

/** One line. */
export function failureJson({ code, message, details }: Failure): string {
  return JSON.stringify({ ...details, code, message });
}

export async function failureOf(error: unknown): Promise<Failure> {
  if (!(error instanceof Error)) return { code: 'FAILED', message: String(error), exitCode: EXIT_WRONG };
  const { message } = error;
  if (error instanceof UsageError) {
    return { code: 'INVALID', message, exitCode: EXIT_USAGE, details: error.details };
  }
  if (error instanceof RefusedError) return { code: 'REFUSED', message, exitCode: EXIT_USAGE };
  if (error instanceof UnavailableError) return { code: 'UNAVAILABLE', message, exitCode: EXIT_UNAVAILABLE };
  if (error instanceof LeaseholdError) {
    const { code, details } = error;
    const shown = `${code}: ${refusalText(error)}`;
    return { code, message, shown, exitCode: EXIT_OF_CODE[code], details };
  }
  // Knowing the errors of logs and of gRPC means loading both: only those who met one wait for that.
  const { failureOfParts } = await import('./failures.ts');
  return failureOfParts(error);
}
