/**
 * Whether administrative commands can be written into an entry and read back. Clients' commands are checked field by field
 * where they come in; these have many makers, and one that cannot be written would stop the leader in the middle of a commit.
 */
import type { Command } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import { decodeEntry, encodeEntry } from '../../core/index.ts';

/** Null when they can, else the reason. */
export function encodingProblem(commands: readonly Command[]): string | null {
  const entry = {
    format: FORMAT_VERSION,
    behaviour: 1,
    lineage: '',
    epoch: 0,
    index: 0,
    at: 0,
    wallMs: 0,
    previous: '',
    commands,
    eventHash: '',
  };
  try {
    decodeEntry(encodeEntry(entry).bytes);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
