/**
 * The first command of a leadership (rules S5, C12).
 */
import type { TakeOver } from '../api/entry.ts';

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
