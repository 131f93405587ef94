/**
 * How closely things follow each other in a run. Dense, as a seed chooses: calls and faults every few seconds, so that they meet.
 * Sparse: workers that think for minutes and faults minutes apart, as in service, so that hours go by in which something can build up, and
 * each fault meets a system that has come to rest. Drawn apart from the rest of the plan, which stays as it is.
 */
import type { Plan } from './plan.ts';
import type { World } from './world/world.ts';

export type Pace = 'dense' | 'sparse';

const THINK_MS = [60_000, 120_000, 300_000];
const HOLD_MS = [400, 20_000, 120_000];
/** Of the TTL: the library's own calls come about so often. */
const KEEPALIVE_SHARES = [0.4, 0.7];
const FAULT_EVERY_MS = [120_000, 400_000, 1_800_000];
/**
 * Where the seed chooses no snapshots: after an hour or so there is one. Whoever starts in the twelfth hour of a run would read all of
 * them otherwise, and does so at every start: half of all that such a run cost.
 */
const SNAPSHOT_DUE_BYTES = [200_000, 1_000_000];

export function paced(plan: Plan, pace: Pace, world: World): Plan {
  if (pace === 'dense') return plan;
  const random = world.random('pace');
  const habits = {
    ...plan.habits,
    thinkMs: random.pick(THINK_MS),
    holdMs: random.pick(HOLD_MS),
    keepaliveShare: random.pick(KEEPALIVE_SHARES),
  };
  const faults = new Map([...plan.faults.keys()].map((kind) => [kind, random.pick(FAULT_EVERY_MS)]));
  const snapshotDueBytes = plan.snapshotDueBytes ?? random.pick(SNAPSHOT_DUE_BYTES);
  return { ...plan, habits, faults, snapshotDueBytes };
}
