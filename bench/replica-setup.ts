/**
 * A lock group of one replica, in this process.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NamespaceConfig } from '../src/api/config.ts';
import { openEmbeddedLog } from '../src/log/embedded/embedded-log.ts';
import type { LockLog } from '../src/log/port.ts';
import { createSystemRuntime } from '../src/platform/system-runtime.ts';
import { Replica } from '../src/server/member/replica.ts';
import type { Connect } from './client.ts';

const runtime = createSystemRuntime({ logLevel: 'warn' });

/** Limits out of the way: what is measured is the service, not its brakes. */
const CONFIG: NamespaceConfig = {
  namespace: 'bench',
  name: 'bench',
  safetyClass: 'Efficiency',
  ttlMs: 60_000,
  ttlMsMin: 5_000,
  ttlMsMax: 60_000,
  lockDelayMs: 0,
  maxHoldMs: 3_600_000,
  modes: ['exclusive'],
  maxWaitersPerName: 10_000,
  maxWaitMs: 600_000,
  sessions: 20_000,
  heldLocks: 1_000_000,
  waiters: 1_000_000,
  operationsPerSecond: 1_000_000_000,
  locksPerClient: 100_000,
  operationsPerSecondPerClient: 1_000_000_000,
  semaphores: [],
  consumers: null,
};

export async function withReplica<T>(log: LockLog, use: (replica: Replica) => Promise<T>): Promise<T> {
  const onStopped = (reason: object): never => {
    throw new Error(`the replica stopped: ${JSON.stringify(reason)}`);
  };
  const replica = await Replica.start({ runtime, log, serverId: 'bench', config: CONFIG, onStopped });
  try {
    return await use(replica);
  } finally {
    await replica.stop();
  }
}

export async function withEmbeddedLog<T>(use: (log: LockLog) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
  try {
    return await use(await openEmbeddedLog({ ...runtime, directory }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Streams to the front end of this replica. */
export function connectIn(replica: Replica): Connect {
  return (handler) => replica.frontEnd.connect({ account: 'bench/bench', podUid: '' }, handler);
}
