/** For tests: a valid manifest that writes every field, one per line, so that a test states only what it changes. */
export const VALID = `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata:
  name: payouts
  namespace: payments
  labels: {team: payments}
  annotations: {example.com/owner: payments-oncall}
spec:
  safety:
    class: Correctness
    failureCost: a merchant is paid twice
    fencedResource:
      kind: PostgreSQL
      name: public.payout_batches
      check: UPDATE payout_batches SET fence = :token WHERE fence <= :token
  lease:
    ttl: 15s
    minTTL: 5s
    maxTTL: 60s
    lockDelay: 0s
    maxHold: 24h
  modes: [Exclusive]
  queue:
    maxWaiters: 500
    maxWait: 10m
  limits:
    sessions: 5000
    heldLocks: 200000
    waiters: 50000
    operationsPerSecond: 5000
    perClient: {locks: 1000, operationsPerSecond: 200}
  semaphores: []
  group:
    replicas: 3
    storage: {size: 4Gi}
    resources: {requests: {cpu: 500m, memory: 512Mi}, limits: {cpu: 2, memory: 1Gi}}
    topology: Zone
    deletionPolicy: Retain
  consumers:
    - namespace: payments
      serviceAccounts: [payout-worker]
  paused: false
`;

/** `VALID` with `from`, which must be in it, replaced once. */
export function changed(from: string, to: string): string {
  if (!VALID.includes(from)) throw new Error(`not in the valid manifest: ${from}`);
  return VALID.replace(from, () => to);
}

/** The shortest valid manifest, of class Efficiency. */
export function minimal(name: string): string {
  return `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: ${name}}
spec: {safety: {class: Efficiency}}
`;
}
