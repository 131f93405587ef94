/** The `history` sub-commands: flags and help. */
import { Command } from 'commander';
import { outputOption, parseIndex, withAdminOptions } from '../options.ts';
import { conclude } from '../output/outcome.ts';
import type { CheckFlags } from './check.ts';
import type { ReadFlags } from './read.ts';

export function historyCommand(): Command {
  return new Command('history')
    .description('Read what happened, and check it against what is promised.')
    .addCommand(withAdminOptions(readCommand()))
    .addCommand(checkCommand());
}

function readCommand(): Command {
  return new Command('read')
    .description('Print committed entries with their events, one JSON document a line.')
    .option('-n, --namespace <alias>', 'which namespace, when it serves several')
    .option('--from <index>', 'first entry; default: the oldest there is', parseIndex)
    .option('--follow', 'go on with what happens from now on, until interrupted')
    .addHelpText('after', READ_HELP)
    .action(async (flags: ReadFlags) => {
      const { read } = await import('./read.ts');
      await conclude(() => read(flags));
    });
}

function checkCommand(): Command {
  return new Command('check')
    .description('Judge a whole history: exclusion, order of the queue, rising tokens, expiry, and more.')
    .argument(
      '<file>',
      'lines as "history read" and "log dump --events -o json" print them; - = standard input',
    )
    .addOption(outputOption())
    .addHelpText('after', CHECK_HELP)
    .action(async (file: string, flags: CheckFlags) => {
      const { check } = await import('./check.ts');
      await conclude(() => check(file, flags));
    });
}

const READ_HELP = `
Examples:
  leasehold history read -n payouts > payouts.ndjson
  leasehold history read -n payouts --from 1000 --follow
  leasehold history read -n payouts | leasehold history check -

Exit codes: 0 read, 123 no server serves there (or it stopped), 125 no such namespace or wrong usage.
`;

const CHECK_HELP = `
The history must begin with entry 1: who held what before its first line could only be guessed.

Examples:
  leasehold history check payouts.ndjson
  leasehold log dump -n payouts --events -o json | leasehold history check -

Exit codes: 0 every promise was kept, 1 one was broken, 125 the file is no whole history or wrong usage.
`;
