/** How the events of the runners read as lines of the demo's table; null: not worth a line. */
import { money } from './checks.ts';
import type { Batch } from './payouts.ts';
import type { RunnerEvent } from './runner-events.ts';

export interface Scene {
  readonly batches: readonly Batch[];
  readonly lockName: string;
  /** The only batch whose payment is told. */
  readonly slowBatch: string;
  /** The runner was stopped and goes on now: what it writes comes too late. */
  readonly isLate: boolean;
}

export function narrate(event: RunnerEvent, scene: Scene): string | null {
  switch (event.event) {
    case 'waiting':
      return `told HELD by ${event.holder}; waits in the queue`;
    case 'granted':
      return `granted ${scene.lockName}`;
    case 'fenceRaised':
      return 'raises the fence of the table to its token: older tokens are refused from here on';
    case 'inHand':
      return `has paid ${event.paidSoFar}; reads ${nameOf(event.batch, scene)} as pending ...`;
    case 'paid':
      if (scene.isLate) return `writes ${event.batch}: it LANDS, nothing looks at the old token`;
      return event.batch === scene.slowBatch ? `pays ${nameOf(event.batch, scene)} and goes on` : null;
    case 'refused':
      return `writes ${event.batch}: REFUSED, 0 rows changed, the fence is at ${event.fence}`;
    case 'reported':
      return `reports the stale token; Leasehold says ${event.answer}, holder is ${event.holder}`;
    case 'lost':
      return 'sees by its clock that its lease is over, and stops';
    case 'done':
      return `finds nothing pending, has paid ${event.paidSoFar}, gives the lock back`;
  }
}

function nameOf(id: string, { batches }: Scene): string {
  const batch = batches.find((candidate) => candidate.id === id);
  return batch === undefined ? id : `${id} (${money(batch)})`;
}
