/**
 * A namespace that a sidecar serves, under its alias.
 */
import type { SidecarMetrics } from '../platform/metrics.ts';
import type { EndedTokens } from './ended-tokens.ts';
import type { Connect, GroupClient } from './group-client.ts';

export interface NamespaceTarget {
  readonly alias: string;
  readonly connect: Connect;
  readonly metrics: SidecarMetrics;
  /** Read at each use, since a manifest may change. */
  readonly defaults: () => { readonly ttlMs: number; readonly maxHoldMs: number };
}

/** A served namespace with its line to the lock group. */
export interface Target extends NamespaceTarget {
  readonly group: GroupClient;
  readonly ended: EndedTokens;
}
