/**
 * The audit of a group of real processes, to each kind of sink, while leaders die and the sink is away: nothing is missing, what comes twice is
 * the same, and the checker passes it.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HistoryEntry } from '../../src/api/entry.ts';
import { Postgres } from '../fencing/support/postgresql.ts';
import { leasehold } from '../support/cli.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { GroupBench, SERVERS } from '../support/group/group-bench.ts';
import { GroupClients } from '../support/group/group-clients.ts';

const WAITERS = 4;
const GROUP = 'test/group';

let postgres: Postgres;
let bench: GroupBench | null = null;
let clients: GroupClients | null = null;

beforeAll(async () => {
  postgres = await Postgres.start();
}, ETCD_START_MS_MAX);

afterAll(async () => {
  await end();
  await postgres?.stop();
}, 60_000);

async function end(): Promise<void> {
  await clients?.end();
  await bench?.end();
  [clients, bench] = [null, null];
}

async function started(audit: (name: string) => object): Promise<GroupBench> {
  await end();
  bench = await GroupBench.start({ audit });
  clients = new GroupClients(bench);
  await clients.keep(3);
  await clients.passHot(WAITERS);
  return bench;
}

/** kill -9 of the leader in the middle of the load; it comes back as a follower. */
async function killLeader(group: GroupBench): Promise<void> {
  const leader = await group.leader();
  await group.kill(leader);
  await group.leader();
  await pause(1_000);
  await group.group.start([leader]);
}

/** The load ends, and the committed history is what it is but for beats. */
async function quiet(group: GroupBench): Promise<readonly HistoryEntry[]> {
  await clients?.end();
  clients = null;
  return group.history();
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** One line for each entry. @throws what comes twice differs. */
function once(lines: readonly string[]): Map<number, HistoryEntry & { readonly group: string }> {
  const byIndex = new Map<number, string>();
  for (const line of lines) {
    const { index, type } = JSON.parse(line) as { readonly index: number; readonly type?: string };
    expect(type).toBeUndefined();
    expect(byIndex.get(index) ?? line).toBe(line);
    byIndex.set(index, line);
  }
  return new Map(
    [...byIndex].map(([index, line]) => [index, JSON.parse(line) as HistoryEntry & { group: string }]),
  );
}

function expectAll(exported: ReadonlyMap<number, unknown>, history: readonly HistoryEntry[]): void {
  for (const entry of history) expect(exported.get(entry.index)).toEqual({ group: GROUP, ...entry });
}

test('to files: each server writes its part over two kills of leaders, and together they are the history', async () => {
  const group = await started((name) => ({ sink: 'file', path: `server-${name}.ndjson` }));
  await pause(500);
  await killLeader(group);
  await killLeader(group);
  const history = await quiet(group);
  const files = SERVERS.map((name) => join(group.folder, `${name}.ndjson`));
  const read = () => files.flatMap((file) => linesOf(textOf(file)));
  await expect
    .poll(() => Math.max(...once(read()).keys()), { timeout: 20_000 })
    .toBeGreaterThanOrEqual(history.length);
  expectAll(once(read()), history);
  const checked = await leasehold(['history', 'check', ...files.filter((file) => textOf(file) !== '')]);
  expect(checked.stderr).toBe('');
  expect(checked.stdout).toContain('every promise was kept');
  expect(checked.code).toBe(0);
}, 90_000);

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

test('to an HTTP receiver that is away for a while: locks go on, and everything comes later', async () => {
  const got: string[] = [];
  let answer = 204;
  const receiver: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      if (answer < 300) got.push(...linesOf(body));
      response.writeHead(answer).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  const group = await started(() => ({ sink: 'http', url: `http://127.0.0.1:${port}/`, timeoutMs: 1_000 }));
  await expect.poll(() => got.length, { timeout: 10_000 }).toBeGreaterThan(10);
  answer = 503;
  const before = got.length;
  const granted = clients?.hotGrants ?? 0;
  await pause(1_500);
  await killLeader(group);
  await expect.poll(() => clients?.hotGrants ?? 0, { timeout: 10_000 }).toBeGreaterThan(granted + 20);
  expect(got.length).toBe(before);
  answer = 200;
  const history = await quiet(group);
  await expect
    .poll(() => Math.max(...once(got).keys()), { timeout: 40_000 })
    .toBeGreaterThanOrEqual(history.length);
  expectAll(once(got), history);
  expect(clientsComplaints()).toEqual([]);
  receiver.closeAllConnections();
  receiver.close();
}, 120_000);

const clientsComplaints = (): readonly string[] => clients?.complaints ?? [];

test('to PostgreSQL: each event is one row, over a kill of the leader and a database that refuses', async () => {
  const { url } = postgres;
  const looker: pg.Client = await postgres.connect();
  const group = await started(() => ({ sink: 'postgresql', url, timeoutMs: 2_000 }));
  const rows = async (): Promise<number> =>
    Number((await looker.query('SELECT count(*) AS n FROM leasehold_audit')).rows[0]?.n ?? 0);
  await expect.poll(() => rows().catch(() => 0), { timeout: 15_000 }).toBeGreaterThan(10);
  // Its connection ends, and then its inserts fail: it has to connect and send anew.
  await looker.query('ALTER TABLE leasehold_audit ADD CONSTRAINT away CHECK (false) NOT VALID');
  await looker.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold-audit'",
  );
  await pause(1_000);
  await killLeader(group);
  await looker.query('ALTER TABLE leasehold_audit DROP CONSTRAINT away');
  const history = await quiet(group);
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
