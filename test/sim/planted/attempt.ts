/** Tries one planted bug in a process of its own. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { PlantedBug } from './bug.ts';

const TRY = fileURLToPath(new URL('./try.ts', import.meta.url));

/** Length of a run's part with faults, hours. */
const HOURS = 0.05;

export interface Caught {
  readonly seed: number;
  /** Simulated until then, all seeds together. */
  readonly hours: number;
  readonly found: { readonly property: string; readonly message: string } | null;
}

/** Runs seeds from `first` on until one shows the bug, `count` at most. Rejects when the bug cannot be planted. */
export async function attempt(
  { name }: PlantedBug,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<Caught> {
  const args = [TRY, name, `${first}`, `${count}`, `${HOURS}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Caught;
}
