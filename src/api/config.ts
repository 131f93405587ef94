/**
 * What the core needs to know of a LockNamespace: flat, in plain units, JSON-serialisable.
 * It travels inside the `configure` command, so every replica and every replay sees the same limits.
 */

export const MODES = ['exclusive', 'shared', 'semaphore'] as const;
export type Mode = (typeof MODES)[number];

/** Who may open sessions: accounts of one Kubernetes namespace; `null` = every account of it. */
export interface Consumer {
  readonly namespace: string;
  readonly serviceAccounts: readonly string[] | null;
}

/** `pattern` is an exact name, or a byte prefix followed by `*`. The first match wins. */
export interface SemaphorePattern {
  readonly pattern: string;
  readonly permits: number;
}

export interface NamespaceConfig {
  /** Kubernetes namespace and name of the LockNamespace, for messages. */
  readonly namespace: string;
  readonly name: string;
  readonly safetyClass: 'Efficiency' | 'Correctness';
  readonly ttlMs: number;
  readonly ttlMsMin: number;
  readonly ttlMsMax: number;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  readonly modes: readonly Mode[];
  readonly maxWaitersPerName: number;
  readonly maxWaitMs: number;
  readonly sessions: number;
  readonly heldLocks: number;
  readonly waiters: number;
  readonly operationsPerSecond: number;
  readonly locksPerClient: number;
  readonly operationsPerSecondPerClient: number;
  readonly semaphores: readonly SemaphorePattern[];
  /** `null`: identities are not checked (`leasehold dev`, where every caller is the developer). */
  readonly consumers: readonly Consumer[] | null;
}
