/** The generated triggers in a real PostgreSQL: every writer is held to the fence, and no name breaks out of the SQL. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  fencedUpdate,
  fenceTableSql,
  readFence,
  rowFenceSql,
  StaleTokenError,
  staleTokenFrom,
  tableFenceSql,
  withFence,
} from '../../src/client/fencing/index.ts';
import { Postgres } from './support/postgresql.ts';
import { pidOf, untilBlocked } from './support/race.ts';

let postgres: Postgres;
let client: pg.Client;
let other: pg.Client;
let observer: pg.Client;
beforeAll(async () => {
  postgres = await Postgres.start();
  [client, other, observer] = await Promise.all([postgres.connect(), postgres.connect(), postgres.connect()]);
});
afterAll(() => postgres.stop());

const resource = "payouts/o'brien\\";
const FENCE_TABLE = ['public', 'leasehold_fence'] as const;

beforeEach(async () => {
  await Promise.all([client, other].map((each) => each.query('ROLLBACK')));
  await observer.query(`DROP TABLE IF EXISTS leasehold_fence, batches; ${fenceTableSql()};
    CREATE TABLE batches (id text PRIMARY KEY, status text NOT NULL DEFAULT 'open', fence bigint);
    INSERT INTO batches VALUES ('b1'), ('b2')`);
});

/** What a program in any language would send. */
async function stating(each: pg.Client, token: number | string | null, statement: string): Promise<unknown> {
  await each.query('BEGIN');
  try {
    if (token !== null) await each.query(`SET LOCAL leasehold.token = '${token}'`);
    await each.query(statement);
    await each.query('COMMIT');
    return null;
  } catch (error) {
    await each.query('ROLLBACK');
    return error;
  }
}

const stale = (error: unknown) => staleTokenFrom(error);

describe('a fence for the whole table', () => {
  beforeEach(() => observer.query(tableFenceSql({ table: 'batches', resource, fenceTable: FENCE_TABLE })));

  it.each([
    "INSERT INTO batches VALUES ('b3')",
    "UPDATE batches SET status = 'paid'",
    "UPDATE batches SET status = 'paid' WHERE false",
    'DELETE FROM batches',
    'TRUNCATE batches',
  ])('holds to it: %s', async (statement) => {
    expect(await stating(client, 6, statement)).toBeNull();
    expect(await stating(client, 6, statement.replace('b3', 'b4'))).toBeNull();
    const refused = await stating(client, 5, statement);
    expect(refused).toMatchObject({ code: 'LH001' });
    expect(stale(refused)).toMatchObject({ token: 5, current: 6, resource });
    expect(await stating(client, null, statement)).toMatchObject({ code: 'LH002' });
    expect(await readFence(observer, { resource })).toBe(6);
  });

  it('also refuses rows that the newer holder has not reached', async () => {
    await stating(client, 6, "UPDATE batches SET status = 'paid' WHERE id = 'b1'");
    const refused = await stating(other, 5, "UPDATE batches SET status = 'paid' WHERE id = 'b2'");
    expect(stale(refused)).toMatchObject({ token: 5, current: 6 });
  });

  it.each(['0', '-1', '9007199254740992', 'x', '1.5'])('takes %s for no token', async (token) => {
    expect(await stating(client, token, 'DELETE FROM batches')).toBeInstanceOf(Error);
    expect((await observer.query('SELECT FROM batches')).rowCount).toBe(2);
  });

  it('forgets the token at the end of the transaction', async () => {
    await stating(client, 6, "UPDATE batches SET status = 'paid'");
    await expect(client.query('DELETE FROM batches')).rejects.toMatchObject({ code: 'LH002' });
  });

  it('is told the token by withFence, and its refusal is typed and reported there', async () => {
    await withFence(client, { resource, token: 6 }, () => client.query('DELETE FROM batches'));
    const told: unknown[] = [];
    const report = async (error: unknown) => void told.push(error);
    const another = { resource: 'payouts/another', token: 5, report };
    const refused = await withFence(client, another, () => client.query('TRUNCATE batches')).catch(
      (e: unknown) => e,
    );
    expect(refused).toBeInstanceOf(StaleTokenError);
    expect(told).toEqual([refused]);
  });

  it('can be made again, and removed', async () => {
    await observer.query(tableFenceSql({ table: 'batches', resource, fenceTable: FENCE_TABLE }));
    await observer.query('DROP TRIGGER batches_fence ON batches; DROP FUNCTION batches_fence');
    expect(await stating(client, null, 'DELETE FROM batches')).toBeNull();
  });
});

describe('a fence for each row', () => {
  beforeEach(() => observer.query(rowFenceSql({ table: 'batches', column: 'fence' })));

  it('fills its column, and refuses an older token to change or delete the row', async () => {
    expect(await stating(client, 6, "UPDATE batches SET status = 'paid' WHERE id = 'b1'")).toBeNull();
    expect((await observer.query("SELECT fence FROM batches WHERE id = 'b1'")).rows).toEqual([
      { fence: '6' },
    ]);
    for (const statement of [
      "UPDATE batches SET fence = 99 WHERE id = 'b1'",
      "DELETE FROM batches WHERE id = 'b1'",
    ]) {
      expect(stale(await stating(other, 5, statement))).toMatchObject({ token: 5, current: 6 });
      expect(await stating(other, null, statement)).toMatchObject({ code: 'LH002' });
      expect(await stating(other, 6, statement)).toBeNull();
    }
    const again = "INSERT INTO batches VALUES ('b3') ON CONFLICT (id) DO UPDATE SET status = 'paid'";
    expect(await stating(client, 8, again)).toBeNull();
    expect(stale(await stating(client, 7, again))).toMatchObject({ token: 7, current: 8 });
  });

  it('an older token that waits for the row is refused when the newer one commits', async () => {
    await other.query("BEGIN; SET LOCAL leasehold.token = '6'; UPDATE batches SET status = 'paid'");
    const pid = await pidOf(client);
    const waiting = stating(client, 5, "UPDATE batches SET status = 'void'");
    await untilBlocked(observer, pid);
    await other.query('COMMIT');
    expect(stale(await waiting)).toMatchObject({ token: 5, current: 6 });
  });

  it('goes together with fencedUpdate in a transaction that states its token', async () => {
    const update = { table: 'batches', where: { id: 'b1' }, set: { status: 'paid' }, token: 6 };
    await expect(fencedUpdate(client, update)).rejects.toMatchObject({ code: 'LH002' });
    expect(await withFence(client, { resource, token: 6 }, () => fencedUpdate(client, update))).toBe(true);
  });
});

describe('names in generated SQL', () => {
  const EVIL = `x"; DROP TABLE batches; -- $leasehold$ ' \\ %`;

  it('stay names, whatever they contain', async () => {
    const quoted = `"${EVIL.replaceAll('"', '""')}"`;
    await observer.query(`DROP SCHEMA IF EXISTS ${quoted} CASCADE; CREATE SCHEMA ${quoted};
      CREATE TABLE ${quoted}.${quoted} (id int, ${quoted} bigint); ${fenceTableSql([EVIL, `${EVIL}f`])}`);
    const table = [EVIL, EVIL] as const;
    await observer.query(rowFenceSql({ table, column: EVIL, name: `${EVIL}r` }));
    await observer.query(
      tableFenceSql({ table, resource: EVIL, fenceTable: [EVIL, `${EVIL}f`], name: `${EVIL}t` }),
    );
    const insert = `INSERT INTO ${quoted}.${quoted} VALUES (1)`;
    expect(await stating(client, 6, insert)).toBeNull();
    expect(stale(await stating(client, 5, insert))).toMatchObject({ resource: EVIL, current: 6 });
    expect((await observer.query(`SELECT * FROM ${quoted}.${quoted}`)).rows).toEqual([
      { id: 1, [EVIL]: '6' },
    ]);
    expect((await observer.query('SELECT FROM batches')).rowCount).toBe(2);
  });

  it('a text with backslashes is the same under both settings of standard_conforming_strings', async () => {
    for (const setting of ['on', 'off']) {
      await client.query(`SET standard_conforming_strings = ${setting}`);
      await client.query(tableFenceSql({ table: 'batches', resource, fenceTable: FENCE_TABLE }));
      expect(await stating(client, 6, 'DELETE FROM batches')).toBeNull();
      expect(await readFence(observer, { resource })).toBe(6);
    }
  });
});
