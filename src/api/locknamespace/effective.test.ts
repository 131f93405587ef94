// From manifests to the flat configuration of the core.
import { describe, expect, it } from 'vitest';
import { type ConsumerPolicy, toNamespaceConfig } from './effective.ts';
import type { LockNamespace } from './schema.ts';
import { validateLockNamespace } from './validate.ts';

function lockNamespace(spec: Record<string, unknown> = {}): LockNamespace {
  const validation = validateLockNamespace({
    apiVersion: 'leasehold.dev/v1alpha1',
    kind: 'LockNamespace',
    metadata: { name: 'payouts', namespace: 'payments' },
    spec: { safety: { class: 'Efficiency' }, ...spec },
  });
  if (!validation.ok) throw new Error(JSON.stringify(validation.problems));
  return validation.lockNamespace;
}

const unchecked: ConsumerPolicy = { kind: 'unchecked' };

describe('toNamespaceConfig', () => {
  it('fills in every default of the design', () => {
    expect(toNamespaceConfig(lockNamespace(), unchecked)).toEqual({
      namespace: 'payments',
      name: 'payouts',
      safetyClass: 'Efficiency',
      ttlMs: 15_000,
      ttlMsMin: 5_000,
      ttlMsMax: 60_000,
      lockDelayMs: 0,
      maxHoldMs: 86_400_000,
      modes: ['exclusive'],
      maxWaitersPerName: 500,
      maxWaitMs: 600_000,
      sessions: 5_000,
      heldLocks: 200_000,
      waiters: 50_000,
      operationsPerSecond: 5_000,
      locksPerClient: 1_000,
      operationsPerSecondPerClient: 200,
      semaphores: [],
      consumers: null,
    });
  });

  it('takes over every value that is written, in plain units', () => {
    const config = toNamespaceConfig(
      lockNamespace({
        lease: { ttl: '20s', minTTL: '10s', maxTTL: '30s', lockDelay: '1500ms', maxHold: '1h30m' },
        modes: ['Semaphore', 'Shared', 'Exclusive'],
        queue: { maxWaiters: 7, maxWait: '0s' },
        limits: {
          sessions: 1,
          heldLocks: 2,
          waiters: 3,
          operationsPerSecond: 4,
          perClient: { locks: 5, operationsPerSecond: 6 },
        },
        semaphores: [
          { pattern: 'exports/*', permits: 10 },
          { pattern: '*', permits: 1 },
        ],
      }),
      unchecked,
    );
    expect(config).toMatchObject({
      ttlMs: 20_000,
      ttlMsMin: 10_000,
      ttlMsMax: 30_000,
      lockDelayMs: 1_500,
      maxHoldMs: 5_400_000,
      modes: ['exclusive', 'shared', 'semaphore'],
      maxWaitersPerName: 7,
      maxWaitMs: 0,
      sessions: 1,
      heldLocks: 2,
      waiters: 3,
      operationsPerSecond: 4,
      locksPerClient: 5,
      operationsPerSecondPerClient: 6,
      semaphores: [
        { pattern: 'exports/*', permits: 10 },
        { pattern: '*', permits: 1 },
      ],
    });
    expect(JSON.parse(JSON.stringify(config))).toEqual(config);
  });

  it('honours a lock-delay of zero instead of taking it for "default" (case E09)', () => {
    expect(toNamespaceConfig(lockNamespace({ lease: { lockDelay: '0s' } }), unchecked).lockDelayMs).toBe(0);
    expect(toNamespaceConfig(lockNamespace({ lease: { lockDelay: '0ms' } }), unchecked).lockDelayMs).toBe(0);
  });

  it('has no negative zero, which JSON would lose on the way to a replica', () => {
    const config = toNamespaceConfig(lockNamespace({ queue: { maxWaiters: -0 } }), unchecked);
    expect(Object.is(config.maxWaitersPerName, 0)).toBe(true);
  });

  it('reads omitted consumers as all accounts of its own Kubernetes namespace', () => {
    const policy: ConsumerPolicy = { kind: 'checked', namespacesOf: () => [] };
    const { consumers } = toNamespaceConfig(lockNamespace(), policy);
    expect(consumers).toEqual([{ namespace: 'payments', serviceAccounts: null }]);
  });

  it('resolves selectors through the caller, and none of them to nobody', () => {
    const spec = {
      consumers: [
        { namespace: 'a', serviceAccounts: ['x', 'y'] },
        { namespace: 'b', openSet: true },
        { namespaceSelector: { matchLabels: { team: 'c' } }, serviceAccounts: ['z'], openSet: true },
        { namespaceSelector: { matchLabels: { team: 'none' } }, openSet: true },
      ],
    };
    const policy: ConsumerPolicy = {
      kind: 'checked',
      namespacesOf: (selector) => (selector.matchLabels?.team === 'c' ? ['c-1', 'c-2'] : []),
    };
    expect(toNamespaceConfig(lockNamespace(spec), policy).consumers).toEqual([
      { namespace: 'a', serviceAccounts: ['x', 'y'] },
      { namespace: 'b', serviceAccounts: null },
      { namespace: 'c-1', serviceAccounts: ['z'] },
      { namespace: 'c-2', serviceAccounts: ['z'] },
    ]);
  });
});
