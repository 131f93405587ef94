/** `leasehold ls` and `describe`: what the lock API shows of locks. */
import type { Holder, Lock } from '../http/answers.ts';
import { LockApi } from '../http/lock-api.ts';
import type { OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { listing, person, table, word } from '../output/table.ts';

export interface LookFlags {
  readonly url: string;
  readonly output: OutputFormat;
}

const LS_HEAD = ['NAME', 'STATE', 'HOLDER', 'TOKEN', 'HELD FOR', 'WAITING', 'PURPOSE'];
const QUEUE_HEAD = ['POSITION', 'OWNER', 'MODE', 'WAITED'];

/** An alias alone means all its locks. */
export async function ls(prefix: string, { url, output }: LookFlags): Promise<boolean> {
  const whole = prefix === '' || prefix.includes('/') ? prefix : `${prefix}/`;
  const locks: Lock[] = [];
  for await (const lock of new LockApi(url).locks(whole)) locks.push(lock);
  const lines = output === 'json' ? [JSON.stringify(locks, null, 2)] : table(LS_HEAD, locks.map(lsRow));
  for (const line of lines) await print(line);
  return true;
}

export async function describe(name: string, { url, output }: LookFlags): Promise<boolean> {
  const lock = await new LockApi(url).lock(name);
  const lines = output === 'json' ? [JSON.stringify(lock, null, 2)] : describeLines(lock);
  for (const line of lines) await print(line);
  return true;
}

function lsRow(lock: Lock): string[] {
  const [first] = lock.holders;
  const more = lock.holder_count <= 1 ? '' : ` +${lock.holder_count - 1}`;
  const holder =
    first === undefined
      ? ['-', '-', '-']
      : [`${person(first.owner)}${more}`, String(first.token), seconds(first.held_for_ms)];
  const purpose = first === undefined || first.purpose === '' ? '' : word(first.purpose);
  return [word(lock.name), stateOf(lock), ...holder, String(lock.waiters), purpose];
}

function describeLines(lock: Lock): string[] {
  const facts: (readonly [string, string])[] = [
    ['name', word(lock.name)],
    ['state', stateOf(lock)],
  ];
  if (lock.lock_delay_ms > 0) facts.push(['free in', `${seconds(lock.lock_delay_ms)} (lock-delay)`]);
  for (const holder of lock.holders) facts.push(...holderFacts(holder));
  facts.push(['waiting', String(lock.waiters)]);
  if (lock.queue.length === 0) return listing(facts);
  const queue = lock.queue.map((waiter, i) => [
    String(i + 1),
    person(waiter.owner),
    modeText(waiter),
    seconds(waiter.waited_ms),
  ]);
  return [...listing(facts), '', ...table(QUEUE_HEAD, queue)];
}

function holderFacts(holder: Holder): (readonly [string, string])[] {
  return [
    ['holder', person(holder.owner)],
    ['client', person(holder.client)],
    ['purpose', holder.purpose === '' ? '-' : word(holder.purpose)],
    ['token', String(holder.token)],
    ['mode', modeText(holder)],
    ['held for', `${seconds(holder.held_for_ms)}${holder.revoking === null ? '' : ', being taken away'}`],
  ];
}

function stateOf(lock: Lock): string {
  if (lock.quarantined) return 'quarantined';
  const { holders } = lock;
  if (holders.length > 0) return holders.some(({ revoking }) => revoking !== null) ? 'revoking' : 'held';
  if (lock.lock_delay_ms > 0) return 'delayed';
  return lock.waiters > 0 ? 'waited for' : 'free';
}

function modeText({ mode, permits }: { readonly mode: string; readonly permits: number }): string {
  return mode === 'semaphore' ? `${mode} (${permits})` : mode;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
