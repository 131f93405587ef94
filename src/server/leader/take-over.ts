/**
 * The first command of a leadership (rules S5, C12).
 */
import type { TakeOver } from '../../api/entry.ts';
import { TOKENS_PER_SECOND, UNIX_SECONDS_MAX } from '../../api/limits.ts';

export interface TakeOverFacts {
  readonly epoch: number;
  readonly wallMs: number;
  /** The log has no entry yet: only then a floor from outside counts. */
  readonly isBirth: boolean;
  readonly tokenFloor: number;
  /** For the record. */
  readonly reason: string;
}

export function takeOverCommand({ epoch, wallMs, isBirth, tokenFloor, reason }: TakeOverFacts): TakeOver {
  const unixSeconds = Math.floor(wallMs / 1000);
  return { type: 'takeOver', epoch, unixSeconds, tokenFloor: isBirth ? tokenFloor : 0, reason };
}

/**
 * Floor of a new lineage where there is no ledger, so that the clock alone sets it (rule C12). A clock gone mad must not use up the tokens
 * at birth, when there is no earlier counter to hold it against.
 */
export function floorOfBirth(wallMs: number): number {
  return Math.min(Math.floor(wallMs / 1000), UNIX_SECONDS_MAX) * TOKENS_PER_SECOND;
}
