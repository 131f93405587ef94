/**
 * One run from its seed. What happens in it is in story.ts, which is loaded after that has been changed which the product has as a
 * constant (nodes/constants.ts): so nothing here may load a part of the product.
 */
import { hookConstants } from './nodes/constants.ts';
import type { RunOptions, RunReport } from './run.ts';

hookConstants();

export async function simulate(options: RunOptions): Promise<RunReport> {
  const { run } = await import('./story.ts');
  return run(options);
}
