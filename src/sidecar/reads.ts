/**
 * Reads through a lock group's stream, for the sidecar's API: one lock, lists over namespaces, and what an error needs to say.
 */
import { LeaseholdError } from '../api/errors.ts';
import type { LockView, ReadQuery, ReadResult } from '../api/wire.ts';
import type { GroupClient } from './group-client.ts';
import { errorOf, wrongGroup } from './refusals.ts';
import type { ListOptions } from './service.ts';

const READ_MS_MAX = 5_000;

export interface ReadTarget {
  readonly alias: string;
  readonly group: GroupClient;
}

/** What is known to keep the group from serving this sidecar; null: nothing, or it does not answer. */
export function trouble({ alias, group }: ReadTarget): LeaseholdError | null {
  const { halted, refused } = group;
  if (halted !== null) {
    return new LeaseholdError('UNAVAILABLE', `the lock service of ${alias} has halted: ${halted}`);
  }
  if (refused === null) return null;
  const message = `the lock service of ${alias} refuses the identity of this sidecar: ${refused.message}. Look at the file that its setting "token" names, and at "tokens" and "consumers" of the lock servers`;
  return new LeaseholdError(refused.code, message);
}

export function unavailable(target: ReadTarget): LeaseholdError {
  const message = `the lock service of ${target.alias} does not answer right now`;
  return trouble(target) ?? new LeaseholdError('UNAVAILABLE', message);
}

export async function readLock(
  target: ReadTarget,
  name: string,
  limitMs: number = READ_MS_MAX,
): Promise<LockView> {
  const result = await read(target, { type: 'getLock', name }, limitMs);
  if (result.type !== 'lock') throw unavailable(target);
  return result.lock;
}

async function read(
  target: ReadTarget,
  query: ReadQuery,
  limitMs: number = READ_MS_MAX,
): Promise<ReadResult> {
  const answer = await target.group.read(query, limitMs);
  if (answer === null) throw unavailable(target);
  if (answer.type === 'lock' || answer.type === 'locks') return answer;
  if (answer.type === 'wrongGroup') throw wrongGroup(answer.mapVersion);
  if (answer.type !== 'rejected') throw unavailable(target);
  throw errorOf(answer);
}

export function notServed(what: string, targets: Iterable<{ readonly alias: string }>): LeaseholdError {
  const served = Array.from(targets, ({ alias }) => alias).join(', ') || 'nothing';
  const message = `no namespace is served as ${JSON.stringify(what)}; served here: ${served}`;
  return new LeaseholdError('NAMESPACE_NOT_FOUND', message);
}

/**
 * Locks of all namespaces in order of alias, then name; `next` names the last one when there may be more.
 * @throws NAMESPACE_NOT_FOUND when the prefix can be that of no lock, whatever is held
 */
export async function listLocks(
  targets: readonly ReadTarget[],
  { prefix, limit, after = '' }: ListOptions,
): Promise<{ readonly locks: readonly LockView[]; readonly next?: string }> {
  if (prefix !== '' && !targets.some(({ alias }) => withinNamespace(alias, prefix, '') !== null)) {
    const [alias = prefix] = prefix.split('/', 1);
    throw notServed(alias, targets).with({ field: 'prefix' });
  }
  const locks: LockView[] = [];
  const ordered = [...targets].sort((a, b) => (a.alias < b.alias ? -1 : 1));
  for (const target of ordered) {
    const within = withinNamespace(target.alias, prefix, after);
    if (within === null) continue;
    const result = await read(target, { type: 'listLocks', ...within, limit: limit - locks.length });
    if (result.type !== 'locks') throw unavailable(target);
    locks.push(...result.locks.map((lock) => ({ ...lock, name: `${target.alias}/${lock.name}` })));
    const last = locks.at(-1);
    if (last !== undefined && (result.more || locks.length >= limit)) return { locks, next: last.name };
  }
  return { locks };
}

/** A prefix and a place to go on from, both over full names, as they apply below one alias; null when nothing can match. */
function withinNamespace(
  alias: string,
  prefix: string,
  after: string,
): { readonly prefix: string; readonly after: string } | null {
  const own = `${alias}/`;
  if (!own.startsWith(prefix) && !prefix.startsWith(own)) return null;
  const afterAlias = after.slice(0, Math.max(0, after.indexOf('/')));
  if (after !== '' && alias < afterAlias) return null;
  return {
    prefix: prefix.startsWith(own) ? prefix.slice(own.length) : '',
    after: after.startsWith(own) ? after.slice(own.length) : '',
  };
}

/** Who is no consumer any more may not look who has the lock; that its own grant is over it is told all the same. */
function unlessForbidden(error: unknown): null {
  if (error instanceof LeaseholdError && error.code === 'FORBIDDEN') return null;
  throw error;
}

/** STALE_TOKEN when the lock is held under a higher token, else NOT_HELD; names who has it (case C12). */
export async function notHeldError(
  target: ReadTarget,
  name: string,
  token: number,
  limitMs?: number,
): Promise<LeaseholdError> {
  const lock = await readLock(target, name, limitMs).catch(unlessForbidden);
  if (lock === null) {
    const known = { name: `${target.alias}/${name}`, token };
    return new LeaseholdError('NOT_HELD', `token ${token} does not hold this lock`, known);
  }
  const { holders, lockDelayMs } = lock;
  const holder = holders[0] ?? null;
  const details = { name: `${target.alias}/${name}`, token, holder, lock_delay_ms: lockDelayMs };
  const newest = holders.at(-1)?.token ?? 0;
  // Of several holders one may have this very token, in another session.
  if (newest > token && !holders.some((one) => one.token === token)) {
    return new LeaseholdError('STALE_TOKEN', `the lock is held under the higher token ${newest}`, details);
  }
  return new LeaseholdError('NOT_HELD', `token ${token} does not hold this lock`, details);
}
