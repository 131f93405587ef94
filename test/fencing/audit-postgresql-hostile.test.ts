/**
 * A real PostgreSQL that locks the table, ends connections in the middle of a statement, refuses, or stands still: the leader does not notice,
 * one log line says what it is, and once it is well again each event is there.
 */
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { endAll, survives, type Victim } from '../../src/server/audit/hostile-scene.fixture.ts';
import { auditTableSql, PostgresSink } from '../../src/server/audit/postgresql-sink.ts';
import { Postgres } from './support/postgresql.ts';

let postgres: Postgres;
let looker: pg.Client;
beforeAll(async () => {
  postgres = await Postgres.start();
  looker = await postgres.connect();
});
afterAll(() => postgres?.stop());
beforeEach(async () => {
  await looker.query(auditTableSql('leasehold_audit'));
});
afterEach(async () => {
  await endAll();
  await looker.query('DROP TABLE leasehold_audit');
});

function victim(heal: () => unknown): Victim {
  const { url } = postgres;
  return {
    sink: new PostgresSink({ url, table: 'leasehold_audit', createTable: true, timeoutMs: 300 }),
    heal,
    indexes: async () => {
      const sql = 'SELECT DISTINCT entry_index AS index FROM leasehold_audit ORDER BY entry_index';
      return (await looker.query(sql)).rows.map((row) => Number(row.index));
    },
    takesEvents: true,
  };
}

/** Connections of the sink that the server still has. */
async function connections(): Promise<number> {
  const sql = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'leasehold-audit'";
  return Number((await looker.query(sql)).rows[0]?.n);
}

test('one that locks the table', async () => {
  const locker = await postgres.connect();
  await locker.query('BEGIN');
  await locker.query('LOCK TABLE leasehold_audit IN ACCESS EXCLUSIVE MODE');
  await survives(
    victim(() => locker.query('ROLLBACK')),
    /does not take: .*(timeout|cancel)/i,
  );
  // Its own, and none of those that were given up.
  await expect.poll(connections, { timeout: 5_000 }).toBe(1);
});

test('one that ends the connection in the middle of a statement', async () => {
  await looker.query(`
    CREATE OR REPLACE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
    CREATE TRIGGER leave AFTER INSERT ON leasehold_audit EXECUTE FUNCTION leave()`);
  const heal = () => looker.query('DROP TRIGGER leave ON leasehold_audit');
  await survives(victim(heal), /does not take: .*terminat/);
});

test('one that refuses with a constraint', async () => {
  await looker.query('ALTER TABLE leasehold_audit ADD CONSTRAINT away CHECK (false) NOT VALID');
  const heal = () => looker.query('ALTER TABLE leasehold_audit DROP CONSTRAINT away');
  await survives(victim(heal), /does not take: .*violates check constraint "away"/);
});

test('one that accepts and stands still', async () => {
  postgres.signal('SIGSTOP');
  const heal = (): void => postgres.signal('SIGCONT');
  try {
    await survives(victim(heal), /does not take: .*timeout/);
  } finally {
    heal();
  }
});
