/** The file in which a local group remembers itself, as it is read again. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../errors.ts';
import { GROUP_STATE_FILE, type GroupState } from './plan.ts';

/** Null: there is no group in this folder. @throws UsageError what is there cannot be read */
export function readGroupState(folder: string): GroupState | null {
  const path = join(folder, GROUP_STATE_FILE);
  if (!existsSync(path)) return null;
  let state: Partial<GroupState> | null;
  try {
    state = JSON.parse(readFileSync(path, 'utf8')) as Partial<GroupState> | null;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be read, and with it not which processes the group has: ${why}`, {
      cause: error,
      details: { field: '--dir' },
    });
  }
  if (state?.format !== 1 || state.plan === undefined || state.started === undefined) {
    throw new UsageError(`${path} is of another version of this program, or damaged`, {
      details: { field: '--dir' },
    });
  }
  return { format: 1, plan: state.plan, started: state.started };
}
