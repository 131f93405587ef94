/** `leasehold acquire`, `renew` and `release`: one call of the lock API each. */
import { formatDuration } from '../../api/duration.ts';
import { caller } from '../caller.ts';
import type { Acquired, Renewed } from '../http/answers.ts';
import { LockApi } from '../http/lock-api.ts';
import { type ModeFlags, modeOf, type OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { listing } from '../output/table.ts';

interface ApiFlags {
  readonly url: string;
  readonly output: OutputFormat;
}

export interface AcquireFlags extends ApiFlags, ModeFlags {
  /** Milliseconds, as `ttl`. */
  readonly wait?: number;
  readonly ttl?: number;
  readonly owner?: string;
  readonly purpose?: string;
}

export interface GrantFlags extends ApiFlags {
  readonly session: string;
  readonly token: number;
}

export async function acquire(name: string, flags: AcquireFlags): Promise<boolean> {
  const { wait = 0, ttl, owner, purpose } = flags;
  const body = {
    client: caller(),
    wait_ms: wait,
    ...modeOf(flags),
    ...(ttl !== undefined && { ttl_s: ttl / 1000 }),
    ...(owner !== undefined && { owner }),
    ...(purpose !== undefined && { purpose }),
  };
  return call(flags, name, (api) => api.acquire(name, body), grantRows);
}

export async function renew(name: string, flags: GrantFlags): Promise<boolean> {
  return call(flags, name, (api) => api.renew(name, grantOf(flags)), grantRows);
}

export async function release(name: string, flags: GrantFlags): Promise<boolean> {
  return call(
    flags,
    name,
    (api) => api.release(name, grantOf(flags)),
    ({ already }) => [['released', already === true ? 'before' : 'now']],
  );
}

async function call<Answer extends object>(
  { url, output }: ApiFlags,
  name: string,
  work: (api: LockApi) => Promise<Answer>,
  rows: (answer: Answer) => readonly (readonly [string, string])[],
): Promise<boolean> {
  const answer = await work(new LockApi(url));
  const lines = output === 'json' ? [JSON.stringify(answer)] : listing([['name', name], ...rows(answer)]);
  for (const line of lines) await print(line);
  return true;
}

function grantRows(grant: Acquired | Renewed): readonly (readonly [string, string])[] {
  return [
    ['token', String(grant.token)],
    ['session', grant.session_id],
    ['ttl', formatDuration(grant.lease_ttl_ms)],
    ['deadline in', `${(grant.deadline_in_ms / 1000).toFixed(1)} s`],
  ];
}

function grantOf({ session, token }: GrantFlags) {
  return { session_id: session, token };
}
