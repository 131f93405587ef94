/** Whether a log may be served, and putting on record that it may not (rule S10). */
import { LogUnavailableError } from '../../log/errors.ts';
import {
  HaltedError,
  type Leadership,
  type LockLog,
  ReplacedError,
  type RollBackProof,
} from '../../log/port.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/runtime.ts';

/** Pause before the proof of a roll-back is written again. */
const HALT_RETRY_MS = 500;

/** What was won must not be served if the log is halted, or is not the one that was opened. @throws HaltedError, ReplacedError */
export async function refuseUnservable(log: LockLog, leadership: Leadership): Promise<void> {
  const { lineage, halted } = await log.standing();
  if (lineage === log.lineage && halted === null) return;
  await log.resign(leadership);
  if (lineage !== log.lineage) throw new ReplacedError();
  if (halted !== null) throw new HaltedError(halted);
}

/** Tries until the log has it: from then on no replica serves it. */
export async function writeProof(log: LockLog, timers: Timers, proof: RollBackProof): Promise<void> {
  for (;;) {
    try {
      await log.halt(proof);
      return;
    } catch (error) {
      if (!(error instanceof LogUnavailableError)) throw error;
    }
    await pause(timers, HALT_RETRY_MS);
  }
}
