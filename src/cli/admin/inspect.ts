/**
 * `leasehold inspect`: the figures of a running lock server, through its admin socket.
 */
import type { NamespaceStatus } from '../admin-client.ts';
import type { AdminTarget, OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { table } from '../output/table.ts';
import { withAdminClient } from './with-admin-client.ts';

export interface InspectFlags extends AdminTarget {
  readonly output: OutputFormat;
}

const HEAD = [
  'ALIAS',
  'SERVER',
  'ROLE',
  'LOCKNAMESPACE',
  'CLASS',
  'TTL',
  'SESSIONS',
  'HELD',
  'WAITING',
  'QUEUE',
  'EPOCH',
  'INDEX',
  'LAG',
  'LOG',
];

export async function inspect(alias: string, flags: InspectFlags): Promise<boolean> {
  const all = await withAdminClient(flags, (client) => client.status(alias));
  const lines = flags.output === 'json' ? [JSON.stringify(all, null, 2)] : table(HEAD, all.map(rowOf));
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
    Math.max(0, status.logIndex - position.index),
    status.logBytes,
  ];
  return [alias, status.serverId, status.role, ...ofConfig, ...figures.map(String)];
}
