/** The sub-commands that use the admin socket of a running lock server: inspect, break, unquarantine, tail. Flags and help. */
import { Command } from 'commander';
import { outputOption, parseIndex, parseName, parseToken, withAdminOptions } from '../options.ts';
import { conclude } from '../output/outcome.ts';
import type { InspectFlags } from './inspect.ts';
import type { BreakFlags, UnquarantineFlags } from './intervene.ts';
import type { TailFlags } from './tail.ts';

export function adminCommands(): Command[] {
  return [breakCommand(), unquarantineCommand(), tailCommand(), inspectCommand()].map(withAdminOptions);
}

function breakCommand(): Command {
  return new Command('break')
    .description('Take a lock away from its holder.')
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .requiredOption('--token <number>', 'the grant that is meant, as "describe" shows it', parseToken)
    .requiredOption('--reason <text>', 'why; goes on record')
    .option('--now', 'free at once, although the holder may still act; recorded as unsafe')
    .option('--by <text>', 'who says so, for the record; default: user@host')
    .addOption(outputOption())
    .addHelpText('after', BREAK_HELP)
    .action(async (name: string, flags: BreakFlags) => {
      const { breakLock } = await import('./intervene.ts');
      await conclude(() => breakLock(name, flags), flags.output);
    });
}

function unquarantineCommand(): Command {
  return new Command('unquarantine')
    .description('Put a lock back into service after a fault.')
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .option('--by <text>', 'who says so, for the record; default: user@host')
    .addOption(outputOption())
    .addHelpText('after', UNQUARANTINE_HELP)
    .action(async (name: string, flags: UnquarantineFlags) => {
      const { unquarantine } = await import('./intervene.ts');
      await conclude(() => unquarantine(name, flags), flags.output);
    });
}

function tailCommand(): Command {
  return new Command('tail')
    .description('Follow what happens to locks, as it is committed.')
    .argument(
      '[prefix]',
      'an alias (payouts), or how names start (payouts/merchant-); default: all that is served',
      '',
    )
    .option(
      '--from <index>',
      'begin with this entry of the log of one namespace; default: with what happens from now on',
      parseIndex,
    )
    .addOption(outputOption())
    .addHelpText('after', TAIL_HELP)
    .action(async (prefix: string, flags: TailFlags) => {
      const { tail } = await import('./tail.ts');
      await conclude(() => tail(prefix, flags), flags.output);
    });
}

function inspectCommand(): Command {
  return new Command('inspect')
    .description('Show the namespaces that a lock server serves, by its own account.')
    .argument('[alias]', 'only this one')
    .addOption(outputOption())
    .addHelpText('after', INSPECT_HELP)
    .action(async (alias: string | undefined, flags: InspectFlags) => {
      const { inspect } = await import('./inspect.ts');
      await conclude(() => inspect(alias ?? '', flags), flags.output);
    });
}

const BREAK_HELP = `
The holder is told, and the name is free when it has given the lock up, or one TTL later, and after the
lock-delay. --now does not wait for any of that: only the token then protects the resource.
The token says which grant is meant; if somebody else holds the lock by now, nothing is done, and who does is shown.
With -o json: {name, token, now}; or code, message and holders.

Examples:
  leasehold break payouts/nightly --token 1883228122926548 --reason "hangs since 02:10, INC-77"
  leasehold break payouts/nightly --token 1883228122926548 --now --reason "host is gone for good"

Exit codes: 0 it is being taken away, 122 that grant is over already, 123 no server serves there,
125 no such namespace or wrong usage.
`;

const UNQUARANTINE_HELP = `
A lock whose timers met a fault in the server is granted to nobody until this is called; "leasehold describe" and
"leasehold ls" show it as quarantined. Look at the cause first. With -o json: {name}.

Examples:
  leasehold unquarantine payouts/nightly

Exit codes: 0 it is back in service, 123 no server serves there, 125 it was not quarantined, no such
namespace, or wrong usage.
`;

const TAIL_HELP = `
One line for each event; sessions are shown too unless the prefix goes into the names of locks. Without a prefix: all
namespaces that are served when it starts. Runs until it is interrupted, or one of them is served no more.
With -o json: one object a line, {namespace, index, epoch, at, wallMs, event}; "event" has its kind in "type" and the
lock, without alias, in "name". For programs that must miss nothing: "leasehold history read".

Examples:
  leasehold tail
  leasehold tail payouts/merchant-
  leasehold tail payouts --from 1 -o json

Exit codes: 123 no server serves there, or it stopped; 125 no such namespace or wrong usage.
`;

const INSPECT_HELP = `
HELD and WAITING count grants and waiters now, QUEUE the waiters of the most wanted lock; INDEX is the
newest entry that the server has applied, LAG how many it has not yet, EPOCH counts the leaders, LOG is what a
restart has to read (bytes). In a group any server answers for itself: "leasehold group members" shows them all.
-o json has more, among it the configuration in force.

Examples:
  leasehold inspect
  leasehold inspect payouts -d /tmp/locks -o json

Exit codes: 0 shown, 123 no server serves there, 125 no such namespace or wrong usage.
`;
