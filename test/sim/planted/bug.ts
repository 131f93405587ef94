/** What a planted bug is: one change to one file, or two where a rule is held twice, and what a run must be like for it to show. */
import type { FaultKind, Plan } from '../plan.ts';

export interface Change {
  /** Below the root of the repository. */
  readonly file: string;
  /** Must be in the file exactly once. */
  readonly from: string;
  readonly to: string;
}

export interface PlantedBug extends Change {
  readonly name: string;
  /** Rule or case that it breaks. */
  readonly rule: string;
  /** The commit that mended it, where it was a real fault of this project once. */
  readonly commit?: string;
  /** Elsewhere, in another file: what would hide it. */
  readonly also?: Change;
  /** Faults without which it cannot show; they are added to what a seed chooses. */
  readonly faults?: readonly FaultKind[];
  /** What else a run must be like for it to show before long. */
  readonly change?: (plan: Plan) => Plan;
}

export function changesOf(bug: PlantedBug): readonly Change[] {
  return bug.also === undefined ? [bug] : [bug, bug.also];
}
