/** `leasehold run`, from its flags to its exit code. */
import { constants } from 'node:os';
import { basename } from 'node:path';
import { PURPOSE_BYTES_MAX } from '../../api/limits.ts';
import { utf8Length } from '../../api/text.ts';
import { caller } from '../caller.ts';
import { EXIT_USAGE } from '../conventions.ts';
import { UsageError } from '../errors.ts';
import { LockApi } from '../http/lock-api.ts';
import { type ModeFlags, modeOf } from '../options.ts';
import { PASSED_SIGNALS } from './process-group.ts';
import { Runner } from './runner.ts';
import type { WaitPolicy } from './states.ts';

export interface RunFlags extends ModeFlags {
  readonly url: string;
  /** Milliseconds; false: `--no-wait`. */
  readonly wait?: number | false;
  readonly skipIfHeld?: true;
  readonly ttl?: number;
  readonly owner?: string;
  readonly purpose?: string;
  readonly quiet?: true;
}

/** Does not return: CMD's exit code, or the reason why it was not run, ends the process. */
export async function run(name: string, command: readonly string[], flags: RunFlags): Promise<never> {
  try {
    process.exit(await runToEnd(name, command, flags));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exit(EXIT_USAGE);
  }
}

function runToEnd(name: string, command: readonly string[], flags: RunFlags): Promise<number> {
  const { url, skipIfHeld = false, ttl, owner, purpose, quiet = false } = flags;
  const runner = new Runner({
    api: new LockApi(url),
    plan: { name, wait: waitPolicy(flags), isSkippedIfHeld: skipIfHeld },
    command,
    client: caller(),
    purpose: purpose ?? purposeOf(command),
    mode: modeOf(flags),
    say: (text) => {
      if (!quiet) console.error(`leasehold: ${text}`);
    },
    ...(ttl !== undefined && { ttlMs: ttl }),
    ...(owner !== undefined && { owner }),
  });
  for (const signal of PASSED_SIGNALS) {
    process.on(signal, () => runner.signal({ name: signal, number: constants.signals[signal] }));
  }
  return runner.run();
}

/** A job that is skipped when somebody else runs it has no reason to wait for that, unless it is told to. */
function waitPolicy({ wait, skipIfHeld }: RunFlags): WaitPolicy {
  if (wait === false || (wait === undefined && skipIfHeld === true)) return { kind: 'none' };
  return wait === undefined ? { kind: 'namespace' } : { kind: 'atMost', waitMs: wait };
}

/** Only the program: arguments may hold what others must not read. */
function purposeOf([program = '']: readonly string[]): string {
  const purpose = basename(program);
  return utf8Length(purpose) <= PURPOSE_BYTES_MAX ? purpose : '';
}
