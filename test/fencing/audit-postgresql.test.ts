/** The audit of a group of real processes to a real PostgreSQL: each event is there once, whatever dies on the way. */
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { AuditedGroup } from '../support/group/audited-group.ts';
import { Postgres } from './support/postgresql.ts';

const GROUP = 'test/group';

let postgres: Postgres;
beforeAll(async () => {
  postgres = await Postgres.start();
});
afterAll(() => postgres?.stop());

test('to PostgreSQL: each event is one row, over a kill of the leader and a database that refuses', async () => {
  const { url } = postgres;
  const looker: pg.Client = await postgres.connect();
  const group = await AuditedGroup.start(() => ({ sink: 'postgresql', url, timeoutMs: 2_000 }));
  onTestFinished(() => group.end());
  const rows = async (): Promise<number> =>
    Number((await looker.query('SELECT count(*) AS n FROM leasehold_audit')).rows[0]?.n ?? 0);
  await expect.poll(() => rows().catch(() => 0), { timeout: 15_000 }).toBeGreaterThan(10);
  // Its connection ends, and then its inserts fail: it has to connect and send anew.
  await looker.query('ALTER TABLE leasehold_audit ADD CONSTRAINT away CHECK (false) NOT VALID');
  await looker.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold-audit'",
  );
  await pause(1_000);
  await group.killLeader();
  await looker.query('ALTER TABLE leasehold_audit DROP CONSTRAINT away');
  const { history } = await group.quiet();
  const wanted = history.flatMap(({ index, eventHash, events }) =>
    events.map((event, position) => ({ index, position, eventHash, event: JSON.stringify(event) })),
  );
  const lastEvent = wanted.at(-1);
  const exported = async () =>
    (
      await looker.query(
        `SELECT entry_index AS index, position, event_hash AS "eventHash", event::text AS event, lock_group
         FROM leasehold_audit ORDER BY entry_index, position`,
      )
    ).rows.map((row) => ({ ...row, index: Number(row.index) }));
  await expect
    .poll(async () => (await exported()).at(-1)?.index ?? 0, { timeout: 40_000 })
    .toBeGreaterThanOrEqual(lastEvent?.index ?? 0);
  const all = (await exported()).filter(({ index }) => index <= history.length);
  expect(all).toEqual(wanted.map((row) => ({ ...row, lock_group: GROUP })));
  await looker.end();
}, 120_000);
