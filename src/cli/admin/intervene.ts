/** `leasehold break` and `unquarantine`: an administrator changes what applications cannot. */
import { Metadata } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { LockView } from '../../api/wire.ts';
import { CODE_TRAILER } from '../../server/grpc/status.ts';
import { caller } from '../caller.ts';
import { RefusedError } from '../errors.ts';
import type { AdminTarget, OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { person, word } from '../output/table.ts';
import { splitName } from './names.ts';
import { withAdminClient } from './with-admin-client.ts';

export interface BreakFlags extends AdminTarget {
  readonly token: number;
  readonly reason: string;
  readonly now?: true;
  readonly by?: string;
  readonly output: OutputFormat;
}

export interface UnquarantineFlags extends AdminTarget {
  readonly by?: string;
  readonly output: OutputFormat;
}

export async function breakLock(fullName: string, flags: BreakFlags): Promise<boolean> {
  const { token, reason, now = false, by = caller() } = flags;
  const { namespace, name } = splitName(fullName);
  await withAdminClient(flags, async (client) => {
    const refused = await client
      .breakLock({ namespace, name, token, now, reason, by })
      .then(() => null, codeOf);
    if (refused === null) return;
    const lock = await client.getLock({ namespace, name });
    const message = `nothing was done: token ${token} is not in force; ${holdersText(lock)}`;
    throw new LeaseholdError(refused, message, { holders: lock.holders.map(holderBody) });
  });
  // Not that the name is free: others may hold it too, and whoever waited has it by now.
  const outcome = now ? 'is over' : 'is being taken away from its holder';
  const line = `${fullName}: the grant with token ${token} ${outcome}`;
  await print(flags.output === 'json' ? JSON.stringify({ name: fullName, token, now }) : line);
  return true;
}

export async function unquarantine(fullName: string, flags: UnquarantineFlags) {
  const { by = caller() } = flags;
  const { namespace, name } = splitName(fullName);
  await withAdminClient(flags, async (client) => {
    const refusal = await client.unquarantine({ namespace, name, by }).then(
      () => null,
      (error: unknown) => error,
    );
    if (refusal === null) return;
    const { quarantined } = await client.getLock({ namespace, name });
    if (quarantined) throw refusal;
    throw new RefusedError(
      `nothing was done: ${fullName} is not quarantined; "leasehold ls ${namespace}/" shows what each name is`,
    );
  });
  const line = `${fullName} is back in service`;
  await print(flags.output === 'json' ? JSON.stringify({ name: fullName }) : line);
  return true;
}

/** As docs/API.md has them. */
function holderBody({ owner, purpose, token, heldForMs }: LockView['holders'][number]): object {
  return { owner, purpose, token, held_for_ms: Math.floor(heldForMs) };
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
