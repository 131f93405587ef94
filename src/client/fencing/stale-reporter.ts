/** Tells Leasehold that a resource refused a stale token: it is counted, and recorded in the lock's history. */
import type { StaleReport, StaleToken } from './stale-token.ts';

const REPORT_MS_MAX = 5_000;

export interface StaleReporterOptions {
  /** Where the lock API is, without a path: `LEASEHOLD_URL`. */
  readonly url: string;
  /** The lock that guards the resource, as `<alias>/<rest>`; a function where one service guards many. */
  readonly lock: string | ((resource: string) => string);
  /** Milliseconds, default 5,000. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
}

/** A `report` for the fences of this folder. It rejects when the report did not arrive; the refusal stands anyway. */
export function staleReporter({
  url,
  lock,
  timeoutMs = REPORT_MS_MAX,
  fetch,
}: StaleReporterOptions): StaleReport {
  const base = url.replace(/\/+$/, '');
  return async ({ token, resource }: StaleToken) => {
    const name = typeof lock === 'function' ? lock(resource) : lock;
    const response = await (fetch ?? globalThis.fetch)(
      `${base}/v1/locks/${encodeURIComponent(name)}/stale-reports`,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token, resource }),
        signal: AbortSignal.timeout(timeoutMs),
      },
    );
    const answer = await response.text();
    if (!response.ok) throw new Error(`the stale report was refused (${response.status}): ${answer}`);
  };
}
