/** Many seeds, as many at once as there are threads for: a run uses one core, and knows nothing of the others. */
import { Worker } from 'node:worker_threads';
import type { RunReport } from './simulation.ts';

/** Most of what a run makes is short-lived, and is collected the less often the more room there is for it. */
const YOUNG_GENERATION_MB = 192;

export interface ManyRuns {
  readonly first: number;
  readonly hours: number;
  readonly threads: number;
  /** Whether one more run is wanted, when so many have been begun. */
  readonly isWanted: (begun: number) => boolean;
  /** In the order in which they end. */
  readonly onReport: (report: RunReport) => void;
}

export async function simulateMany({ first, hours, threads, isWanted, onReport }: ManyRuns): Promise<void> {
  let begun = 0;
  const runs = Array.from({ length: threads }, async () => {
    const thread = new Worker(new URL('./seed-thread.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    try {
      while (isWanted(begun)) onReport(await reportFrom(thread, { seed: first + begun++, hours }));
    } finally {
      await thread.terminate();
    }
  });
  await Promise.all(runs);
}

function reportFrom(
  thread: Worker,
  options: { readonly seed: number; readonly hours: number },
): Promise<RunReport> {
  return new Promise((resolve, reject) => {
    thread.removeAllListeners();
    thread.once('message', resolve);
    thread.once('error', (cause) => reject(new Error(`seed ${options.seed} ended its thread`, { cause })));
    thread.once('exit', (code) => reject(new Error(`seed ${options.seed} ended its thread: ${code}`)));
    thread.postMessage(options);
  });
}
