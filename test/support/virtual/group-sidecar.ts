/** A real sidecar on a group on virtual time. */
import { createMetrics } from '../../../src/platform/prometheus.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore } from '../../../src/sidecar/state-store.ts';
import type { VirtualGroup, VirtualServer } from './virtual-group.ts';

const IDENTITY = { account: 'dev/developer', podUid: '' };
const TTL_MS = 15_000;

/** Begins on one front end and takes the next with each new stream; `isBound`: it reaches that one only. */
export function sidecarOn(group: VirtualGroup, first: number, { isBound = false, ttlMs = TTL_MS } = {}) {
  let connects = 0;
  const sidecar = new Sidecar({ runtime: group.runtime, store: new MemoryStateStore() });
  sidecar.addNamespace({
    alias: 'n',
    connect: (handler) => {
      const server = group.servers[
        (isBound ? first : first + connects) % group.servers.length
      ] as VirtualServer;
      connects++;
      return server.member.frontEnd.connect(IDENTITY, handler);
    },
    metrics: createMetrics().sidecar('n'),
    defaults: () => ({ ttlMs, maxHoldMs: 3_600_000 }),
  });
  const open = () => sidecar.openSession({ client: 'c', ttlMs, keepalive: 'app' });
  const acquire = (sessionId: string, name: string, waitMs: number) =>
    sidecar.acquire(`n/${name}`, {
      sessionId,
      mode: 'exclusive',
      permits: 1,
      reentrant: false,
      waitMs,
      purpose: '',
      hangUp: new AbortController().signal,
    });
  return { sidecar, open, acquire, connects: () => connects };
}
