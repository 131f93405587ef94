/** Locks of other kinds on this machine, each with its own server: what they give up is in the notes. */
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { Postgres } from '../../test/fencing/support/postgresql.ts';
import { atEnd } from '../endings.ts';
import { closedLoop, type Summary, summarise } from '../measure.ts';
import { Redis } from '../peers/redis.ts';
import type { Report } from '../report.ts';

const NAMES_PER_WORKER = 5_000;
const PG_WORKERS = 20;
/** How long a worker that did not get the lock waits before it asks again. */
const RETRY_MS_MAX = 5;

export async function peersPart(report: Report, seconds: number): Promise<void> {
  await unlessMissing(report, 'Redis SET NX PX', () => redisLocks(report, seconds));
  await unlessMissing(report, 'PostgreSQL locks', () => postgresLocks(report, seconds));
}

async function unlessMissing(report: Report, what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    report.notRun(what, error instanceof Error ? error.message : String(error));
  }
}

/** Lock and unlock are one operation each. */
function inOperations(summary: Summary): Summary {
  return { ...summary, operations: 2 * summary.operations, perSecond: 2 * summary.perSecond };
}

async function redisLocks(report: Report, seconds: number): Promise<void> {
  await using redis = await Redis.start();
  for (const workers of [20, 200, 1_000]) {
    const summary = await closedLoop({ workers, seconds }, async (worker, turn) => {
      const name = `${worker}-${turn % NAMES_PER_WORKER}`;
      const owner = `${worker}-${turn}`;
      if (!(await redis.take(name, owner))) throw new Error(`${name} is held by nobody`);
      await redis.release(name, owner);
    });
    report.row(
      `Redis SET NX PX, distinct names, ${workers} workers`,
      inOperations(summary),
      'one server, nothing on disk',
    );
  }
  const waitsMs: number[] = [];
  const summary = await closedLoop({ workers: 100, seconds }, async (worker, turn) => {
    const owner = `${worker}-${turn}`;
    const askedMs = performance.now();
    while (!(await redis.take('the-one', owner))) await pause(Math.random() * RETRY_MS_MAX);
    waitsMs.push(performance.now() - askedMs);
    await redis.release('the-one', owner);
  });
  const meanMs = waitsMs.reduce((sum, ms) => sum + ms, 0) / waitsMs.length;
  const waits = summarise(waitsMs, seconds);
  const notes = `hand-overs, by asking again; p99 of the wait / mean ${(waits.p99Ms / meanMs).toFixed(2)}`;
  report.row('Redis SET NX PX, one name, 100 workers', { ...waits, perSecond: summary.perSecond }, notes);
}

async function postgresLocks(report: Report, seconds: number): Promise<void> {
  const postgres = await Postgres.start({ isDurable: true });
  await using _ = atEnd(() => postgres.stop());
  const clients = await Promise.all(Array.from({ length: PG_WORKERS }, () => postgres.connect()));
  const advisory = await closedLoop({ workers: PG_WORKERS, seconds }, async (worker, turn) => {
    const client = clients[worker] as pg.Client;
    const values = [worker, turn % NAMES_PER_WORKER];
    await client.query({ name: 'lock', text: 'SELECT pg_advisory_lock($1, $2)', values });
    await client.query({ name: 'unlock', text: 'SELECT pg_advisory_unlock($1, $2)', values });
  });
  const gone = 'one server, gone with its connection, nothing on disk';
  report.row(`PostgreSQL advisory locks, distinct, ${PG_WORKERS} workers`, inOperations(advisory), gone);
  const [first] = clients;
  await first?.query(
    'CREATE TABLE locks (name text PRIMARY KEY, holder text, token bigint NOT NULL DEFAULT 0)',
  );
  await first?.query(
    "INSERT INTO locks SELECT w || '-' || n FROM generate_series(0, 19) w, generate_series(0, 99) n",
  );
  const rows = await closedLoop({ workers: PG_WORKERS, seconds }, async (worker, turn) => {
    const client = clients[worker] as pg.Client;
    const name = `${worker}-${turn % 100}`;
    const taken = await client.query({
      name: 'take',
      text: 'UPDATE locks SET holder = $2, token = token + 1 WHERE name = $1 AND holder IS NULL',
      values: [name, 'bench'],
    });
    if (taken.rowCount !== 1) throw new Error(`${name} is held by nobody`);
    await client.query({
      name: 'give',
      text: 'UPDATE locks SET holder = NULL WHERE name = $1',
      values: [name],
    });
  });
  report.row(
    `PostgreSQL lock rows, distinct, ${PG_WORKERS} workers`,
    inOperations(rows),
    'one server, every commit synced',
  );
}
