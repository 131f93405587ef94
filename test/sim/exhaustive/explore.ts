/**
 * All orders of events in the small world, up to so many steps: depth first, each by running it from its beginning, since promises cannot
 * be copied. A state that was reached before is not gone on from.
 */
import { SmallWorld, type Step } from './small-world.ts';

export interface Explored {
  readonly states: number;
  /** Orders run to their end and judged there. */
  readonly schedules: number;
  /** All steps were taken within the bound. */
  readonly isWhole: boolean;
  readonly found: { readonly steps: readonly Step[]; readonly message: string } | null;
}

export interface Bounds {
  readonly steps: number;
  /** Stops after so many schedules, for a slice of it. */
  readonly schedules?: number;
}

export async function explore({
  steps: stepsMax,
  schedules: schedulesMax = Infinity,
}: Bounds): Promise<Explored> {
  const seen = new Set<string>();
  const open: (readonly Step[])[] = [[]];
  let schedules = 0;
  for (let prefix = open.pop(); prefix !== undefined; prefix = open.pop()) {
    if (schedules >= schedulesMax) return { states: seen.size, schedules, isWhole: false, found: null };
    const world = await SmallWorld.start();
    const steps: Step[] = [];
    const fails = () => {
      const [finding] = world.findings.all;
      return finding === undefined
        ? null
        : { steps: [...steps], message: `${finding.property}: ${finding.message}` };
    };
    for (const step of prefix) {
      await world.take(step);
      steps.push(step);
    }
    let isNew = remember(seen, world);
    while (isNew && steps.length < stepsMax && fails() === null) {
      const [next, ...others] = world.enabled();
      if (next === undefined) break;
      for (const other of others) open.push([...steps, other]);
      await world.take(next);
      steps.push(next);
      isNew = remember(seen, world);
    }
    if (isNew) {
      schedules++;
      if (fails() === null) await world.finish();
    }
    const found = fails();
    if (found !== null) return { states: seen.size, schedules, isWhole: false, found };
  }
  return { states: seen.size, schedules, isWhole: true, found: null };
}

/** False: it was there before. */
function remember(seen: Set<string>, world: SmallWorld): boolean {
  const before = seen.size;
  return seen.add(world.fingerprint()).size > before;
}
