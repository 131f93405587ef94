/** Runs seeds until enough commands went through. */
import { type RunOptions, runSeed } from './runs.ts';

interface SuiteOptions extends RunOptions {
  readonly commands: number;
  /** The test file, for the command that repeats a run. */
  readonly file: string;
}

const SEEDS = 2 ** 40;

export function differentialTest({ commands: wanted, file, ...options }: SuiteOptions): {
  readonly commands: number;
  readonly runs: number;
} {
  const command = `npm test -- ${file}`;
  const given = process.env.LEASEHOLD_SEED;
  if (given !== undefined) return { commands: runSeed(Number(given), options, command), runs: 1 };
  const target = Number(process.env.LEASEHOLD_MODEL_COMMANDS ?? wanted);
  const first = Math.floor(Math.random() * SEEDS);
  let commands = 0;
  let runs = 0;
  for (; commands < target; runs++) commands += runSeed(first + runs, options, command);
  console.log(`${commands} commands in ${runs} runs, seeds ${first} to ${first + runs - 1}`);
  return { commands, runs };
}
