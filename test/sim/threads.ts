/** Many runs, as many at once as there are threads for: a run uses one core, and knows nothing of the others. */
import { Worker } from 'node:worker_threads';
import type { Pace } from './plan-pace.ts';
import type { RunReport } from './run.ts';

/** Most of what a run makes is short-lived, and is collected the less often the more room there is for it. */
const YOUNG_GENERATION_MB = 192;

/** All that it takes to repeat a run. */
export interface Run {
  readonly seed: number;
  readonly hours: number;
  readonly pace?: Pace;
}

export interface ManyRuns {
  readonly threads: number;
  /** The next one to begin; null: there is none. */
  readonly next: () => Run | null;
  /** In the order in which they end. */
  readonly onReport: (report: RunReport) => void;
}

export async function simulateMany({ threads, next, onReport }: ManyRuns): Promise<void> {
  const runs = Array.from({ length: threads }, async () => {
    const thread = new Worker(new URL('./seed-thread.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    try {
      for (let run = next(); run !== null; run = next()) onReport(await reportFrom(thread, run));
    } finally {
      await thread.terminate();
    }
  });
  await Promise.all(runs);
}

function reportFrom(thread: Worker, run: Run): Promise<RunReport> {
  return new Promise((resolve, reject) => {
    thread.removeAllListeners();
    thread.once('message', resolve);
    thread.once('error', (cause) => reject(new Error(`seed ${run.seed} ended its thread`, { cause })));
    thread.once('exit', (code) => reject(new Error(`seed ${run.seed} ended its thread: ${code}`)));
    thread.postMessage(run);
  });
}
