/** The runner of `leasehold run` with a real watchdog and a real CMD, over a lock API that answers at once. */
import { constants } from 'node:os';
import { expect, test } from 'vitest';
import type { LockApi } from '../http/lock-api.ts';
import { Runner } from './runner.ts';

const TTL_MS = 60_000;
const GRANT = { session_id: 's', token: 7, lease_ttl_ms: TTL_MS, deadline_in_ms: TTL_MS };

/** Exit code of a CMD that ends with 7, with `signal` told when the lock is held but no watchdog is ready yet. */
function signalled(signal: 'SIGINT' | 'SIGTERM' | 'SIGUSR1' | 'SIGUSR2'): Promise<number> {
  const api: Partial<LockApi> = {
    url: 'http://127.0.0.1:1',
    open: async () => ({ session_id: 's', ttl_s: TTL_MS / 1000, keepalive_every_s: TTL_MS / 5000 }),
    acquire: async () => ({ acquired: true, ...GRANT }),
    renew: async () => {
      // A process of Node.js, started a moment ago, needs far longer.
      setImmediate(() => runner.signal({ name: signal, number: constants.signals[signal] }));
      return { renewed: true, ...GRANT };
    },
    follow: () => new Promise<void>(() => undefined),
    close: async () => undefined,
  };
  const runner = new Runner({
    api: api as LockApi,
    plan: { name: 'jobs/a', wait: { kind: 'none' }, isSkippedIfHeld: false },
    command: ['sh', '-c', 'exit 7'],
    client: 'test',
    purpose: '',
    mode: {},
    say: () => undefined,
  });
  return runner.run();
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s between the grant and the start of CMD ends the run with 128 + n',
  async (signal) => {
    expect(await signalled(signal)).toBe(128 + constants.signals[signal]);
  },
);

test.each(['SIGUSR1', 'SIGUSR2'] as const)('%s then asks nobody for anything: CMD runs', async (signal) => {
  expect(await signalled(signal)).toBe(7);
});
