/** How a leader goes in order: it says so in the log, and gives the leadership back. Neither is waited for for ever. */
import { LogUnavailableError } from '../../log/errors.ts';
import type { Leadership, LockLog } from '../../log/port.ts';
import type { Logger, Runtime } from '../../platform/runtime.ts';

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

/** From now on somebody else may lead. Where the log does not answer, only once this leadership has run out: whoever stops goes on with that. */
export async function giveBack(
  log: LockLog,
  leadership: Leadership,
  { logger, successor }: { readonly logger: Logger; readonly successor: string | undefined },
): Promise<void> {
  try {
    await log.resign(leadership, successor);
  } catch (error) {
    if (!(error instanceof LogUnavailableError)) throw error;
    logger.warn({ error }, 'the leadership could not be given back; it runs out by itself');
  }
}
