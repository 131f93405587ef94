/**
 * Processes of this machine, for those who must know who holds a file: the only facts of the operating system's process
 * table that anything above this folder may ask for.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Id of this process. */
export const processId = process.pid;

/** Whether a process with this id runs now, whoever it belongs to. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/**
 * When the process with this id was started, in the operating system's own words; null: there is none. Together with the id it names one
 * process for good, since ids are used again.
 */
export function startOf(pid: number): string | null {
  if (!isRunning(pid)) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program may hold anything, also spaces; it ends with the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Its first thread counts as ended before the others have: until then its files and ports are open.
    const isEnded = (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[STAT_THREADS]) <= 1;
    return isEnded ? null : (fields[STAT_START] ?? null);
  } catch {
    // No /proc: not Linux, or it has ended since.
    const shown = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
    return shown.status === 0 ? shown.stdout.trim() || null : null;
  }
}

/** Places of the number of threads and of the start time among the fields after the program's name (proc(5)). */
const STAT_THREADS = 17;
const STAT_START = 19;
