/** Which faults a seed chooses, in which order, so that they fit into the time there is. */
import type { Random } from '../../support/random.ts';
import { clockFaults } from './clock-faults.ts';
import { diskFaults } from './disk-faults.ts';
import { etcdFaults } from './etcd-faults.ts';
import type { Fault, Lane } from './fault.ts';
import { networkFaults } from './network-faults.ts';
import { processFaults } from './process-faults.ts';

export const FAULTS: readonly Fault[] = [
  ...processFaults,
  ...networkFaults,
  ...etcdFaults,
  ...diskFaults,
  ...clockFaults,
];

/** Between two faults of a lane. */
export const REST_SECONDS_MAX = 2;
/** Share of the kinds that a seed has: what is never mixed with everything is found sooner. */
const KEPT_SHARE = 0.85;

/** In turns until the time is used up; each kind of the seed's own comes before any comes again. */
export function planLane(
  lane: Lane,
  random: Random,
  { seconds, isPossible }: { readonly seconds: number; readonly isPossible: (fault: Fault) => boolean },
): Fault[] {
  const possible = FAULTS.filter((fault) => fault.lane === lane && isPossible(fault));
  const kept = shuffled(possible, random).slice(0, Math.max(1, Math.ceil(possible.length * KEPT_SHARE)));
  const planned: Fault[] = [];
  let left = seconds;
  while (left > 0) {
    for (const fault of shuffled(kept, random)) {
      left -= fault.seconds + REST_SECONDS_MAX / 2;
      if (left < 0) return planned;
      planned.push(fault);
    }
  }
  return planned;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const left = [...items];
  return items.map(() => left.splice(random.int(left.length), 1)[0] as T);
}
