/** Answers of the HTTP API as docs/API.md has them; only what the commands read. What is passed on as JSON is passed on whole. */

export interface OpenedSession {
  readonly session_id: string;
  readonly ttl_s: number;
  readonly keepalive_every_s: number;
}

export interface Deadline {
  /** From the moment of the answer on. */
  readonly deadline_in_ms: number;
}

export interface Acquired extends Deadline {
  readonly acquired: true;
  readonly session_id: string;
  readonly token: number;
  readonly lease_ttl_ms: number;
}

export interface Renewed extends Deadline {
  readonly renewed: true;
  readonly session_id: string;
  readonly token: number;
  readonly lease_ttl_ms: number;
}

export interface Holder {
  readonly client: string;
  readonly owner: string;
  readonly purpose: string;
  readonly token: number;
  readonly mode: string;
  readonly permits: number;
  readonly held_for_ms: number;
  /** Why it is being taken away; null while it is not. */
  readonly revoking: string | null;
}

export interface Waiter {
  readonly client: string;
  readonly owner: string;
  readonly mode: string;
  readonly permits: number;
  readonly waited_ms: number;
}

export interface Lock {
  readonly name: string;
  /** By rising token; the first of `holder_count`. */
  readonly holders: readonly Holder[];
  readonly holder_count: number;
  readonly waiters: number;
  readonly queue: readonly Waiter[];
  readonly lock_delay_ms: number;
  readonly quarantined: boolean;
}

export interface LockPage {
  readonly locks: readonly Lock[];
  readonly continue?: string;
}

/** A line of the event stream; those that no command acts on are only their name. */
export type EventLine =
  | { readonly event: 'alive' | 'granted' | 'jeopardy' | 'restored' }
  | { readonly event: 'queued'; readonly name: string; readonly position: number }
  | {
      readonly event: 'revoking';
      readonly name: string;
      readonly token: number;
      readonly cause: string;
      readonly deadline_in_ms: number;
    }
  | { readonly event: 'lost'; readonly name: string; readonly token: number; readonly reason: string }
  | { readonly event: 'session_lost'; readonly reason: string };
