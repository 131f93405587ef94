/** `leasehold history read`: what happened in a running server. */
import { withAdminClient } from '../admin/with-admin-client.ts';
import { UsageError } from '../errors.ts';
import type { AdminTarget } from '../options.ts';
import { print } from '../output/outcome.ts';

export interface ReadFlags extends AdminTarget {
  readonly namespace?: string;
  readonly from?: number;
  readonly follow?: boolean;
}

/** An entry that is not there yet is no error: the output is what there is, and why it is empty goes to standard error. */
export async function read(alias: string | undefined, flags: ReadFlags): Promise<boolean> {
  const { from = 0, follow = false } = flags;
  if (alias !== undefined && flags.namespace !== undefined && alias !== flags.namespace) {
    throw new UsageError(`two namespaces are named: ${alias}, and with --namespace ${flags.namespace}`);
  }
  const namespace = alias ?? flags.namespace ?? '';
  await withAdminClient(flags, async (client) => {
    let isEmpty = true;
    for await (const entry of client.readHistory({ namespace, from, follow })) {
      isEmpty = false;
      await print(JSON.stringify(entry));
    }
    if (!isEmpty || from === 0) return;
    const [status] = await client.status(namespace);
    const newest = Math.max(status?.logIndex ?? 0, status?.position.index ?? 0);
    console.error(
      `nothing to read from entry ${from} on: the newest one is ${newest}; --follow waits for it`,
    );
  });
  return true;
}
