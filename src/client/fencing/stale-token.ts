/**
 * What all fences share: the token, its refusal as an error, and the report of a refusal. A fence compares a caller's
 * token with the highest one its resource has seen: an equal one passes (a holder writes more than once), a smaller one
 * belongs to a holder whose lease is over.
 */
import { LeaseholdError } from '../../api/errors.ts';
import { TOKEN_MAX } from '../../api/limits.ts';

export interface StaleToken {
  /** What the refused caller presented. */
  readonly token: number;
  /** The highest token that the resource has seen. */
  readonly current: number;
  /** What is guarded, in the resource's own words. */
  readonly resource: string;
}

/** The resource has seen a newer holder. Nothing was written; the caller's lease is over and its work must stop. */
export class StaleTokenError extends LeaseholdError implements StaleToken {
  readonly token: number;
  readonly current: number;
  readonly resource: string;

  constructor({ token, current, resource }: StaleToken) {
    const message = `token ${token} is stale: ${resource} has seen ${current}`;
    super('STALE_TOKEN', message, { token, current, resource });
    this.name = 'StaleTokenError';
    this.token = token;
    this.current = current;
    this.resource = resource;
  }
}

/**
 * Told of every refusal, once; see `staleReporter`. The refusal stands whether or not the report arrives: a failure is
 * put on the error as its `cause`, where there is an error to put it on.
 */
export type StaleReport = (stale: StaleToken) => Promise<void>;

/** Tokens are 1 to 2^53 - 1, so that they are exact as a JavaScript number. Anything else is a mistake of the caller. */
export function assertToken(token: number): void {
  if (Number.isInteger(token) && token >= 1 && token <= TOKEN_MAX) return;
  throw new LeaseholdError('INVALID', `a fencing token is an integer from 1 to 2^53 - 1, not ${token}`, {
    field: 'token',
    limit: TOKEN_MAX,
  });
}

export function assertResource(resource: string): void {
  if (typeof resource === 'string' && resource !== '') return;
  throw new LeaseholdError('INVALID', 'a fence needs the name of what it guards', { field: 'resource' });
}

/** A stored token as drivers and JSON give it: PostgreSQL's bigint and etcd's value are strings. */
export function readToken(stored: unknown, where: string): number {
  const token = typeof stored === 'string' && stored !== '' ? Number(stored) : stored;
  if (typeof token === 'number' && Number.isInteger(token) && token >= 0 && token <= TOKEN_MAX) return token;
  throw new TypeError(`${where} holds no fencing token: ${JSON.stringify(String(stored))}`);
}

/** Reports a refusal, if there is anybody to report to, and gives back the error to throw. */
export async function reported(
  error: StaleTokenError,
  report: StaleReport | undefined,
): Promise<StaleTokenError> {
  try {
    await Promise.resolve(report?.(error));
  } catch (failure) {
    error.cause = failure;
  }
  return error;
}
