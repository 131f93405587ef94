/**
 * Processor time that processes have used. Per operation it is the figure that a busy machine changes least, and it says where the
 * time of a saturated machine goes.
 */
import { readFileSync } from 'node:fs';

/** The kernel counts in hundredths of a second, on all architectures. */
const TICK_MS = 10;

/** Process ids by what the process is called in a report. */
export type Processes = Readonly<Record<string, number>>;

/** User and system time of a process since its start, milliseconds. */
export function processorMs(pid: number): number {
  // After the name in parentheses: field 3; user and system time are fields 14 and 15.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** What each process uses from now until the returned function is called, milliseconds. */
export function watchProcessors(processes: Processes): () => Readonly<Record<string, number>> {
  const times = () => Object.entries(processes).map(([name, pid]) => [name, processorMs(pid)] as const);
  const before = new Map(times());
  return () => Object.fromEntries(times().map(([name, ms]) => [name, ms - (before.get(name) ?? 0)]));
}
