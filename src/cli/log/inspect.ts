/**
 * `leasehold inspect`: the figures of a running `leasehold dev`, through its admin socket.
 */
import { Command } from 'commander';
import type { NamespaceStatus } from '../admin-client.ts';
import { DATA_FOLDER_DEFAULT } from '../conventions.ts';
import { conclude, outputOption, print } from './outcome.ts';
import { table } from './table.ts';
import { withAdminClient } from './with-admin-client.ts';

interface InspectFlags {
  readonly data: string;
  readonly output: 'table' | 'json';
}

export function inspectCommand(): Command {
  return new Command('inspect')
    .description('Show the namespaces that a running leasehold dev serves.')
    .argument('[alias]', 'only this one')
    .option('-d, --data <folder>', 'its data folder', DATA_FOLDER_DEFAULT)
    .addOption(outputOption())
    .addHelpText('after', HELP)
    .action((alias: string | undefined, flags: InspectFlags) => conclude(() => inspect(alias ?? '', flags)));
}

const HELP = `
HELD and WAITING count grants and waiters now, QUEUE the waiters of the most wanted lock; INDEX is the
newest entry of the log, EPOCH counts its leaders, LOG is what a restart has to read (bytes).
-o json has more, among it the configuration in force.

Examples:
  leasehold inspect
  leasehold inspect payouts -d /tmp/locks -o json

Exit codes: 0 shown, 123 no server serves this data folder, 125 no such namespace or wrong usage.
`;

const HEAD = [
  'ALIAS',
  'LOCKNAMESPACE',
  'CLASS',
  'TTL',
  'SESSIONS',
  'HELD',
  'WAITING',
  'QUEUE',
  'EPOCH',
  'INDEX',
  'LOG',
];

async function inspect(alias: string, { data, output }: InspectFlags): Promise<boolean> {
  const all = await withAdminClient(data, (client) => client.status(alias));
  const lines = output === 'json' ? [JSON.stringify(all, null, 2)] : table(HEAD, all.map(rowOf));
  for (const line of lines) await print(line);
  return true;
}

function rowOf(status: NamespaceStatus): string[] {
  const { namespace: alias, config, position } = status;
  const ofConfig =
    config === null
      ? ['(deleted)', '-', '-']
      : [`${config.namespace}/${config.name}`, config.safetyClass, `${config.ttlMs / 1000} s`];
  const figures = [
    status.sessions,
    status.held,
    status.waiting,
    status.longestQueue,
    position.epoch,
    position.index,
    status.logBytes,
  ];
  return [alias, ...ofConfig, ...figures.map(String)];
}
