/**
 * What the localhost HTTP API calls: the sidecar's sessions and locks without any HTTP. The shapes are those of
 * docs/API.md in camel case; every failure is a `LeaseholdError` of the table in src/api/errors.ts.
 */

import type { Mode } from '../api/config.ts';
import type { RevokeCause } from '../api/entry.ts';
import type { LockView } from '../api/wire.ts';

export type Liveness = 'stream' | 'app' | 'both';

export interface OpenOptions {
  readonly client: string;
  /** Undefined: the shortest ttl of the namespaces served, since the session may touch any of them. */
  readonly ttlMs?: number;
  readonly keepalive: Liveness;
  readonly maxHoldMs?: number;
}

export interface OpenedSession {
  readonly sessionId: string;
  readonly ttlMs: number;
  readonly keepaliveEveryMs: number;
}

export interface AcquireOptions {
  /** Undefined: open a session for this one lock (`client`, `ttlMs` apply to it). */
  readonly sessionId?: string;
  readonly client?: string;
  readonly ttlMs?: number;
  readonly owner?: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly reentrant: boolean;
  /** 0 = do not wait. */
  readonly waitMs: number;
  readonly purpose: string;
  /** The application's retry key; with `reentrant` also what names this acquire at its release. */
  readonly request?: string;
  /** Fires when the caller hung up: the acquire is cancelled, and undone if it was granted (rule A5). */
  readonly hangUp: AbortSignal;
}

export interface Deadline {
  /** May be negative or 0 when it has passed. */
  readonly deadlineInMs: number;
  /** On this machine's monotonic clock (CLOCK_MONOTONIC), ns. */
  readonly deadlineMonotonicNs: bigint;
}

/** `revoking`: being taken away, and why; a repeated acquire or a renew may find it so. */
export interface Granted extends Deadline {
  readonly sessionId: string;
  readonly token: number;
  readonly leaseTtlMs: number;
  readonly revoking?: RevokeCause;
}

/** `revoking`: still held, but being taken away, and why. */
export interface Held extends Partial<Deadline> {
  readonly held: boolean;
  readonly revoking?: RevokeCause;
}

export interface Released {
  /** True: this token, or this acquire of a re-entrant one, had been released before. */
  readonly already: boolean;
}

/** Lines of `GET /v1/sessions/{id}/events`. `name` is the full name with its alias. */
export type StreamLine =
  | { readonly event: 'alive' }
  | { readonly event: 'queued'; readonly name: string; readonly position: number; readonly request?: string }
  | {
      readonly event: 'granted';
      readonly name: string;
      readonly token: number;
      readonly request?: string;
      readonly deadlineInMs: number;
    }
  /** No acknowledged keepalive for TTL/2; told without any network. */
  | { readonly event: 'jeopardy'; readonly deadlineInMs: number }
  | { readonly event: 'restored'; readonly deadlineInMs: number }
  | {
      readonly event: 'revoking';
      readonly name: string;
      readonly token: number;
      readonly cause: RevokeCause;
      readonly deadlineInMs: number;
    }
  | { readonly event: 'lost'; readonly name: string; readonly token: number; readonly reason: string }
  /** The last line: the session is over. */
  | { readonly event: 'sessionLost'; readonly reason: string };

export interface EventSubscription {
  close(): void;
}

export interface ListOptions {
  /** Full name prefix; must contain at least the alias and a slash, or be '' for all namespaces. */
  readonly prefix: string;
  readonly limit: number;
  /** Full name after which to go on; undefined = from the start. */
  readonly after?: string;
}

export interface SidecarService {
  openSession(options: OpenOptions): Promise<OpenedSession>;
  keepaliveSession(sessionId: string): Promise<Deadline>;
  /** Opens the application's stream (rule A3). `onLine` is called in order; closing the subscription is the application's hang-up. */
  openEvents(sessionId: string, onLine: (line: StreamLine) => void): EventSubscription;
  /** Resolves when everything is released. Unknown session: SESSION_EXPIRED. */
  closeSession(sessionId: string): Promise<void>;
  acquire(fullName: string, options: AcquireOptions): Promise<Granted>;
  /** `request`: which acquire of a re-entrant grant; ignored for others. */
  release(
    fullName: string,
    options: { readonly sessionId: string; readonly token: number; readonly request?: string },
  ): Promise<Released>;
  renew(fullName: string, options: { readonly sessionId: string; readonly token: number }): Promise<Granted>;
  reportStale(
    fullName: string,
    options: { readonly token: number; readonly resource: string },
  ): Promise<void>;
  getLock(fullName: string): Promise<LockView>;
  /** Views carry full names. `next` = value for `after` of the next page. */
  listLocks(options: ListOptions): Promise<{ readonly locks: readonly LockView[]; readonly next?: string }>;
  /** From the monotonic clock alone, no network: is this token still ours? */
  held(fullName: string, token: number): Held;
  /** Aliases served, for the start message and error texts. */
  aliases(): readonly string[];
}
