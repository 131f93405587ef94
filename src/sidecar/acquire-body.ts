/**
 * What an acquire asks for, apart from how long it waits and why: what must be equal when its `request` is repeated
 * (rule C4), what decides whether a re-entrant one joins a grant (rule C6), and what its grant is written down with (rule A4).
 */
import type { Mode } from '../api/config.ts';

export interface AcquireBody {
  /** Below the alias. */
  readonly name: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly owner: string;
  readonly reentrant: boolean;
}

/** The body alone, out of something that has more. */
export function bodyOf({ name, mode, permits, owner, reentrant }: AcquireBody): AcquireBody {
  return { name, mode, permits, owner, reentrant };
}

export function isSameBody(one: AcquireBody, other: AcquireBody): boolean {
  return (
    one.name === other.name &&
    one.mode === other.mode &&
    one.permits === other.permits &&
    one.owner === other.owner &&
    one.reentrant === other.reentrant
  );
}
