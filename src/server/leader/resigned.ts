/** The wait for a resignation to be committed: an orderly stop does not wait for ever. */
import type { Runtime } from '../../platform/runtime.ts';

const COMMIT_MS_MAX = 5_000;

/**
 * False: it was not committed, as this server has stopped meanwhile, and nothing is left to hand over. `giveUp` is called when it takes too
 * long; `resigning` has to end then.
 */
export async function resigned(
  resigning: Promise<unknown>,
  { timers, logger }: Pick<Runtime, 'timers' | 'logger'>,
  giveUp: () => void,
): Promise<boolean> {
  const limit = timers.after(COMMIT_MS_MAX, () => {
    logger.warn({}, 'nothing can be committed: stopped without handing over');
    giveUp();
  });
  try {
    await resigning;
    return true;
  } catch {
    return false;
  } finally {
    limit.cancel();
  }
}
