/** `leasehold history read`: what happened in a running server. */
import { withAdminClient } from '../admin/with-admin-client.ts';
import type { AdminTarget } from '../options.ts';
import { print } from '../output/outcome.ts';

export interface ReadFlags extends AdminTarget {
  readonly namespace?: string;
  readonly from?: number;
  readonly follow?: boolean;
}

export async function read(flags: ReadFlags): Promise<boolean> {
  const { namespace = '', from = 0, follow = false } = flags;
  await withAdminClient(flags, async (client) => {
    for await (const entry of client.readHistory({ namespace, from, follow }))
      await print(JSON.stringify(entry));
  });
  return true;
}
