/**
 * Processes of this machine, for those who must know who holds a file: the only facts of the operating system's process
 * table that anything above this folder may ask for.
 */

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
