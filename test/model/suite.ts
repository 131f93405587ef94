/** Runs seeds until enough commands went through. */
import { type RunOptions, runSeed } from './runs.ts';

interface SuiteOptions extends Omit<RunOptions, 'seen'> {
  readonly commands: number;
  /** The test file, for the command that repeats a run. */
  readonly file: string;
}

const SEEDS = 2 ** 40;

/** What every long run must have met, or it would prove nothing about it. */
const MUST_BE_SEEN: readonly string[] = [
  ...['exclusive', 'shared', 'semaphore'].flatMap((mode) => [
    `granted ${mode}`,
    `granted ${mode} from the queue`,
  ]),
  'joined',
  'joined from the queue',
  'released, others remain',
  'cancelled, others remain',
  ...['break', 'maxHold', 'consumerRemoved', 'permitsCut', 'namespaceDeleted'].flatMap((cause) => [
    `revoking ${cause}`,
    `revoked ${cause}`,
  ]),
  ...['INVALID', 'FORBIDDEN', 'QUOTA_EXCEEDED', 'NAMESPACE_NOT_FOUND', 'QUARANTINED', 'SESSION_EXPIRED'].map(
    (code) => `refused ${code} from the queue`,
  ),
  'refused HELD',
  'refused QUEUE_FULL',
  'refused WAIT_TIMEOUT from the queue',
];

export interface Outcome {
  readonly commands: number;
  readonly runs: number;
  /** Kinds of events that should have come up and did not; empty when one seed was repeated. */
  readonly missed: readonly string[];
}

export function differentialTest({ commands: wanted, file, ...given }: SuiteOptions): Outcome {
  const options = { ...given, seen: new Set<string>() };
  const command = `npm test -- ${file}`;
  const seed = process.env.LEASEHOLD_SEED;
  if (seed !== undefined) return { commands: runSeed(Number(seed), options, command), runs: 1, missed: [] };
  const target = Number(process.env.LEASEHOLD_MODEL_COMMANDS ?? wanted);
  const first = Math.floor(Math.random() * SEEDS);
  let commands = 0;
  let runs = 0;
  for (; commands < target; runs++) commands += runSeed(first + runs, options, command);
  console.log(`${commands} commands in ${runs} runs, seeds ${first} to ${first + runs - 1}`);
  return { commands, runs, missed: MUST_BE_SEEN.filter((kind) => !options.seen.has(kind)) };
}
