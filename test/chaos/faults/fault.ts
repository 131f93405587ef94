/** One kind of fault: it happens, holds for a while, and is undone again by itself. */
import { setTimeout as pause } from 'node:timers/promises';
import type { GroupBench } from '../../support/group/group-bench.ts';
import type { Random } from '../../support/random.ts';
import { runMs } from '../run-time.ts';
import type { SmallDisk } from '../small-disk.ts';
import type { SteppedClocks } from '../stepped-clocks.ts';

export interface Scene {
  readonly bench: GroupBench;
  /** Null: this run cannot have it. */
  readonly disk: SmallDisk | null;
  readonly clocks: SteppedClocks | null;
  readonly ttlMs: number;
}

export type Lane = 'processes' | 'network';

export interface Fault {
  readonly name: string;
  /** Faults of one lane come one after the other. */
  readonly lane: Lane;
  readonly needs?: 'root' | 'libfaketime';
  /** What it takes, about. */
  readonly seconds: number;
  /** Resolves when it is over; false: it had no effect, so it proves nothing. */
  run(scene: Scene, random: Random): Promise<boolean>;
}

const AGAIN_AFTER_MS = 300;

/** Another fault may stand in the way of this one for a moment: what has no effect, or fails, is tried again for a while. */
export async function untilEffect(withinMs: number, attempt: () => Promise<boolean>): Promise<boolean> {
  const giveUpAt = runMs() + withinMs;
  for (;;) {
    const isLast = runMs() >= giveUpAt;
    const hadEffect = await attempt().catch((error: unknown) => {
      if (isLast) throw error;
      return false;
    });
    if (hadEffect || isLast) return hadEffect;
    await pause(AGAIN_AFTER_MS);
  }
}
