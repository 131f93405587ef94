/** Locks as people look at them: the JSON of docs/API.md in camel case. Reads are for display; never decide by them. */
import type { Mode } from '../api/config.ts';
import { errorOf } from './errors.ts';
import type { Json, Transport } from './http.ts';

export interface HolderDescription {
  /** Number of the session within its lock group. */
  readonly session: number;
  readonly client: string;
  readonly owner: string;
  readonly purpose: string;
  readonly token: number;
  readonly mode: Mode;
  /** 1, except for semaphores. */
  readonly permits: number;
  readonly heldForMs: number;
  /** Why the lock is being taken away from it (`break`, `maxHold`, ...); null while it is not. */
  readonly revoking: string | null;
}

export interface WaiterDescription {
  readonly session: number;
  readonly client: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly waitedMs: number;
}

export interface LockDescription {
  /** Full name, `<alias>/<rest>`. */
  readonly name: string;
  /** In which it is held; null = nobody holds it. */
  readonly mode: Mode | null;
  /** Who holds it, by rising token: the first 100 of `holderCount`. */
  readonly holders: readonly HolderDescription[];
  readonly holderCount: number;
  /** The first holder; null = nobody holds it. */
  readonly holder: HolderDescription | null;
  /** How many wait; `queue` shows the first of them. */
  readonly waiters: number;
  readonly queue: readonly WaiterDescription[];
  /** What is left of the lock-delay; 0 = none runs. */
  readonly lockDelayMs: number;
  readonly quarantined: boolean;
}

const READ_MS_MAX = 10_000;
const PAGE = 1_000;

/** @throws LeaseholdError, NoAnswerError */
export async function describeLock(transport: Transport, name: string): Promise<LockDescription> {
  const body = await read(transport, `/v1/locks/${encodeURIComponent(name)}`);
  return camelCase(body) as LockDescription;
}

/** All locks in use whose full name starts with `prefix`, page by page. @throws LeaseholdError, NoAnswerError */
export async function* listLocks(
  transport: Transport,
  prefix: string,
): AsyncGenerator<LockDescription, void> {
  let next: unknown;
  do {
    const query = new URLSearchParams({ prefix, limit: String(PAGE) });
    if (typeof next === 'string') query.set('continue', next);
    const body = await read(transport, `/v1/locks?${query}`);
    yield* camelCase(body.locks) as readonly LockDescription[];
    next = body.continue;
  } while (typeof next === 'string');
}

async function read(transport: Transport, path: string): Promise<Json> {
  const answer = await transport.call({ method: 'GET', path, limitMs: READ_MS_MAX });
  if (answer.status !== 200) throw errorOf(answer);
  return answer.body;
}

/** `held_for_ms` as `heldForMs`, at every depth. */
function camelCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCase);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
      camelCase(inner),
    ]),
  );
}
