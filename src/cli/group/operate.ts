/** `leasehold group members`, `hand-over`, `snapshot` and `audit`: through the admin socket of any server of the group. */
import type { AuditResponse, MembersResponse } from '../../server/grpc/messages.ts';
import { withAdminClient } from '../admin/with-admin-client.ts';
import { thisCall } from '../invocation.ts';
import type { AdminTarget, OutputFormat } from '../options.ts';
import { print, verdict } from '../output/outcome.ts';
import { table } from '../output/table.ts';

export interface OfGroup extends AdminTarget {
  readonly namespace?: string;
  readonly output: OutputFormat;
}

const HEAD = ['SERVER', 'ROLE', 'EPOCH', 'INDEX', 'LAG', 'CONNECTED', 'CLIENTS', 'PROBLEM'];

/** False: one of them could not take over at once. */
export async function members(flags: OfGroup): Promise<boolean> {
  const answer = await withAdminClient(flags, (client) => client.members(flags.namespace ?? ''));
  const rows = answer.members.map((member) => [
    member.serverId,
    member.role,
    ...figuresOf(member),
    member.problem,
  ]);
  const lines = flags.output === 'json' ? [JSON.stringify(answer, null, 2)] : table(HEAD, rows);
  const isWhole = verdict(answer.members.every(({ problem }) => problem === ''));
  for (const line of lines) await print(line);
  return isWhole;
}

/** Nothing is known of one that does not answer: least of all that it is not behind. */
function figuresOf({
  role,
  position,
  lag,
  connected,
  clients,
}: MembersResponse['members'][number]): string[] {
  if (role === 'unreachable') return ['-', '-', '-', 'no', '-'];
  return [`${position.epoch}`, `${position.index}`, `${lag}`, connected ? 'yes' : 'no', `${clients}`];
}

export async function handOver(flags: OfGroup & { readonly to?: string }): Promise<boolean> {
  const { to = '' } = flags;
  const answer = await withAdminClient(flags, (client) => client.handOver(flags.namespace ?? '', to));
  const line = `${answer.to} leads instead of ${answer.from}, after ${answer.tookMs} ms`;
  await print(flags.output === 'json' ? JSON.stringify(answer) : line);
  return to === '' || answer.to === to;
}

export async function snapshot(flags: OfGroup): Promise<boolean> {
  const answer = await withAdminClient(flags, (client) => client.snapshot(flags.namespace ?? ''));
  const line = `a snapshot of the state at entry ${answer.index}: ${answer.bytes} bytes, after ${answer.tookMs} ms`;
  await print(flags.output === 'json' ? JSON.stringify(answer) : line);
  return true;
}

export interface AuditFlags extends OfGroup {
  readonly forget?: true;
}

export async function audit(flags: AuditFlags): Promise<boolean> {
  const { namespace = '', output } = flags;
  if (flags.forget === true) {
    const answer = await withAdminClient(flags, (client) => client.forgetAudit(namespace));
    const line = answer.hadCursor ? `given up, at entry ${answer.cursor}` : 'there was no audit cursor';
    await print(output === 'json' ? JSON.stringify(answer) : line);
    return true;
  }
  const answer = await withAdminClient(flags, (client) => client.audit(namespace));
  const lagEntries = answer.hasCursor ? Math.max(0, answer.logIndex - answer.cursor) : 0;
  const lines =
    output === 'json'
      ? [JSON.stringify({ ...answer, lagEntries })]
      : auditLines(answer, lagEntries, `${thisCall()} --forget`);
  for (const line of lines) await print(line);
  return true;
}

function auditLines(
  { hasCursor, cursor, logIndex, lagBytes, serverId, sink }: AuditResponse,
  lag: number,
  forget: string,
): string[] {
  const who =
    sink === ''
      ? `server ${serverId} leads and does not export`
      : `server ${serverId} leads and exports to ${sink}`;
  if (!hasCursor) return [`${who}; there is no audit cursor`];
  const lines = [
    `${who}; exported up to entry ${cursor} of ${logIndex}: ${lag} entries behind, ${lagBytes} bytes of the log`,
  ];
  if (sink === '') lines.push(`the log waits for an exporter; if there is to be none any more: ${forget}`);
  return lines;
}
