/** Applications under chaos: they lock, write to the fenced resource under their token while they believe that they hold, and give back. */
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, LockLostError } from '../../../src/client/index.ts';
import { LockApi } from '../../support/dev/lock-api.ts';
import { ALIAS } from '../../support/group/group-bench.ts';
import type { Random } from '../../support/random.ts';
import type { FencedResource } from '../fenced-resource.ts';
import { runMs } from '../run-time.ts';
import type { KnownGrant, Ledger } from './ledger.ts';
import { AppSession } from './session.ts';

const WAIT_MS = 20_000;
const WRITE_EVERY_MS = 60;

export interface WorkerOptions {
  readonly name: string;
  /** Of the API it talks to. */
  readonly port: number;
  readonly ttlMs: number;
  readonly names: readonly string[];
  readonly holdMs: readonly [least: number, most: number];
  readonly random: Random;
  readonly ledger: Ledger;
  readonly resource: FencedResource;
  /** It finishes what it has begun, and begins nothing more. */
  readonly ending: AbortSignal;
}

/** Over plain HTTP. */
export async function runHttpWorker(options: WorkerOptions): Promise<void> {
  const { name, port, ttlMs, ledger, ending, random } = options;
  const api = new LockApi(port, ALIAS);
  while (!ending.aborted) {
    const session = await AppSession.open(api, { client: name, ttlMs, ledger, ending });
    while (session !== null && !session.isLost && !ending.aborted) {
      const grant = await session.acquire(random.pick(options.names), WAIT_MS);
      if (grant !== null) await hold(session, grant, options);
    }
    await session?.close();
  }
  api.end();
}

async function hold(session: AppSession, grant: KnownGrant, options: WorkerOptions): Promise<void> {
  const { random, resource, ledger, ending } = options;
  const until = runMs() + random.between(...options.holdMs);
  while (session.isBelieved(grant) && runMs() < until && !ending.aborted) {
    ledger.count(`write ${await resource.write(grant.name, grant.token)}`);
    await pause(WRITE_EVERY_MS);
  }
  if (session.isBelieved(grant)) return session.release(grant);
  grant.lostAt ??= runMs();
  grant.believedUntil = Math.min(grant.believedUntil, grant.lostAt);
  // As a holder that was paused would, who has not noticed: only the resource can refuse it (case E24).
  await pause(random.int(2_000));
  ledger.count(`late write ${await resource.write(grant.name, grant.token)}`);
}

/** Through the client library. */
export async function runLibraryWorker(options: WorkerOptions): Promise<void> {
  const { name, port, ttlMs, ledger, resource, random, ending } = options;
  const client = createClient({ url: `http://127.0.0.1:${port}`, client: name, ttlMs, keepalive: 'app' });
  while (!ending.aborted) {
    const lock = random.pick(options.names);
    try {
      await client.withLock(`${ALIAS}/${lock}`, { waitMs: WAIT_MS }, async ({ token, signal, held }) => {
        const grant = ledger.granted(lock, token, ttlMs, runMs());
        const until = runMs() + random.between(...options.holdMs);
        while (held() && !ending.aborted && runMs() < until) {
          grant.believedUntil = runMs();
          ledger.count(`write ${await resource.write(lock, token)}`);
          await pause(WRITE_EVERY_MS);
        }
        if (held() && !signal.aborted) grant.gaveUpAt = runMs();
        else grant.lostAt = runMs();
      });
      ledger.count('library done');
    } catch (error) {
      ledger.count(`library ${error instanceof LockLostError ? 'lost' : codeOf(error)}`);
      await pause(100);
    }
  }
  await client.close();
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
