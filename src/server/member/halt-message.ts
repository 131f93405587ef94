/** What people are told of a log that was rolled back (rule S10). */
import { describeProof, type RollBackProof } from '../../log/port.ts';

/** `command`: how a new lineage is begun here. */
export function haltMessage(proof: RollBackProof, command: string): string {
  return (
    `the log of this lock group was rolled back (${describeProof(proof)}), so locks that are held may look free: ` +
    `nobody serves it until an operator begins a new lineage with "${command}" (docs/runbooks/halted.md)`
  );
}
