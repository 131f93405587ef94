/** Random runs of the pair, each from its own seed; a failed one is shortened before it is shown. */
import type { Command } from '../../src/api/entry.ts';
import { Random } from '../support/random.ts';
import { Generator, type PlannedEntry } from './generator.ts';
import { Disagreement, Pair, type PairOptions } from './pair.ts';

const ENTRIES_OF_A_RUN = 250;
const ENTRIES_OF_A_LARGE_RUN = 12;
/** Attempts to leave something out of a failed run. */
const SHORTENINGS_MAX = 3_000;

export interface RunOptions {
  /** One in so many runs has thousands of locks, so that entries use up their budget. */
  readonly largeOneIn: number;
  /** Whether the history checker judges half of the runs. It takes for granted that consequences are seldom put off. */
  readonly checked: boolean;
  /** Kinds of events that came up in any run. */
  readonly seen: Set<string>;
}

interface Failure {
  readonly error: Disagreement;
  readonly plan: readonly PlannedEntry[];
}

/** Number of commands that went through; throws an error that says how to repeat the run. */
export function runSeed(seed: number, options: RunOptions, command: string): number {
  const random = new Random(seed);
  const isLarge = random.chance(1 / options.largeOneIn);
  const pairOptions: PairOptions = {
    throughBytes: random.chance(0.2),
    snapshotEvery: random.pick([0, 0, 0, 0, 0, 0, 0, 10, 50, random.chance(0.2) ? 1 : 30]),
    viewEvery: isLarge ? 4 : random.pick([1, 5, 10]),
    checked: random.chance(0.5) && options.checked,
    seen: options.seen,
  };
  const generator = new Generator(random, { isLarge, oneRequestPerKey: pairOptions.checked });
  const plan: PlannedEntry[] = [generator.first()];
  const pair = new Pair(pairOptions);
  try {
    pair.entry(plan[0] as PlannedEntry);
    const length = isLarge ? ENTRIES_OF_A_LARGE_RUN : ENTRIES_OF_A_RUN;
    for (let i = 0; i < length; i++) {
      plan.push(generator.next(pair.state));
      pair.entry(plan.at(-1) as PlannedEntry);
    }
    pair.finish();
  } catch (error) {
    if (!(error instanceof Disagreement)) throw error;
    const shortest = shorten({ error, plan }, { ...pairOptions, viewEvery: 1 });
    throw new Error(explain(shortest, seed, command), { cause: error });
  }
  return plan.reduce((sum, { commands }) => sum + commands.length, 0);
}

/** What a plan makes go wrong; null when all is well. */
function failureOf(plan: readonly PlannedEntry[], options: PairOptions): Failure | null {
  const pair = new Pair(options);
  try {
    for (const entry of plan) pair.entry(entry);
    pair.finish();
    return null;
  } catch (error) {
    if (!(error instanceof Disagreement)) throw error;
    return { error, plan };
  }
}

/** Leaves out entries, then commands, in ever smaller pieces, as long as the same kind of thing still goes wrong. */
function shorten(first: Failure, options: PairOptions): Failure {
  let failure = first;
  let left = SHORTENINGS_MAX;
  const tryPlan = (plan: readonly PlannedEntry[]): boolean => {
    const other = left-- > 0 ? failureOf(plan, options) : null;
    if (other?.error.kind !== first.error.kind) return false;
    failure = other;
    return true;
  };
  for (let piece = failure.plan.length >> 1; piece >= 1; piece >>= 1) {
    for (let start = 0; start < failure.plan.length; ) {
      const { plan } = failure;
      if (!tryPlan([...plan.slice(0, start), ...plan.slice(start + piece)])) start += piece;
    }
  }
  for (let place = 0; place < failure.plan.length; place++) shortenEntry(place, () => failure.plan, tryPlan);
  return failure;
}

function shortenEntry(
  place: number,
  planNow: () => readonly PlannedEntry[],
  tryPlan: (plan: readonly PlannedEntry[]) => boolean,
): void {
  const entryNow = (): PlannedEntry => planNow()[place] as PlannedEntry;
  const tryCommands = (commands: readonly Command[]): boolean =>
    tryPlan(planNow().with(place, { ...entryNow(), commands }));
  for (let piece = Math.max(1, entryNow().commands.length >> 1); piece >= 1; piece >>= 1) {
    for (let start = 0; start < entryNow().commands.length; ) {
      const { commands } = entryNow();
      if (!tryCommands([...commands.slice(0, start), ...commands.slice(start + piece)])) start += piece;
    }
  }
}

function explain({ error, plan }: Failure, seed: number, command: string): string {
  const lines = plan.map((entry) => `  ${JSON.stringify(entry)}`);
  return [
    error.message,
    `the shortest run found, of ${plan.length} entries:`,
    ...lines.map((line) => (line.length > 2_000 ? `${line.slice(0, 2_000)}...` : line)),
    `to repeat: LEASEHOLD_SEED=${seed} ${command}`,
  ].join('\n');
}
