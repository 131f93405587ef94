/** A lock server's figures for /metrics, read off its state. */
import type { State } from '../../core/index.ts';
import type { ServerGauges } from '../../platform/metrics.ts';

/** The longest queue costs a pass over the names while anybody waits. */
export function gaugesOf(
  state: State,
  { logBytes, snapshotBytes }: { readonly logBytes: number; readonly snapshotBytes: number },
): ServerGauges {
  let longestQueue = 0;
  if (state.waits > 0) {
    for (const { queue } of state.locks.values()) longestQueue = Math.max(longestQueue, queue?.size ?? 0);
  }
  return {
    sessions: state.sessions.size,
    heldLocks: state.holds,
    waiters: state.waits,
    longestQueue,
    logBytes,
    snapshotBytes,
  };
}
