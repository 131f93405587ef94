/**
 * What a call that is refused is told besides its code: where, for whom, and who has the lock (case C12). One that comes with a token that
 * was lost shows that its application worked on.
 */
import type { LeaseholdError } from '../api/errors.ts';
import { notHeldError, readLock, trouble } from './reads.ts';
import type { Target } from './target.ts';

/** What is certain already is not told much later only to say who has the lock (cases B07, C12). */
const EXPLAIN_MS_MAX = 500;

/** An acquire was refused: where and for whom, and after a wait also who has the lock. */
export async function explain(
  error: LeaseholdError,
  target: Target,
  name: string,
  sessionId: string | undefined,
): Promise<LeaseholdError> {
  const session = sessionId === undefined ? {} : { session_id: sessionId };
  const known = (error.code === 'UNAVAILABLE' ? trouble(target) : null) ?? error;
  const placed = known.with({ name: `${target.alias}/${name}`, ...session });
  if (error.code !== 'WAIT_TIMEOUT') return placed;
  const lock = await readLock(target, name, EXPLAIN_MS_MAX).catch(() => null);
  return placed.with({ holder: lock?.holders[0] ?? null });
}

/** The session of a grant is over: also who has the lock now. */
export async function explainEnd(
  error: LeaseholdError,
  target: Target,
  name: string,
  token: number,
): Promise<LeaseholdError> {
  countWork(target, token);
  const { details } = await notHeldError(target, name, token, EXPLAIN_MS_MAX).catch(() => error);
  return error.with(details);
}

export async function refuseGrant(
  target: Target,
  name: string,
  token: number,
  limitMs?: number,
): Promise<never> {
  countWork(target, token);
  throw await notHeldError(target, name, token, limitMs);
}

/** A call with a token that was lost: its application worked on. */
export function countWork({ metrics, ended }: Target, token: number): void {
  if (ended.countOnce(token)) metrics.leaseExpiredWhileWorking();
}
