/** The `run` sub-command: flags and help. */
import { Command } from 'commander';
import { modeOptions, parseMs, parseName, urlOption } from '../options.ts';
import type { RunFlags } from './run.ts';

export function runCommand(): Command {
  const command = new Command('run')
    .description('Run a command while holding a lock; end it before the lock can be lost.')
    .argument('<name>', 'lock, as payouts/nightly', parseName)
    .argument('[cmd...]', 'the command and its arguments, after --')
    .usage('[options] <name> -- <cmd...>')
    .option(
      '-w, --wait <duration>',
      'wait so long for the lock; default: as long as the LockNamespace allows',
      parseMs,
    )
    .option('--no-wait', 'do not wait at all')
    .option(
      '--skip-if-held',
      'exit with 0, silently, when somebody else holds it; waits only if --wait says so',
    )
    .option('--ttl <duration>', 'how long the lock outlives this process; default: of the service', parseMs)
    .option('--owner <text>', 'who holds it, for others to see; default: user@host')
    .option('--purpose <text>', 'what for, for others to see; default: the name of the program')
    .option('-q, --quiet', 'say nothing on standard error')
    .addOption(urlOption())
    .addHelpText('after', HELP)
    .action(async (name: string, cmd: readonly string[], flags: RunFlags) => {
      if (cmd.length === 0)
        command.error(`error: no command to run; it comes behind --: leasehold run ${name} -- CMD`);
      const { run } = await import('./run.ts');
      await run(name, cmd, flags);
    });
  for (const option of modeOptions()) command.addOption(option);
  return command;
}

const HELP = `
CMD is started only when the lock is held. It finds LEASEHOLD_TOKEN in its environment, the fencing token:
pass it on with every write, and let the resource refuse an older one. LEASEHOLD_NAME, LEASEHOLD_SESSION_ID
and LEASEHOLD_URL are there too.

When the lock cannot be renewed, is taken away or is lost, CMD and everything in its process group get
SIGTERM, and SIGKILL half a second before the lock can be granted to anybody else at the latest. A watchdog
process does that when this one is stopped or killed. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on.
When CMD has ended, what it left running in its process group is killed, and the lock is released.

Limits: CMD has a session of its own, so Ctrl-Z stops only this process (and the lock is then lost), and
CMD cannot open /dev/tty. A process that leaves CMD's process group is not ended. Needs a POSIX system.

Examples:
  leasehold run payouts/nightly -- ./pay-everybody.sh
  leasehold run deploys/production --wait 30m --purpose "release 41" -- make deploy
  leasehold run jobs/report --skip-if-held -- ./report.sh            (for cron: never twice at a time)
  leasehold run jobs/migrate -- sh -c 'psql -v token=$LEASEHOLD_TOKEN -f migrate.sql'

Exit codes: CMD's own, 128 + n if signal n ended it; 120 held by somebody else, or the wait is over; 121 the queue
is full; 122 the lock was lost and CMD ended (or not started); 123 no lock API, or it cannot serve; 125 wrong usage;
126 and 127 CMD cannot be run or is not there.
`;
