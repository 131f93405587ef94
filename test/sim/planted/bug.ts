/** What a planted bug is: one change to one file, and what a run must be like for it to show. */
import type { FaultKind, Plan } from '../plan.ts';

export interface PlantedBug {
  readonly name: string;
  /** Rule or case that it breaks. */
  readonly rule: string;
  /** The commit that mended it, where it was a real fault of this project once. */
  readonly commit?: string;
  /** Below the root of the repository. */
  readonly file: string;
  /** Must be in the file exactly once. */
  readonly from: string;
  readonly to: string;
  /** Faults without which it cannot show; they are added to what a seed chooses. */
  readonly faults?: readonly FaultKind[];
  /** What else a run must be like for it to show before long. */
  readonly change?: (plan: Plan) => Plan;
}
