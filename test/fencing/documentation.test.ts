/**
 * Every snippet of docs/FENCING.md: the SQL is executed as it stands there; the TypeScript is the code of this file, line for
 * line, and runs against a real PostgreSQL, etcd and `leasehold dev`.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import {
  fencedUpdate,
  fencedWrite,
  fencing,
  PostgresFenceStore,
  raiseFence,
  StaleTokenError,
  staleReporter,
  tableFenceSql,
  tokenHeader,
  withFence,
} from '../../src/client/fencing/index.ts';
import { shareDev } from '../support/dev/shared-dev.ts';
import { ETCD_START_MS_MAX, TestEtcd } from '../support/etcd.ts';
import { Postgres } from './support/postgresql.ts';

const PAGE = readFileSync(new URL('../../docs/FENCING.md', import.meta.url), 'utf8');
const dev = shareDev({ name: 'payouts' });

function blocks(language: string): string[] {
  return [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  );
}

function stated(containing: string): string {
  const found = blocks('sql').filter((text) => text.includes(containing));
  expect(found, containing).toHaveLength(1);
  return found[0] ?? '';
}

let postgres: Postgres;
let etcd: TestEtcd;
let client: pg.Client;
beforeAll(async () => {
  [postgres, etcd] = await Promise.all([Postgres.start(), TestEtcd.start()]);
  client = await postgres.connect();
}, ETCD_START_MS_MAX);
afterAll(() => Promise.all([postgres.stop(), etcd.stop()]));

beforeEach(async () => {
  await client.query(`ROLLBACK; DROP TABLE IF EXISTS leasehold_fence, payout_batches;
    ${stated('CREATE TABLE')};
    CREATE TABLE payout_batches (id text PRIMARY KEY, status text NOT NULL DEFAULT 'open', fence bigint);
    INSERT INTO payout_batches VALUES ('b1'), ('b2')`);
});

async function open(): Promise<unknown[]> {
  const { rows } = await client.query("SELECT id FROM payout_batches WHERE status = 'open' ORDER BY id");
  return rows.map(({ id }) => id);
}

/** Two grants of the same lock, one after the other: the first holder does not know that its time is over. */
async function twoGrants(name: string): Promise<{ older: number; newer: number; leaseholdUrl: string }> {
  const api = dev.api();
  const tokens: number[] = [];
  for (const holder of ['A', 'B']) {
    const held = await api.lock(name, { client: holder });
    await api.release(held);
    tokens.push(held.token);
  }
  const [older = 0, newer = 0] = tokens;
  return { older, newer, leaseholdUrl: `http://127.0.0.1:${api.port}` };
}

function rejectionsCounted(): Promise<number> {
  return dev.api().metric('leasehold_fencing_rejections_total{namespace="payouts"}');
}

it('the TypeScript of the page is the code of this file', () => {
  // The formatter breaks lines where the indentation asks for it.
  const plain = (text: string) => text.replace(/\s+/g, '').replace(/,(?=[)\]}])/g, '');
  const code = plain(readFileSync(new URL(import.meta.url), 'utf8'));
  const snippets = blocks('ts').filter((text) => !text.startsWith('import '));
  expect(snippets.length).toBe(6);
  for (const snippet of snippets) expect(code.includes(plain(snippet)), snippet).toBe(true);
  const imported = /^import \{(.*)\} from 'leasehold\/fencing';$/m.exec(PAGE)?.[1]?.split(',') ?? [];
  expect(imported.length).toBe(3);
  for (const name of imported) expect(code).toContain(`${name.trim()}(`);
});

it('PostgreSQL: the payouts of a holder, and the refusal of an older one', async () => {
  const { older, newer, leaseholdUrl } = await twoGrants('nightly');
  const counted = await rejectionsCounted();
  async function payAll(token: number) {
    const fence = {
      resource: 'payouts/nightly',
      token,
      report: staleReporter({ url: leaseholdUrl, lock: 'payouts/nightly' }),
    };
    await raiseFence(client, fence); // first thing after the grant: older holders are out from now on
    const { rows: batches } = await client.query("SELECT id FROM payout_batches WHERE status = 'open'");
    for (const { id } of batches) {
      await withFence(client, fence, () =>
        client.query("UPDATE payout_batches SET status = 'paid' WHERE id = $1 AND status = 'open'", [id]),
      );
    }
  }
  await payAll(newer);
  expect(await open()).toEqual([]);
  const refused = await payAll(older).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StaleTokenError);
  expect(refused).toMatchObject({ token: older, current: newer });
  expect(refused).not.toHaveProperty('cause');
  expect(await rejectionsCounted()).toBe(counted + 1);
});

it('PostgreSQL: by hand', async () => {
  const statements = stated('INSERT INTO leasehold_fence');
  const results = (await client.query(statements)) as unknown as pg.QueryResult[];
  expect(results.map(({ command, rowCount }) => `${command} ${rowCount ?? ''}`)).toEqual([
    'BEGIN ',
    'INSERT 1',
    'UPDATE 1',
    'COMMIT ',
  ]);
  const [, raise = ''] = statements.split(/(?<=BEGIN;\n)|(?=UPDATE payout_batches)/);
  const older = await client.query(raise.replace('1883228122926548', '1883228122926547'));
  expect(older.rowCount).toBe(0);
});

it('PostgreSQL: a row with its own token', async () => {
  const token = 6;
  await fencedUpdate(client, {
    table: 'payout_batches',
    where: { id: 'b1' },
    set: { status: 'paid' },
    token,
  });
  expect(await open()).toEqual(['b2']);
});

it('PostgreSQL: a trigger', async () => {
  const stating = stated('SET LOCAL');
  const sql = tableFenceSql({
    table: 'payout_batches',
    resource: 'payouts/nightly',
    fenceTable: ['public', 'leasehold_fence'],
  });
  await client.query(sql);
  await client.query(stating);
  expect(await open()).toEqual(['b2']);
  const older = stating.replace('1883228122926548', '1883228122926547');
  await expect(client.query(older)).rejects.toMatchObject({ code: 'LH001' });
  await client.query('ROLLBACK');
  await expect(client.query("UPDATE payout_batches SET status = 'paid'")).rejects.toMatchObject({
    code: 'LH002',
  });
});

it('an HTTP service', async () => {
  const { older, newer, leaseholdUrl } = await twoGrants('accounts/1');
  const counted = await rejectionsCounted();
  const pool = new pg.Pool(postgres.connection);
  const app = express();
  app.use(
    fencing<express.Request>({
      store: new PostgresFenceStore(pool),
      resourceOf: (request) => `payouts${request.path}`,
      report: staleReporter({ url: leaseholdUrl, lock: (resource) => resource }),
    }),
  );
  app.use((_request, response) => void response.json({ changed: true }));
  const server = createServer(app).listen(0, '127.0.0.1');
  onTestFinished(async () => {
    server.close();
    await pool.end();
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/accounts/1`;
  const put = (token: number) => fetch(url, { method: 'PUT', headers: tokenHeader(token) });
  expect((await put(newer)).status).toBe(200);
  const refused = await put(older);
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ code: 'STALE_TOKEN', current: newer });
  await expect.poll(rejectionsCounted).toBe(counted + 1);
});

it('etcd', async () => {
  const { older, newer, leaseholdUrl } = await twoGrants('nightly');
  const counted = await rejectionsCounted();
  const etcdUrl = etcd.endpoint;
  async function write(token: number) {
    await fencedWrite(
      { endpoint: etcdUrl, report: staleReporter({ url: leaseholdUrl, lock: 'payouts/nightly' }) },
      { resource: 'payouts/nightly', token, operations: [{ put: { key: 'payouts/cursor', value: 'b1' } }] },
    );
  }
  await write(newer);
  expect(await etcd.get('payouts/cursor')).toBe('b1');
  await expect(write(older)).rejects.toMatchObject({ current: newer });
  expect(await rejectionsCounted()).toBe(counted + 1);
});

it('an idempotency key made from the work: two holders, one payment', async () => {
  const payments = new Map<string, string>();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const key = String(request.headers['idempotency-key']);
    if (!payments.has(key)) payments.set(key, body);
    response.end(payments.get(key));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const providerUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  async function pay(batchId: string) {
    await fetch(`${providerUrl}/payments`, {
      method: 'POST',
      headers: { 'idempotency-key': `payout:2026-11-30:${batchId}` },
      body: JSON.stringify({ batch: batchId, amount_minor: 12_500 }),
    });
  }
  await pay('b1');
  await pay('b1');
  await pay('b2');
  expect([...payments.keys()]).toEqual(['payout:2026-11-30:b1', 'payout:2026-11-30:b2']);
});
