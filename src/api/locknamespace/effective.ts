/**
 * From a valid LockNamespace to the flat configuration that the core's `configure` command carries.
 * Everything is in plain units here, so that `apply` never parses text, and a replay never depends on this parser.
 */
import { type Consumer, MODES, type Mode, type NamespaceConfig } from '../config.ts';
import { parseDuration } from '../duration.ts';
import type { LockNamespace, LockNamespaceSpec, Selector } from './schema.ts';

/**
 * `unchecked`: every caller is the developer (`leasehold dev`). `checked`: `namespacesOf` gives the Kubernetes namespaces
 * that a selector selects now; whoever calls must call again when they change.
 */
export type ConsumerPolicy =
  | { readonly kind: 'unchecked' }
  | { readonly kind: 'checked'; readonly namespacesOf: (selector: Selector) => readonly string[] };

const MODE_OF: Readonly<Record<LockNamespaceSpec['modes'][number], Mode>> = {
  Exclusive: 'exclusive',
  Shared: 'shared',
  Semaphore: 'semaphore',
};

/** Pure. `lockNamespace` must come from `validateLockNamespace`; anything else may throw. */
export function toNamespaceConfig(lockNamespace: LockNamespace, policy: ConsumerPolicy): NamespaceConfig {
  const { metadata, spec } = lockNamespace;
  const modes = new Set(spec.modes.map((mode) => MODE_OF[mode]));
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    safetyClass: spec.safety.class,
    ttlMs: toMs(spec.lease.ttl),
    ttlMsMin: toMs(spec.lease.minTTL),
    ttlMsMax: toMs(spec.lease.maxTTL),
    lockDelayMs: toMs(spec.lease.lockDelay),
    maxHoldMs: toMs(spec.lease.maxHold),
    // In one order, so that the same set written differently is the same configuration.
    modes: MODES.filter((mode) => modes.has(mode)),
    maxWaitersPerName: spec.queue.maxWaiters,
    maxWaitMs: toMs(spec.queue.maxWait),
    sessions: spec.limits.sessions,
    heldLocks: spec.limits.heldLocks,
    waiters: spec.limits.waiters,
    operationsPerSecond: spec.limits.operationsPerSecond,
    locksPerClient: spec.limits.perClient.locks,
    operationsPerSecondPerClient: spec.limits.perClient.operationsPerSecond,
    semaphores: spec.semaphores.map(({ pattern, permits }) => ({ pattern, permits })),
    consumers: policy.kind === 'unchecked' ? null : toConsumers(lockNamespace, policy.namespacesOf),
  };
}

function toConsumers(
  { metadata, spec }: LockNamespace,
  namespacesOf: (selector: Selector) => readonly string[],
): readonly Consumer[] {
  if (spec.consumers === undefined) return [{ namespace: metadata.namespace, serviceAccounts: null }];
  return spec.consumers.flatMap(({ namespace, namespaceSelector, serviceAccounts }) => {
    const namespaces = namespaceSelector === undefined ? [namespace] : namespacesOf(namespaceSelector);
    return namespaces.map((each) => {
      if (each === undefined) throw new TypeError('a consumer has neither namespace nor namespaceSelector');
      return { namespace: each, serviceAccounts: serviceAccounts ?? null };
    });
  });
}

function toMs(duration: string): number {
  const durationMs = parseDuration(duration);
  if (durationMs === null) throw new TypeError(`not a duration: ${JSON.stringify(duration)}`);
  return durationMs;
}
