/**
 * The audit of a group of real processes, to files and over HTTP, while leaders die and the sink is away: nothing is missing, what comes twice
 * is the same, and the checker passes it. PostgreSQL: test/fencing/audit-postgresql.test.ts.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import type { HistoryEntry } from '../../src/api/entry.ts';
import { leasehold, withoutProgress } from '../support/cli.ts';
import { AuditedGroup } from '../support/group/audited-group.ts';
import { SERVERS } from '../support/group/group-bench.ts';

const GROUP = 'test/group';

let group: AuditedGroup | null = null;

afterEach(async () => {
  await group?.end();
  group = null;
}, 60_000);

async function started(audit: (name: string) => object): Promise<AuditedGroup> {
  group = await AuditedGroup.start(audit);
  return group;
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
  await group.killLeader();
  await group.killLeader();
  const socket = group.bench.adminSocket(await group.bench.leader());
  const shown = await leasehold(['group', 'audit', '--admin-socket', socket]);
  expect(shown.stdout).toMatch(
    /leads and exports to file; exported up to entry \d+ of \d+: \d+ entries behind/,
  );
  const forgotten = await leasehold(['group', 'audit', '--forget', '--admin-socket', socket]);
  expect(forgotten.stderr).toContain('take the section "audit" out');
  expect(forgotten.code).toBe(125);
  const { history } = await group.quiet();
  const files = SERVERS.map((name) => join(group.bench.folder, `${name}.ndjson`));
  const read = () => files.flatMap((file) => linesOf(textOf(file)));
  await expect
    .poll(() => Math.max(...once(read()).keys()), { timeout: 20_000 })
    .toBeGreaterThanOrEqual(history.length);
  expectAll(once(read()), history);
  const checked = await leasehold(['history', 'check', ...files.filter((file) => textOf(file) !== '')]);
  expect(withoutProgress(checked.stderr)).toBe('');
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

/** Takes everything, or answers as told. */
class Receiver {
  readonly got: string[] = [];
  answer = 204;
  readonly #server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      if (this.answer < 300) this.got.push(...linesOf(body));
      response.writeHead(this.answer).end();
    });
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      receiver.#server.closeAllConnections();
      receiver.#server.close();
    });
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get newest(): number {
    return Math.max(...once(this.got).keys());
  }
}

test('to an HTTP receiver that is away for a while: locks go on, and everything comes later', async () => {
  const receiver = await Receiver.start();
  const { got } = receiver;
  const group = await started(() => ({ sink: 'http', url: receiver.url, timeoutMs: 1_000 }));
  await expect.poll(() => got.length, { timeout: 10_000 }).toBeGreaterThan(10);
  receiver.answer = 503;
  const before = got.length;
  const granted = group.hotGrants;
  await pause(1_500);
  await group.killLeader();
  await expect.poll(() => group.hotGrants, { timeout: 10_000 }).toBeGreaterThan(granted + 20);
  expect(got.length).toBe(before);
  receiver.answer = 200;
  const { history, complaints } = await group.quiet();
  await expect.poll(() => receiver.newest, { timeout: 40_000 }).toBeGreaterThanOrEqual(history.length);
  expectAll(once(got), history);
  expect(complaints).toEqual([]);
}, 120_000);

test('the receiver is away while four snapshots pass and the leader dies: nothing is missing', async () => {
  const receiver = await Receiver.start();
  const { got } = receiver;
  const group = await started(() => ({ sink: 'http', url: receiver.url, timeoutMs: 1_000 }));
  await expect.poll(() => got.length, { timeout: 10_000 }).toBeGreaterThan(10);
  // The cursor moves once a second, and stands above the first of the snapshots.
  const first = await group.snapshot();
  await expect.poll(() => receiver.newest, { timeout: 10_000 }).toBeGreaterThan(first);
  await pause(1_500);
  receiver.answer = 503;
  const exported = receiver.newest;
  for (let made = 1; made < 4; made++) {
    await pause(300);
    expect(await group.snapshot()).toBeGreaterThan(exported);
  }
  await group.killLeader();
  expect(await group.snapshot()).toBeGreaterThan(exported);
  expect(receiver.newest).toBe(exported);
  receiver.answer = 200;
  const complaints = await group.endLoad();
  const head = (await group.bench.status(await group.bench.leader()))?.logIndex ?? Number.NaN;
  await expect.poll(() => receiver.newest, { timeout: 40_000 }).toBeGreaterThanOrEqual(head);
  const indexes = [...once(got).keys()].sort((a, b) => a - b);
  expect(indexes).toEqual(indexes.map((_, at) => at + 1));
  expect(complaints).toEqual([]);
  const file = join(group.bench.folder, 'exported.ndjson');
  writeFileSync(file, `${got.join('\n')}\n`);
  const checked = await leasehold(['history', 'check', file]);
  expect(checked.stdout).toContain('every promise was kept');
  expect(checked.code).toBe(0);
}, 120_000);
