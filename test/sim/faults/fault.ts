/** The shape of a fault: it has begun when it is made, and says for how long it lasts and how it ends. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';

export interface Fault {
  /** Parts that it hinders while it lasts (see FaultsSeen). */
  readonly parts: readonly string[];
  readonly forMs: number;
  readonly end: () => void;
}

/** Null: there is nothing it could strike now. */
export type FaultMaker = (cluster: Cluster, random: Random) => Fault | null;

/** A moment that has no end of its own. */
export function moment(parts: readonly string[] = []): Fault {
  return { parts, forMs: 0, end: () => undefined };
}
