/** `leasehold break` and `unquarantine`: an administrator changes what applications cannot. */
import { Metadata } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { LockView } from '../../api/wire.ts';
import { CODE_TRAILER } from '../../server/grpc/status.ts';
import { caller } from '../caller.ts';
import type { AdminTarget } from '../options.ts';
import { print } from '../output/outcome.ts';
import { person, word } from '../output/table.ts';
import { splitName } from './names.ts';
import { withAdminClient } from './with-admin-client.ts';

export interface BreakFlags extends AdminTarget {
  readonly token: number;
  readonly reason: string;
  readonly now?: true;
  readonly by?: string;
}

export interface UnquarantineFlags extends AdminTarget {
  readonly by?: string;
}

export async function breakLock(fullName: string, flags: BreakFlags): Promise<boolean> {
  const { token, reason, now = false, by = caller() } = flags;
  const { namespace, name } = splitName(fullName);
  await withAdminClient(flags, async (client) => {
    const refused = await client
      .breakLock({ namespace, name, token, now, reason, by })
      .then(() => null, codeOf);
    if (refused === null) return;
    const holders = holdersText(await client.getLock({ namespace, name }));
    throw new LeaseholdError(refused, `nothing was done: token ${token} is not in force; ${holders}`);
  });
  // Not that the name is free: others may hold it too, and whoever waited has it by now.
  const outcome = now ? 'is over' : 'is being taken away from its holder';
  await print(`${fullName}: the grant with token ${token} ${outcome}`);
  return true;
}

export async function unquarantine(fullName: string, flags: UnquarantineFlags) {
  const { by = caller() } = flags;
  const { namespace, name } = splitName(fullName);
  await withAdminClient(flags, (client) => client.unquarantine({ namespace, name, by }));
  await print(`${fullName} is back in service`);
  return true;
}

function holdersText({ holders }: LockView): string {
  if (holders.length === 0) return 'nobody holds the lock';
  const shown = holders.map(({ owner, purpose, token, heldForMs }) => {
    const what = purpose === '' ? '' : ` (${word(purpose)})`;
    return `${person(owner)}${what} holds it for ${Math.round(heldForMs / 1000)} s under token ${token}`;
  });
  return shown.join(', ');
}

/** With which code the call was refused because the holder had changed; rethrows any other error. */
function codeOf(error: unknown): 'STALE_TOKEN' | 'NOT_HELD' {
  if (error instanceof Error && 'metadata' in error && error.metadata instanceof Metadata) {
    const [code] = error.metadata.get(CODE_TRAILER);
    if (code === 'STALE_TOKEN' || code === 'NOT_HELD') return code;
  }
  throw error;
}
