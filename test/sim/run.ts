/** What a run is asked for, and what it reports. */
import type { Finding } from './judge/findings.ts';
import type { LockTally } from './judge/group-judge.ts';
import type { Plan } from './plan.ts';
import type { Pace } from './plan-pace.ts';
import type { TraceLine } from './world/world.ts';

export interface RunOptions {
  readonly seed: number;
  /** Length of the part with faults, in hours of virtual time. */
  readonly hours: number;
  /** Left out: dense. */
  readonly pace?: Pace;
  /** Ends with the faults: what is judged only after them is not. */
  readonly isCutShort?: boolean;
  readonly onTrace?: TraceLine;
  /** Changes to what the seed chose, for planted bugs. */
  readonly changePlan?: (plan: Plan) => Plan;
}

export interface RunReport {
  readonly seed: number;
  readonly hours: number;
  readonly pace: Pace;
  readonly hash: string;
  readonly findings: readonly Finding[];
  readonly plan: Plan;
  readonly virtualMs: number;
  /** Of it the part with traffic and faults: without the quiet after it. */
  readonly busyMs: number;
  readonly steps: number;
  readonly entries: number;
  /** Of them those that left consequences to the next (rule C1). */
  readonly carriedOver: number;
  readonly grants: number;
  /** What became of modes and re-entrancy. */
  readonly tally: LockTally;
  readonly sessions: number;
  readonly takeOvers: number;
  readonly calls: number;
  readonly writes: number;
  readonly staleWrites: number;
  /** How often each kind of fault struck. */
  readonly faults: ReadonlyMap<string, number>;
}
