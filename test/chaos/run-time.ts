/** The run's one time base: milliseconds since 1970 on this process's monotonic clock, which no fault of the run touches. */
const NS_PER_MS = 1e6;

export function runMs(): number {
  return performance.timeOrigin + performance.now();
}

/** A moment of the machine's monotonic clock, as the API tells deadlines. */
export function fromMonotonicNs(ns: bigint): number {
  return runMs() + Number(ns - process.hrtime.bigint()) / NS_PER_MS;
}
