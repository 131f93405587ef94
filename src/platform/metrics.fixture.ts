/** Metrics that count nothing, for simulations and tests. */
import type { AuditMetrics, SidecarMetrics } from './metrics.ts';

function ignore(): void {
  // Nobody reads these metrics.
}

export const silentSidecarMetrics: SidecarMetrics = {
  acquired: ignore,
  jeopardy: ignore,
  lost: ignore,
  leaseExpiredWhileWorking: ignore,
  observe: () => ignore,
};

export const silentAuditMetrics: AuditMetrics = {
  exported: ignore,
  failed: ignore,
  gap: ignore,
  observe: () => ignore,
};
