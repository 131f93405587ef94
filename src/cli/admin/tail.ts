/** `leasehold tail`: events as they are committed, of one namespace or of all that are served when it starts. */
import type { HistoryEntry, LockEvent } from '../../api/entry.ts';
import type { AdminClient } from '../admin-client.ts';
import { UsageError } from '../errors.ts';
import { eventLine, headLine } from '../history/lines.ts';
import type { AdminTarget, OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { splitPrefix } from './names.ts';
import { withAdminClient } from './with-admin-client.ts';

export interface TailFlags extends AdminTarget {
  readonly from?: number;
  readonly output: OutputFormat;
}

interface Followed {
  readonly namespace: string;
  /** Its first entry to be shown. */
  readonly from: number;
}

export async function tail(prefix: string, flags: TailFlags): Promise<boolean> {
  const { from, output } = flags;
  const { namespace: asked, namePrefix } = splitPrefix(prefix);
  await withAdminClient(flags, async (client) => {
    const all = await find(client, asked, from);
    const lineOf = output === 'json' ? jsonLine : all.length === 1 ? tableLine : labelledLine(all);
    if (output === 'table') await print(all.length === 1 ? headLine('EVENT') : labelledHead(all));
    const over = new AbortController();
    const follow = async ({ namespace, from }: Followed): Promise<void> => {
      for await (const entry of client.readHistory({ namespace, from, follow: true }, over.signal)) {
        const events = entry.events.filter((event) => isAbout(event, namePrefix));
        for (const event of events) await print(lineOf(namespace, entry, event));
      }
    };
    // Whoever follows several and misses one of them without a word would take silence for peace.
    await Promise.all(all.map(follow)).finally(() => over.abort());
  });
  return true;
}

/** The namespaces meant, each with the entry to begin with: `from`, or the one that will be committed next. */
async function find(client: AdminClient, asked: string, from: number | undefined): Promise<Followed[]> {
  const served = await client.status(asked);
  if (served.length === 0) throw new UsageError('no namespace is served here');
  if (from !== undefined && served.length > 1) {
    const names = served.map(({ namespace }) => namespace).join(', ');
    throw new UsageError(`--from is an index of one log: name one of those served here: ${names}`);
  }
  return served.map(({ namespace, position }) => ({ namespace, from: from ?? position.index + 1 }));
}

function labelWidth(all: readonly Followed[]): number {
  return Math.max('NAMESPACE'.length, ...all.map(({ namespace }) => namespace.length));
}

function labelledHead(all: readonly Followed[]): string {
  return `${'NAMESPACE'.padEnd(labelWidth(all))}  ${headLine('EVENT')}`;
}

/** Names in events have no alias, so it stands before them. */
function labelledLine(all: readonly Followed[]) {
  const width = labelWidth(all);
  return (namespace: string, entry: HistoryEntry, event: LockEvent): string =>
    `${namespace.padEnd(width)}  ${eventLine(entry, event)}`;
}

function tableLine(_namespace: string, entry: HistoryEntry, event: LockEvent): string {
  return eventLine(entry, event);
}

function isAbout(event: LockEvent, namePrefix: string): boolean {
  return namePrefix === '' || ('name' in event && event.name.startsWith(namePrefix));
}

function jsonLine(namespace: string, { index, epoch, at, wallMs }: HistoryEntry, event: LockEvent): string {
  return JSON.stringify({ namespace, index, epoch, at, wallMs, event });
}
