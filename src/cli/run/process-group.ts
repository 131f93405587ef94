/**
 * Signals to the process group of CMD. The group has the id of CMD's first process, which is not given to another one before the
 * wrapper has seen that process end and nothing of the group is left; the wrapper then says `done` to the watchdog at once.
 */

import { pause } from '../../platform/pause.ts';
import { systemTimers } from '../../platform/system-time.ts';

const POLL_MS = 20;

/** What is passed on to CMD, and ends a wait. SIGKILL and SIGSTOP cannot be: for them there is the watchdog. */
export const PASSED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/** False: there is no such group any more. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

export function killGroup(pid: number): void {
  signalGroup(pid, 'SIGKILL');
}

/** Kills what is left of the group; resolves with whether it is gone within `limitMs`. */
export async function clearGroup(pid: number, limitMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += POLL_MS) {
    if (!signalGroup(pid, 'SIGKILL')) return true;
    await pause(systemTimers, POLL_MS);
  }
  return false;
}
