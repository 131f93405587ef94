/**
 * Namespaces whose names are spread over several lock groups, for the API as one. To the sidecar each group is a namespace of its own, under
 * an alias that no application can write; here names find their group by their bucket, and answers get their own names back.
 *
 * A group that does not serve a name says so (`wrongGroup`). Then the others are asked, and what was found is remembered: the shard map in the
 * configuration may be behind, and an application never hears of it. What is held stays where it was granted until it is given back.
 */
import { type ErrorDetails, LeaseholdError } from '../api/errors.ts';
import { bucketOf, splitAlias } from '../api/names.ts';
import type { LockView } from '../api/wire.ts';
import { pause } from '../platform/pause.ts';
import type { Runtime } from '../platform/runtime.ts';
import { isWrongGroup } from './refusals.ts';
import type {
  AcquireOptions,
  EventSubscription,
  Granted,
  Held,
  ListOptions,
  OpenOptions,
  Released,
  SidecarService,
  StreamLine,
} from './service.ts';

/** Not allowed in an alias. */
const MARK = '~';
/** While a bucket moves no group may serve it for a moment. */
const RETRY_MS = 200;
const RETRY_FOR_MS_MAX = 5_000;

export interface ShardOfAlias {
  readonly alias: string;
  /** Of the group, within its namespace. */
  readonly group: string;
  /** Whether the map gives this bucket to the group. */
  readonly serves: (bucket: number) => boolean;
}

/** The alias under which the sidecar itself serves a group. */
export function shardAlias(alias: string, group: string): string {
  return `${alias}${MARK}${group}`;
}

export class ShardedService implements SidecarService {
  readonly #service: SidecarService;
  readonly #runtime: Runtime;
  readonly #shards: ReadonlyMap<string, readonly ShardOfAlias[]>;
  /** Where a bucket was found, against the map: at most as many as there are buckets. */
  readonly #found = new Map<string, string>();

  constructor(service: SidecarService, runtime: Runtime, shards: readonly ShardOfAlias[]) {
    this.#service = service;
    this.#runtime = runtime;
    this.#shards = Map.groupBy(shards, ({ alias }) => alias);
  }

  openSession(options: OpenOptions) {
    return this.#service.openSession(options);
  }

  keepaliveSession(sessionId: string) {
    return this.#service.keepaliveSession(sessionId);
  }

  openEvents(sessionId: string, onLine: (line: StreamLine) => void): EventSubscription {
    return this.#service.openEvents(sessionId, (line) =>
      onLine('name' in line ? { ...line, name: shown(line.name) } : line),
    );
  }

  closeSession(sessionId: string): Promise<void> {
    return this.#service.closeSession(sessionId);
  }

  aliases(): readonly string[] {
    return [...new Set(this.#service.aliases().map(shown))];
  }

  acquire(fullName: string, options: AcquireOptions): Promise<Granted> {
    const forMs = Math.min(options.waitMs, RETRY_FOR_MS_MAX);
    return this.#whereServed(fullName, forMs, (name) => this.#service.acquire(name, options));
  }

  async getLock(fullName: string): Promise<LockView> {
    const view = await this.#whereServed(fullName, 0, (name) => this.#service.getLock(name));
    return { ...view, name: fullName };
  }

  release(fullName: string, options: Parameters<SidecarService['release']>[1]): Promise<Released> {
    return this.#whereHeld(fullName, options.token, (name) => this.#service.release(name, options));
  }

  renew(fullName: string, options: Parameters<SidecarService['renew']>[1]): Promise<Granted> {
    return this.#whereHeld(fullName, options.token, (name) => this.#service.renew(name, options));
  }

  reportStale(fullName: string, options: Parameters<SidecarService['reportStale']>[1]): Promise<void> {
    return this.#whereHeld(fullName, options.token, (name) => this.#service.reportStale(name, options));
  }

  held(fullName: string, token: number): Held {
    const names = this.#namesOf(fullName);
    const held = names.map((name) => this.#service.held(name, token));
    return held.find((one) => one.held) ?? (held[0] as Held);
  }

  /** Each namespace as a whole, its groups merged by name. */
  async listLocks({ prefix, limit, after = '' }: ListOptions) {
    if (prefix !== '' && !this.aliases().some((alias) => isWithin(alias, prefix))) {
      return this.#service.listLocks({ prefix, limit, after });
    }
    const locks: LockView[] = [];
    for (const alias of [...this.aliases()].sort()) {
      const rest = restAfter(alias, after);
      if (!isWithin(alias, prefix) || rest === null) continue;
      const left = limit - locks.length;
      const within = prefix.startsWith(`${alias}/`) ? prefix.slice(alias.length + 1) : '';
      const pages = await Promise.all(
        this.#groupsOf(alias).map((own) =>
          this.#service.listLocks({
            prefix: `${own}/${within}`,
            limit: left,
            ...(rest === '' ? {} : { after: `${own}/${rest}` }),
          }),
        ),
      );
      const merged = pages.flatMap((page) => page.locks).map((lock) => ({ ...lock, name: shown(lock.name) }));
      merged.sort((a, b) => (a.name < b.name ? -1 : 1));
      locks.push(...merged.slice(0, left));
      const hasMore = merged.length > left || pages.some(({ next }) => next !== undefined);
      const last = locks.at(-1);
      if (last !== undefined && (hasMore || locks.length >= limit)) return { locks, next: last.name };
    }
    return { locks };
  }

  /** Asks the group of the name, then the others, until one serves it. */
  async #whereServed<T>(fullName: string, forMs: number, ask: (name: string) => Promise<T>): Promise<T> {
    const { clock, timers } = this.#runtime;
    const startedMs = clock.monotonicMs();
    for (;;) {
      for (const name of this.#namesOf(fullName)) {
        try {
          const answer = await ask(name);
          this.#learn(fullName, name);
          return answer;
        } catch (error) {
          if (!isWrongGroup(error)) throw shownError(error);
        }
      }
      if (clock.monotonicMs() - startedMs >= forMs) break;
      await pause(timers, RETRY_MS);
    }
    throw new LeaseholdError('UNAVAILABLE', 'no lock group serves this name right now', { name: fullName });
  }

  /** What was granted stays in its group, though the map gives the name to another by now. */
  async #whereHeld<T>(fullName: string, token: number, ask: (name: string) => Promise<T>): Promise<T> {
    const names = this.#namesOf(fullName);
    const held = names.find((name) => this.#service.held(name, token).held);
    if (held !== undefined || names.length === 1) return ask(held ?? (names[0] as string)).catch(rethrown);
    let first: unknown = null;
    for (const name of names) {
      try {
        return await ask(name);
      } catch (error) {
        first ??= error;
        const isElsewhere =
          error instanceof LeaseholdError && ['NOT_HELD', 'STALE_TOKEN'].includes(error.code);
        if (!isElsewhere && !isWrongGroup(error)) throw shownError(error);
      }
    }
    throw shownError(first);
  }

  /** The name in each group that may have it, the likeliest first. */
  #namesOf(fullName: string): readonly string[] {
    const parts = splitAlias(fullName);
    const shards = parts === null ? undefined : this.#shards.get(parts.alias);
    if (parts?.alias.includes(MARK)) return [`/${fullName}`];
    if (parts === null || shards === undefined) return [fullName];
    const bucket = bucketOf(parts.rest);
    const found = this.#found.get(`${parts.alias} ${bucket}`);
    const rank = ({ group, serves }: ShardOfAlias): number => (group === found ? 0 : serves(bucket) ? 1 : 2);
    return [...shards]
      .sort((a, b) => rank(a) - rank(b))
      .map(({ alias, group }) => `${shardAlias(alias, group)}/${parts.rest}`);
  }

  #groupsOf(alias: string): readonly string[] {
    const shards = this.#shards.get(alias);
    return shards === undefined ? [alias] : shards.map(({ group }) => shardAlias(alias, group));
  }

  #learn(fullName: string, name: string): void {
    const parts = splitAlias(fullName);
    const group = splitAlias(name)?.alias.split(MARK)[1];
    if (parts === null || group === undefined) return;
    this.#found.set(`${parts.alias} ${bucketOf(parts.rest)}`, group);
  }
}

/** Without the group. */
function shown(name: string): string {
  const slash = name.indexOf('/');
  const alias = slash < 0 ? name : name.slice(0, slash);
  const mark = alias.indexOf(MARK);
  return mark < 0 ? name : alias.slice(0, mark) + (slash < 0 ? '' : name.slice(slash));
}

function rethrown(error: unknown): never {
  throw shownError(error);
}

function shownError(error: unknown): unknown {
  if (!(error instanceof LeaseholdError)) return error;
  const { name, ...rest }: ErrorDetails = error.details;
  const details = typeof name === 'string' ? { ...rest, name: shown(name) } : error.details;
  return new LeaseholdError(error.code, error.message.replaceAll(/~[a-z0-9-]+/g, ''), details);
}

function isWithin(alias: string, prefix: string): boolean {
  const own = `${alias}/`;
  return own.startsWith(prefix) || prefix.startsWith(own);
}

/** Where to go on below an alias; '' from its start, null: its names all come before. */
function restAfter(alias: string, after: string): string | null {
  if (after === '') return '';
  const parts = splitAlias(after);
  if (parts === null || parts.alias < alias) return '';
  return parts.alias === alias ? parts.rest : null;
}
