/** One replica in this process, on the embedded log of `leasehold dev`, beside a bare SQLite commit. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MemoryLog } from '../../src/log/memory-log.ts';
import { MemoryStore } from '../../src/log/memory-store.ts';
import type { Connect } from '../client.ts';
import { SidecarHttp } from '../http.ts';
import { oneName, uncontended } from '../load/clients.ts';
import { saturate } from '../load/packed.ts';
import { closedLoop, type Summary } from '../measure.ts';
import { connectIn, withEmbeddedLog, withReplica } from '../replica-setup.ts';
import { type Report, times } from '../report.ts';

const ROW_BYTES = 200;
const STREAMS = 20;
const PACKED = 100;
const HTTP_RATES = [200, 1_000] as const;
const HTTP_WARM_UP_SECONDS = 4;

export async function replicaPart(report: Report, seconds: number): Promise<void> {
  const commit = await bareCommit(seconds);
  report.row('bare node:sqlite commit (yardstick)', commit, 'one synced row at a time');
  for (const perSecond of [200, 2_000, 10_000]) {
    const summary = await onEmbeddedLog(STREAMS, (streams) =>
      uncontended(streams, { perSecond, seconds, warmUpSeconds: 1 }),
    );
    report.row(
      `uncontended, ${perSecond} ops/s planned`,
      summary,
      `p50 ${times(summary.p50Ms, commit.p50Ms)} a bare commit`,
    );
  }
  for (const workers of [2, 100]) {
    const summary = await onEmbeddedLog(workers, (streams) => oneName(streams, seconds));
    const handOvers = summary.perSecond / commit.perSecond;
    report.row(
      `one name, ${workers} workers (hand-overs)`,
      summary,
      `${handOvers.toFixed(2)} a bare commit; p99 of the wait / mean ${summary.unfairness.toFixed(2)}`,
    );
  }
  const log = new MemoryLog(new MemoryStore('bench'));
  const loop = await withReplica(log, (replica) => {
    const streams = Array.from({ length: STREAMS }, () => connectIn(replica));
    return saturate({ streams, packed: PACKED, seconds, warmUpSeconds: 0 });
  });
  report.row('leader loop on the memory log, packed', loop, 'load generator on the same core');
  report.row(
    'bare node:sqlite commit again',
    await bareCommit(seconds),
    'shows how much the machine drifted',
  );
}

/**
 * The HTTP API on top of the lock protocol, at the same rates. At 200 calls a second a process compiles its code for half a minute, so
 * both are warmed up at a higher rate first; what a new process does is shown apart.
 */
export async function httpPart(report: Report, seconds: number): Promise<void> {
  await using http = await SidecarHttp.start();
  const [slow, fast] = HTTP_RATES;
  const cold = await http.measure({ perSecond: slow, seconds, warmUpSeconds: 0 });
  report.row(`sidecar HTTP, ${slow} calls/s planned, new process`, cold, 'its first calls');
  await http.measure({ perSecond: fast, seconds: 1, warmUpSeconds: HTTP_WARM_UP_SECONDS });
  await onEmbeddedLog(STREAMS, async (streams) => {
    await uncontended(streams, { perSecond: fast, seconds: 1, warmUpSeconds: HTTP_WARM_UP_SECONDS });
    for (const perSecond of HTTP_RATES) {
      const rate = { perSecond, seconds, warmUpSeconds: 1 };
      const protocol = await uncontended(streams, rate);
      report.row(`lock protocol, ${perSecond} ops/s planned (yardstick)`, protocol);
      const summary = await http.measure(rate);
      const extraMs = summary.p50Ms - protocol.p50Ms;
      const note = `p50 ${extraMs.toFixed(2)} ms over the lock protocol`;
      report.row(`sidecar HTTP, ${perSecond} calls/s planned`, summary, note);
    }
  });
}

/** The physical limit: one synced commit of one row, nothing else. */
async function bareCommit(seconds: number): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
  const database = new DatabaseSync(join(folder, 'bare.db'));
  try {
    database.exec(
      'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE log (i INTEGER PRIMARY KEY, bytes BLOB)',
    );
    const insert = database.prepare('INSERT INTO log (bytes) VALUES (?)');
    const row = new Uint8Array(ROW_BYTES);
    return await closedLoop({ workers: 1, seconds }, async () => insert.run(row));
  } finally {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function onEmbeddedLog<T>(streams: number, load: (streams: readonly Connect[]) => Promise<T>): Promise<T> {
  return withEmbeddedLog((log) =>
    withReplica(log, (replica) => load(Array.from({ length: streams }, () => connectIn(replica)))),
  );
}
