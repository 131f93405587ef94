/**
 * Entries that carry out few consequences, and sessions that end with much: what is left over is carried from entry to entry (rule C1).
 * Apart from plan.ts, since planted bugs use it, and must not load what they are to be planted in.
 */
import type { Constants } from './nodes/constants.ts';

interface Sliceable {
  readonly names: number;
  readonly constants: Constants;
  readonly habits: object;
}

export function sliced<P extends Sliceable>(plan: P, transitionsMax: number): P {
  const habits = { ...plan.habits, neverReleases: 0.3, closesSession: 0.1, fallsSilent: 0.05, oneLock: 0 };
  const crowd = { applicationsPerSidecar: 1, workersPerApplication: 8, names: 4 + 2 * plan.names };
  return { ...plan, ...crowd, constants: { ...plan.constants, transitionsMax }, habits };
}
