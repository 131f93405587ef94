/** The `log` sub-command: flags and help. */
import { Command } from 'commander';
import { DATA_FOLDER_DEFAULT } from '../conventions.ts';
import { outputOption, parseIndex } from '../options.ts';
import { conclude } from '../output/outcome.ts';
import type { DumpFlags } from './dump.ts';

export function logCommand(): Command {
  return new Command('log').description('Look into the log of a LockNamespace.').addCommand(
    new Command('dump')
      .description('Print the entries of a log, also while a server writes it.')
      .argument('[folder]', 'data folder of leasehold dev, or the folder of one log', DATA_FOLDER_DEFAULT)
      .option('-n, --namespace <alias>', 'which log, when the folder holds several')
      .option('--from <index>', 'first entry; default: the oldest there is', parseIndex)
      .option('--events', 'what the commands caused, by replay, instead of the commands')
      .addOption(outputOption())
      .addHelpText('after', HELP)
      .action(async (folder: string, flags: DumpFlags) => {
        const { dump } = await import('./dump.ts');
        await conclude(() => dump(folder, flags), flags.output);
      }),
  );
}

const HELP = `
An entry is what was committed at once; a line is one of its commands ("-": an entry without any,
by which the leader makes sure that it still leads). Group time starts with the log and drives all
leases; wall time is for people. Fields that are empty, zero or false are left out.
With -o json: one JSON document a line, an entry each; with --events fit for "leasehold history check".

Examples:
  leasehold log dump
  leasehold log dump --namespace payouts --from 1000
  leasehold log dump -n payouts --events | grep 'name=merchant-1 '
  leasehold log dump /var/tmp/copy/payments.payouts --events -o json | leasehold history check -

Exit codes: 0 printed, 1 the log is damaged, 123 it cannot be read now, or not by this user, 125 no such log or wrong
usage.
`;
