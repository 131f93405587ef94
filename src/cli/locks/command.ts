/** The sub-commands that talk to the lock API: acquire, renew, release, ls, describe. Flags and help. */
import { Command, Option } from 'commander';
import { modeOptions, outputOption, parseMs, parseName, parseToken, urlOption } from '../options.ts';
import { conclude } from '../output/outcome.ts';
import type { AcquireFlags, GrantFlags } from './change.ts';
import type { LookFlags } from './look.ts';

export function lockCommands(): Command[] {
  return [acquireCommand(), renewCommand(), releaseCommand(), lsCommand(), describeCommand()];
}

function acquireCommand(): Command {
  const command = new Command('acquire')
    .description('Take a lock and print its token; nobody renews it.')
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .option('-w, --wait <duration>', 'wait so long for the lock; default: not at all', parseMs)
    .option('--ttl <duration>', 'how long it is held unless it is renewed; default: of the service', parseMs)
    .option('--owner <text>', 'who holds it, for others to see; default: user@host')
    .option('--purpose <text>', 'what for, for others to see')
    .addOption(outputOption())
    .addOption(urlOption())
    .addHelpText('after', ACQUIRE_HELP)
    .action(async (name: string, flags: AcquireFlags) => {
      const { acquire } = await import('./change.ts');
      await conclude(() => acquire(name, flags), flags.output);
    });
  for (const option of modeOptions()) command.addOption(option);
  return command;
}

function renewCommand(): Command {
  return grantCommand('renew', 'Hold a lock for another TTL.')
    .addHelpText('after', RENEW_HELP)
    .action(async (name: string, flags: GrantFlags) => {
      const { renew } = await import('./change.ts');
      await conclude(() => renew(name, flags), flags.output);
    });
}

function releaseCommand(): Command {
  return grantCommand('release', 'Give a lock back.')
    .addHelpText('after', RELEASE_HELP)
    .action(async (name: string, flags: GrantFlags) => {
      const { release } = await import('./change.ts');
      await conclude(() => release(name, flags), flags.output);
    });
}

/** A command about one grant, which `acquire` named, or `run` to its CMD. */
function grantCommand(verb: string, description: string): Command {
  return new Command(verb)
    .description(description)
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .addOption(
      new Option('--session <id>', 'the session that holds it')
        .env('LEASEHOLD_SESSION_ID')
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--token <number>', 'the token of the grant')
        .env('LEASEHOLD_TOKEN')
        .argParser(parseToken)
        .makeOptionMandatory(),
    )
    .addOption(outputOption())
    .addOption(urlOption());
}

function lsCommand(): Command {
  return new Command('ls')
    .description('List locks that are held, waited for, delayed or quarantined.')
    .argument('[prefix]', 'an alias (payouts), or how names start (payouts/merchant-)', '')
    .addOption(outputOption())
    .addOption(urlOption())
    .addHelpText('after', LS_HELP)
    .action(async (prefix: string, flags: LookFlags) => {
      const { ls } = await import('./look.ts');
      await conclude(() => ls(prefix, flags), flags.output);
    });
}

function describeCommand(): Command {
  return new Command('describe')
    .description('Show who holds a lock, what for, and who waits for it.')
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .addOption(outputOption())
    .addOption(urlOption())
    .addHelpText('after', DESCRIBE_HELP)
    .action(async (name: string, flags: LookFlags) => {
      const { describe } = await import('./look.ts');
      await conclude(() => describe(name, flags), flags.output);
    });
}

const ACQUIRE_HELP = `
The lock is held until its deadline: renew it before ("leasehold renew"), or release it. To hold a lock while a
command runs, use "leasehold run", which renews, and ends the command when the lock is lost.
With -o json the answer (or the refusal) of the lock API as docs/API.md describes it: session_id, token,
lease_ttl_ms, deadline_in_ms; or code, message, holder.

Examples:
  leasehold acquire payouts/nightly --ttl 60s --purpose "repair by hand"
  leasehold acquire payouts/nightly --wait 30s -o json

Exit codes: 0 acquired, 120 held by somebody else or the wait is over, 121 the queue is full, 123 no lock API, or it
cannot serve, 125 wrong usage.
`;

const RENEW_HELP = `
Session and token are those that "leasehold acquire" printed; below "leasehold run" they come from the environment.
With -o json: session_id, token, lease_ttl_ms, deadline_in_ms.

Examples:
  leasehold renew payouts/nightly --session s-5f2e --token 1883228122926548

Exit codes: 0 renewed, 122 it is not held any more, 123 no lock API, or it cannot serve, 125 wrong usage.
`;

const RELEASE_HELP = `
Session and token are those that "leasehold acquire" printed. Releasing again what was released is no error.
With -o json: released, and already if it had been released before.

Examples:
  leasehold release payouts/nightly --session s-5f2e --token 1883228122926548

Exit codes: 0 released, 122 it was not held any more, 123 no lock API, or it cannot serve, 125 wrong usage.
`;

const LS_HELP = `
STATE: held, revoking (being taken away), delayed (free after the lock-delay), quarantined (out of service), or
waited for. HOLDER is the first one of several. With -o json: an array of locks as docs/API.md describes them.

Examples:
  leasehold ls
  leasehold ls payouts
  leasehold ls payouts/merchant- -o json

Exit codes: 0 listed (also if there are none), 123 no lock API, or it cannot serve, 125 wrong usage.
`;

const DESCRIBE_HELP = `
Positions count from 1, in the order in which the lock will be granted; of a long queue the first are shown.
With -o json: the lock as docs/API.md describes it.

Examples:
  leasehold describe payouts/nightly
  leasehold describe payouts/nightly -o json

Exit codes: 0 shown, also if it is free; 123 no lock API, or it cannot serve, 125 no such namespace or wrong usage.
`;
