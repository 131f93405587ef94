/**
 * SIGSTOP, until it has happened: each thread of a process stops when it is next looked at, and on a busy machine one may still answer a
 * call that came after the signal.
 */
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const STOPPED_MS_MAX = 5_000;

export function standStill(child: ChildProcess): void {
  child.kill('SIGSTOP');
  // Where there is no /proc nobody can tell.
  if (process.platform !== 'linux' || child.pid === undefined) return;
  const giveUpAt = Date.now() + STOPPED_MS_MAX;
  while (!isStopped(child.pid)) {
    if (Date.now() > giveUpAt)
      throw new Error(`process ${child.pid} did not stop within ${STOPPED_MS_MAX} ms`);
  }
}

/** All its threads; one that has ended meanwhile, or the whole process, is as good as stopped. */
function isStopped(pid: number): boolean {
  return list(`/proc/${pid}/task`).every((thread) => {
    const stat = read(`/proc/${pid}/task/${thread}/stat`);
    // The name in parentheses may contain anything, parentheses too.
    return stat === '' || 'TtZX'.includes(stat.charAt(stat.lastIndexOf(')') + 2));
  });
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
