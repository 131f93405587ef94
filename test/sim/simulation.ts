/**
 * One run from its seed. What happens in it is in story.ts, which is loaded after that has been changed which the product has as a
 * constant (nodes/transitions.ts): so nothing here may load a part of the product.
 */
import { hookTransitions } from './nodes/transitions.ts';
import type { RunOptions, RunReport } from './run.ts';

export async function simulate(options: RunOptions): Promise<RunReport> {
  hookTransitions();
  const { run } = await import('./story.ts');
  return run(options);
}
