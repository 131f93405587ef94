/**
 * After the state machine threw (rule C13): the state again from the log, and answers to whoever sent what made it throw, wherever a copy of
 * that waits.
 */
import type { Command } from '../../api/entry.ts';
import type { Position, ReadQuery } from '../../api/wire.ts';
import type { CoreFault } from '../../core/index.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import type { LockLog } from '../../log/port.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { type Recovered, recover } from '../snapshots/recovery.ts';
import { type Faults, MADE_IT_FAIL } from './faults.ts';
import { type Batch, type Inbox, strike, takeOut } from './inbox.ts';
import type { Publisher } from './publisher.ts';

/** Pause before the log is read again that did not answer. */
const RECOVER_AGAIN_MS = 250;

/** Tries until the log answers, or `isOver`: nothing else can be done meanwhile (rule S11). */
export async function recoverPatiently(
  log: LockLog,
  { logger, timers }: Runtime,
  isOver: () => boolean,
): Promise<Recovered> {
  for (;;) {
    try {
      return await recover(log, logger);
    } catch (error) {
      if (!(error instanceof LogUnavailableError) || isOver()) throw error;
      await pause(timers, RECOVER_AGAIN_MS);
    }
  }
}

interface LeaveOutParts {
  readonly faults: Faults;
  readonly publisher: Publisher;
  readonly inbox: Inbox;
  readonly position: Position;
}

/** Decides what is left out of the batch that threw, and refuses it. What is left is tried next. Throws when there is no way to go on. */
export function leaveOut(batch: Batch, fault: CoreFault, parts: LeaveOutParts): void {
  const { faults, publisher, inbox, position } = parts;
  const culprit = faults.blame(fault.step, batch, fault);
  if (culprit === null) return;
  if (culprit.session !== null) publisher.leases.condemn(culprit.session);
  publisher.reject(culprit, { type: 'rejected', code: 'INVALID', message: culprit.message }, position);
  // The same request may wait already, sent again after a broken stream.
  const isKnown = (body: Command | ReadQuery): boolean => faults.isKnown(body);
  const repeats = [...takeOut(batch, isKnown), ...inbox.takeOut(isKnown)];
  for (const repeat of repeats) publisher.reject(repeat, MADE_IT_FAIL, position);
}

/** What comes of condemned sessions, in the form in which it is put to the core; what has thrown in that form before is refused. */
export function strikeOut(batch: Batch, { faults, publisher, position }: Omit<LeaveOutParts, 'inbox'>): void {
  if (!strike(batch, publisher.leases)) return;
  const repeats = takeOut(batch, (body) => faults.isKnown(body));
  for (const repeat of repeats) publisher.reject(repeat, MADE_IT_FAIL, position);
}
