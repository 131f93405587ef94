/** The PostgreSQL fences against a real PostgreSQL, races included: each is arranged by looking at who waits for whom. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  fencedUpdate,
  fenceTableSql,
  PostgresFenceStore,
  raiseFence,
  readFence,
  StaleTokenError,
  withFence,
} from '../../src/client/fencing/index.ts';
import { Postgres } from './support/postgresql.ts';
import { gate, pidOf, untilBlocked } from './support/race.ts';

let postgres: Postgres;
/** The older holder's connection, the newer one's, and one that looks. */
let older: pg.Client;
let newer: pg.Client;
let observer: pg.Client;
beforeAll(async () => {
  postgres = await Postgres.start();
  [older, newer, observer] = await Promise.all([postgres.connect(), postgres.connect(), postgres.connect()]);
});
afterAll(() => postgres.stop());

const resource = 'payouts/nightly';
const OLDER = { resource, token: 5 };
const NEWER = { resource, token: 6 };
const PAY = "UPDATE batches SET status = 'paid', paid_by = $1 WHERE id = 'b1' AND status = 'open'";

beforeEach(async () => {
  await Promise.all([older, newer].map((client) => client.query('ROLLBACK')));
  await observer.query(`DROP TABLE IF EXISTS leasehold_fence, batches; ${fenceTableSql()};
    CREATE TABLE batches (id text PRIMARY KEY, status text NOT NULL, paid_by text, fence bigint);
    INSERT INTO batches VALUES ('b1', 'open', NULL, NULL)`);
});

async function paidBy(): Promise<unknown> {
  return (await observer.query("SELECT paid_by FROM batches WHERE id = 'b1'")).rows[0]?.paid_by;
}

const fence = () => readFence(observer, { resource });
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

describe('one fence for one lock', () => {
  it('makes a missing row, passes an equal and a greater token, refuses a smaller one', async () => {
    expect(await fence()).toBe(0);
    await raiseFence(older, OLDER);
    await raiseFence(older, OLDER);
    await raiseFence(newer, NEWER);
    const refused = await failureOf(raiseFence(older, OLDER));
    expect(refused).toBeInstanceOf(StaleTokenError);
    expect(refused).toMatchObject({ code: 'STALE_TOKEN', token: 5, current: 6, resource });
    expect(await fence()).toBe(6);
  });

  it('keeps tokens exact up to 2^53 - 1, and takes nothing else', async () => {
    await raiseFence(newer, { resource, token: 2 ** 53 - 1 });
    expect(await fence()).toBe(2 ** 53 - 1);
    await expect(raiseFence(older, { resource, token: 2 ** 53 - 2 })).rejects.toMatchObject({
      current: 2 ** 53 - 1,
    });
    for (const token of [0, -1, 1.5, 2 ** 53, Number.NaN])
      await expect(raiseFence(older, { resource, token })).rejects.toMatchObject({ code: 'INVALID' });
    await expect(observer.query('UPDATE leasehold_fence SET token = 9007199254740992')).rejects.toThrow(
      'check',
    );
  });

  it('a holder that was paused before its transaction changes nothing', async () => {
    await raiseFence(older, OLDER);
    await withFence(newer, NEWER, () => newer.query(PAY, ['newer']));
    const refused = await failureOf(withFence(older, OLDER, () => older.query(PAY, ['older'])));
    expect(refused).toMatchObject({ code: 'STALE_TOKEN', current: 6 });
    expect(await paidBy()).toBe('newer');
  });

  it('a holder that checked and is paused before its commit keeps the newer one out until then', async () => {
    const pause = gate();
    const paused = withFence(older, OLDER, async () => {
      await older.query(PAY, ['older']);
      await pause.opened;
    });
    const pid = await pidOf(newer);
    await untilRaised();
    const taking = withFence(newer, NEWER, () => newer.query(PAY, ['newer']));
    await untilBlocked(observer, pid);
    pause.open();
    await paused;
    // It looks at the table only after the older one's commit, so it sees what that did.
    expect((await taking).rowCount).toBe(0);
    expect(await paidBy()).toBe('older');
    expect(await fence()).toBe(6);
  });

  it('a paused holder whose session times out is rolled back, and the newer one goes on', async () => {
    const stuck = await postgres.connect();
    await stuck.query("SET idle_in_transaction_session_timeout = '300ms'");
    const pause = gate();
    const paused = failureOf(
      withFence(stuck, OLDER, async () => {
        await stuck.query(PAY, ['older']);
        await pause.opened;
      }),
    );
    await untilRaised();
    expect((await withFence(newer, NEWER, () => newer.query(PAY, ['newer']))).rowCount).toBe(1);
    pause.open();
    expect(await paused).toBeInstanceOf(Error);
    expect(await paidBy()).toBe('newer');
  });

  it('an older transaction that waits behind a newer one is refused when that commits', async () => {
    await newer.query('BEGIN');
    await raiseFence(newer, NEWER);
    const pid = await pidOf(older);
    const waiting = failureOf(withFence(older, OLDER, () => older.query(PAY, ['older'])));
    await untilBlocked(observer, pid);
    await newer.query(PAY, ['newer']);
    await newer.query('COMMIT');
    expect(await waiting).toMatchObject({ code: 'STALE_TOKEN', current: 6 });
    expect(await paidBy()).toBe('newer');
  });

  it('a fence that was raised and rolled back was never raised', async () => {
    await raiseFence(older, OLDER);
    await newer.query('BEGIN');
    await raiseFence(newer, NEWER);
    const pid = await pidOf(older);
    const waiting = withFence(older, OLDER, () => older.query(PAY, ['older']));
    await untilBlocked(observer, pid);
    await newer.query('ROLLBACK');
    expect((await waiting).rowCount).toBe(1);
    expect(await fence()).toBe(5);
  });

  it.each([
    ['older', 'newer'],
    ['newer', 'older'],
  ])('a missing row that two make at once: %s first', async (first) => {
    const [one, two] = first === 'older' ? [older, newer] : [newer, older];
    const [oneFence, twoFence] = first === 'older' ? [OLDER, NEWER] : [NEWER, OLDER];
    await one.query('BEGIN');
    await raiseFence(one, oneFence);
    const pid = await pidOf(two);
    const second = failureOf(raiseFence(two, twoFence));
    await untilBlocked(observer, pid);
    await one.query('COMMIT');
    if (first === 'older') expect(await second).toBeNull();
    else expect(await second).toMatchObject({ code: 'STALE_TOKEN', current: 6 });
    expect(await fence()).toBe(6);
  });

  it('a missing row whose maker rolls back is made by the one that waited', async () => {
    await newer.query('BEGIN');
    await raiseFence(newer, NEWER);
    const pid = await pidOf(older);
    const second = raiseFence(older, OLDER);
    await untilBlocked(observer, pid);
    await newer.query('ROLLBACK');
    await second;
    expect(await fence()).toBe(5);
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'under %s a race is never won by the older one',
    async (level) => {
      await raiseFence(older, OLDER);
      await older.query(`BEGIN ISOLATION LEVEL ${level}`);
      await older.query('SELECT * FROM batches');
      await raiseFence(newer, NEWER);
      // It cannot see the newer fence, so PostgreSQL ends the transaction; a new one sees it.
      expect(await failureOf(raiseFence(older, OLDER))).toMatchObject({ code: '40001' });
      await older.query('ROLLBACK');
      await older.query(`BEGIN ISOLATION LEVEL ${level}`);
      expect(await failureOf(raiseFence(older, OLDER))).toMatchObject({ code: 'STALE_TOKEN', current: 6 });
      await older.query('ROLLBACK');
    },
  );

  it('among many writers at once, no write is followed by one with an older token', async () => {
    await observer.query('CREATE TABLE IF NOT EXISTS writes (seq serial, token bigint); TRUNCATE writes');
    const clients = await Promise.all(Array.from({ length: 8 }, () => postgres.connect()));
    const outcomes = await Promise.all(
      clients.flatMap((client, index) => [
        writeAll(
          client,
          [3, 11, 7, 19, 2].map((token) => token * 8 + index),
        ),
      ]),
    );
    const { rows } = await observer.query<{ token: string }>('SELECT token FROM writes ORDER BY seq');
    const tokens = rows.map(({ token }) => Number(token));
    expect(tokens).toEqual(tokens.toSorted((one, other) => one - other));
    expect(tokens.length).toBe(outcomes.reduce((sum, { passed }) => sum + passed, 0));
    expect(outcomes.reduce((sum, { refused }) => sum + refused, 0)).toBeGreaterThanOrEqual(8);
    expect(await fence()).toBe(19 * 8 + 7);
  });

  async function writeAll(client: pg.Client, tokens: readonly number[]) {
    const counts = { passed: 0, refused: 0 };
    for (const token of tokens) {
      const work = () => client.query('INSERT INTO writes (token) VALUES ($1)', [token]);
      const failure = await failureOf(withFence(client, { resource, token }, work));
      if (failure === null) counts.passed++;
      else if (failure instanceof StaleTokenError) counts.refused++;
      else throw failure;
    }
    return counts;
  }

  /** The older holder's open transaction is not visible, but its lock is. */
  async function untilRaised(): Promise<void> {
    const locks =
      "SELECT 1 FROM pg_locks WHERE relation = 'leasehold_fence'::regclass AND mode = 'RowExclusiveLock'";
    while ((await observer.query(locks)).rows.length === 0);
    while (
      (await observer.query("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'")).rows
        .length === 0
    );
  }
});

describe('withFence', () => {
  it('rolls everything back when the work throws, the fence included', async () => {
    const failure = new Error('card declined');
    const work = async () => {
      await newer.query(PAY, ['newer']);
      throw failure;
    };
    expect(await failureOf(withFence(newer, NEWER, work))).toBe(failure);
    expect(await paidBy()).toBeNull();
    expect(await fence()).toBe(0);
  });

  it('is no commit when the work swallowed an error of its transaction', async () => {
    const work = async () => {
      await newer.query(PAY, ['newer']);
      await newer.query('SELECT 1 / 0').catch(() => undefined);
    };
    expect(await failureOf(withFence(newer, NEWER, work))).toMatchObject({ code: '25P02' });
    expect(await paidBy()).toBeNull();
    expect((await newer.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  it('says so when the work ended the transaction, so that what followed was not fenced', async () => {
    const work = async () => {
      await newer.query('COMMIT');
      await newer.query(PAY, ['newer']);
    };
    await expect(withFence(newer, NEWER, work)).rejects.toThrow('not fenced');
  });

  it('reports a refusal, once, after the transaction is over', async () => {
    await raiseFence(newer, NEWER);
    const told: unknown[] = [];
    const report = async (stale: unknown) => {
      told.push(stale);
      // The fence is free again: reporting keeps nobody waiting.
      await raiseFence(newer, { resource, token: 7 });
    };
    const refused = await failureOf(
      withFence(older, { ...OLDER, report }, () => older.query(PAY, ['older'])),
    );
    expect(refused).toBeInstanceOf(StaleTokenError);
    expect(told).toEqual([refused]);
  });

  it('works with a table of any name', async () => {
    const table = ['public', 'Fences; DROP TABLE batches --"'] as const;
    await observer.query(fenceTableSql(table));
    await withFence(newer, { ...NEWER, table }, () => newer.query(PAY, ['newer']));
    await expect(raiseFence(older, { ...OLDER, table })).rejects.toBeInstanceOf(StaleTokenError);
    expect(await paidBy()).toBe('newer');
  });
});

describe('a row with a fence of its own', () => {
  const pay = (client: pg.Client, token: number) =>
    fencedUpdate(client, {
      table: 'batches',
      where: { id: 'b1' },
      set: { status: 'paid', paid_by: `${token}` },
      token,
    });

  it('passes an equal and a greater token, refuses a smaller one, and tells of a missing row', async () => {
    expect(await pay(older, 5)).toBe(true);
    expect(await pay(older, 5)).toBe(true);
    expect(await pay(newer, 6)).toBe(true);
    expect(await failureOf(pay(older, 5))).toMatchObject({ code: 'STALE_TOKEN', token: 5, current: 6 });
    expect(await paidBy()).toBe('6');
    await observer.query('DELETE FROM batches');
    expect(await pay(older, 5)).toBe(false);
  });

  it('an older one that waits for the row is refused when the newer one commits', async () => {
    await newer.query('BEGIN');
    await pay(newer, 6);
    const pid = await pidOf(older);
    const waiting = failureOf(pay(older, 5));
    await untilBlocked(observer, pid);
    await newer.query('COMMIT');
    expect(await waiting).toMatchObject({ code: 'STALE_TOKEN', current: 6 });
    expect(await paidBy()).toBe('6');
  });

  it('does not guard the rows that the newer holder has not reached: why one fence for one lock is the rule', async () => {
    await observer.query("INSERT INTO batches VALUES ('b2', 'open', NULL, NULL)");
    await pay(newer, 6);
    const where = { id: 'b2' };
    expect(await fencedUpdate(older, { table: 'batches', where, set: { status: 'paid' }, token: 5 })).toBe(
      true,
    );
  });

  it('refuses conditions that are no key', async () => {
    await observer.query("INSERT INTO batches VALUES ('b2', 'open', NULL, NULL)");
    const base = { table: 'batches', set: { status: 'paid' }, token: 5 };
    await expect(fencedUpdate(older, { ...base, where: {} })).rejects.toThrow('unique key');
    await expect(fencedUpdate(older, { ...base, where: { id: null } })).rejects.toThrow('unique key');
    await expect(fencedUpdate(older, { ...base, where: { status: 'open' } })).rejects.toThrow('names 2 rows');
  });

  it('quotes every name', async () => {
    const set = { "status\" = 'x'; DROP TABLE batches --": 1 };
    await expect(
      fencedUpdate(older, { table: 'batches', where: { id: 'b1' }, set, token: 5 }),
    ).rejects.toThrow('does not exist');
    expect((await observer.query('SELECT status FROM batches')).rows).toEqual([{ status: 'open' }]);
  });
});

describe('PostgresFenceStore', () => {
  it('answers with the highest token, to all processes alike', async () => {
    const [one, other] = [new PostgresFenceStore(older), new PostgresFenceStore(newer)];
    expect(await one.raise(resource, 5)).toBe(5);
    expect(await other.raise(resource, 6)).toBe(6);
    expect(await one.raise(resource, 5)).toBe(6);
    expect(await one.raise('payouts/other', 5)).toBe(5);
  });
});
