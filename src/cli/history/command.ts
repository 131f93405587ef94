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
    .argument('[alias]', 'which namespace, when it serves several')
    .option('-n, --namespace <alias>', 'the same')
    .option('--from <index>', 'first entry; default: the oldest there is', parseIndex)
    .option('--follow', 'go on with what happens from now on, until interrupted')
    .addHelpText('after', READ_HELP)
    .action(async (alias: string | undefined, flags: ReadFlags) => {
      const { read } = await import('./read.ts');
      await conclude(() => read(alias, flags));
    });
}

function checkCommand(): Command {
  return new Command('check')
    .description('Judge a history: exclusion, order of the queue, rising tokens, expiry, and more.')
    .argument(
      '<files...>',
      'lines as "history read", "log dump --events -o json" and the audit exporter write them; - = standard input',
    )
    .addOption(outputOption())
    .addHelpText('after', CHECK_HELP)
    .action(async (files: readonly string[], flags: CheckFlags) => {
      const { check } = await import('./check.ts');
      await conclude(() => check(files, flags), flags.output);
    });
}

const READ_HELP = `
Where one namespace is served it need not be named. When --from names an entry that is not there yet, nothing is printed,
and standard error says which one is the newest.

Examples:
  leasehold history read payouts > payouts.ndjson
  leasehold history read payouts --from 1000 --follow
  leasehold history read payouts | leasehold history check -

Exit codes: 0 read, 123 no server serves there (or it stopped), 125 no such namespace or wrong usage.
`;

const CHECK_HELP = `
Several files are read as one log: the exports of the servers of a group, or a rotated file and its successors. What
is there twice counts once, and must be the same. A history that does not begin with entry 1, or has gaps because the
log was trimmed before it was exported, is judged as far as it goes; the verdict says what was left open.
While it takes long, its progress is on standard error.

Examples:
  leasehold history check payouts.ndjson
  leasehold history check server-a.ndjson server-b.ndjson server-c.ndjson
  leasehold log dump -n payouts --events -o json | leasehold history check -

Exit codes: 0 nothing was broken, 1 a promise was broken, or an entry is there twice with different contents,
125 a file is no history or wrong usage.
`;
