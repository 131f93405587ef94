/**
 * Measuring: open-loop load (latency counts from the *planned* start, so a stall is charged to everybody it delayed), closed
 * loops for saturation, and percentiles.
 */

export interface Summary {
  readonly operations: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export function summarise(latenciesMs: readonly number[], seconds: number): Summary {
  const sorted = Float64Array.from(latenciesMs).sort();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    operations: sorted.length,
    perSecond: sorted.length / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
  };
}

export interface OpenLoopOptions {
  readonly perSecond: number;
  readonly seconds: number;
  /** Under the same load before that, and not counted: until then a process compiles what it runs. */
  readonly warmUpSeconds: number;
}

/** Starts `operation` at a fixed rate for so many seconds, whether or not earlier ones are done; waits for all of them. */
export async function openLoop(
  { perSecond, seconds, warmUpSeconds }: OpenLoopOptions,
  operation: (turn: number) => Promise<unknown>,
): Promise<Summary> {
  const latenciesMs: number[] = [];
  const running: Promise<unknown>[] = [];
  const startedMs = performance.now();
  const total = Math.floor(perSecond * (warmUpSeconds + seconds));
  const countedFrom = Math.floor(perSecond * warmUpSeconds);
  for (let turn = 0; turn < total; ) {
    // Turn 0 is planned for the very start, so one more than whole periods have passed.
    const dueTurns = Math.min(total, Math.floor(((performance.now() - startedMs) / 1000) * perSecond) + 1);
    for (; turn < dueTurns; turn++) {
      const plannedMs = startedMs + (turn / perSecond) * 1000;
      const isCounted = turn >= countedFrom;
      running.push(
        operation(turn).then(() => void (isCounted && latenciesMs.push(performance.now() - plannedMs))),
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(running);
  return summarise(latenciesMs, (performance.now() - startedMs) / 1000 - warmUpSeconds);
}

/** Runs `workers` loops of `operation` back to back for so many seconds. */
export async function closedLoop(
  { workers, seconds }: { readonly workers: number; readonly seconds: number },
  operation: (worker: number, turn: number) => Promise<unknown>,
): Promise<Summary> {
  const latenciesMs: number[] = [];
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1000;
  const loop = async (worker: number): Promise<void> => {
    for (let turn = 0; performance.now() < endMs; turn++) {
      const beganMs = performance.now();
      await operation(worker, turn);
      latenciesMs.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => loop(worker)));
  return summarise(latenciesMs, (performance.now() - startedMs) / 1000);
}
