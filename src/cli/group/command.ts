/** The `group` sub-commands: flags and help. */
import { Command } from 'commander';
import type { UpFlags } from './group.ts';

const GROUP_FOLDER_DEFAULT = '.leasehold/group';

export function groupCommand(): Command {
  const group = new Command('group').description(
    'A whole lock group on this machine, to try what it survives.',
  );
  group
    .command('up')
    .description('Start three etcd members, three lock servers and a sidecar; again: those that have ended.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .option('-f, --filename <manifest>', 'a LockNamespace; default: one called "locks"')
    .option('--etcd <program>', 'the etcd to run; default: the one that a checkout of the project builds')
    .addHelpText('after', UP_HELP)
    .action(async (flags: UpFlags) => (await import('./group.ts')).runUp(flags));
  group
    .command('status')
    .description('Show its processes, who leads, and how far each server is.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .action(async ({ dir }: { readonly dir: string }) => (await import('./group.ts')).runStatus(dir));
  group
    .command('down')
    .description('End its processes. What they have written stays, and "up" goes on with it.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .action(async ({ dir }: { readonly dir: string }) => (await import('./group.ts')).runDown(dir));
  return group;
}

const UP_HELP = `
The processes go on when this command has ended; "leasehold group down" ends them. All of them listen on
127.0.0.1, on ports that were free when the group was made.

Exit codes: 0 it serves, 123 something does not start (its log says why), 125 wrong usage.
`;
