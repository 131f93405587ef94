/** `leasehold history read`: what happened in a running server. */
import { withAdminClient } from '../admin/with-admin-client.ts';
import { print } from '../output/outcome.ts';

export interface ReadFlags {
  readonly data: string;
  readonly namespace?: string;
  readonly from?: number;
  readonly follow?: boolean;
}

export async function read({ data, namespace = '', from = 0, follow = false }: ReadFlags): Promise<boolean> {
  await withAdminClient(data, async (client) => {
    for await (const entry of client.readHistory({ namespace, from, follow }))
      await print(JSON.stringify(entry));
  });
  return true;
}
