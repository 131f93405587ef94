/** `leasehold tail`: events as they are committed. */
import type { HistoryEntry, LockEvent } from '../../api/entry.ts';
import type { AdminClient } from '../admin-client.ts';
import { UsageError } from '../errors.ts';
import { eventLine, headLine } from '../history/lines.ts';
import type { OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { splitPrefix } from './names.ts';
import { withAdminClient } from './with-admin-client.ts';

export interface TailFlags {
  readonly data: string;
  readonly from?: number;
  readonly output: OutputFormat;
}

export async function tail(prefix: string, { data, from, output }: TailFlags): Promise<boolean> {
  const { namespace: asked, namePrefix } = splitPrefix(prefix);
  await withAdminClient(data, async (client) => {
    const { namespace, next } = await find(client, asked);
    if (output === 'table') await print(headLine('EVENT'));
    for await (const entry of client.readHistory({ namespace, from: from ?? next, follow: true })) {
      for (const event of entry.events.filter((one) => isAbout(one, namePrefix))) {
        await print(output === 'table' ? eventLine(entry, event) : jsonLine(namespace, entry, event));
      }
    }
  });
  return true;
}

/** The namespace meant, and the entry that will be committed next. */
async function find(client: AdminClient, asked: string) {
  const served = await client.status(asked);
  const [only, ...others] = served;
  if (only === undefined) throw new UsageError('no namespace is served here');
  if (others.length === 0) return { namespace: only.namespace, next: only.position.index + 1 };
  throw new UsageError(
    `name one of those served here: ${served.map(({ namespace }) => namespace).join(', ')}`,
  );
}

function isAbout(event: LockEvent, namePrefix: string): boolean {
  return namePrefix === '' || ('name' in event && event.name.startsWith(namePrefix));
}

function jsonLine(namespace: string, { index, epoch, at, wallMs }: HistoryEntry, event: LockEvent): string {
  return JSON.stringify({ namespace, index, epoch, at, wallMs, event });
}
