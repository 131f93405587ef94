/**
 * What the rules take off a lease on the side of the holder (rules A1, A2): the same for the sidecar, which tells deadlines, and
 * for the client library, which believes in them.
 */

const MARGIN_MS_MIN = 500;
const SUSPEND_MS_MAX = 2_000;

/** What is kept in hand for clocks that run at slightly different rates: max(500 ms, TTL/5). */
export function marginMs(ttlMs: number): number {
  return Math.max(MARGIN_MS_MIN, ttlMs / 5);
}

/**
 * Wall time that runs ahead of monotonic time by more than this since the last acknowledgement: the machine slept. A sleep that
 * goes unnoticed must fit into the margin, with room for clock rates (docs/adr/0013).
 */
export function suspendMs(ttlMs: number): number {
  return Math.min(SUSPEND_MS_MAX, (marginMs(ttlMs) * 2) / 3);
}
