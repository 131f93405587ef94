/** The sinks that need no other program: files, streams, HTTP receivers. PostgreSQL: test/fencing/audit-postgresql.test.ts. */
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock, systemTimers } from '../../platform/system-runtime.ts';
import { FileSink } from './file-sink.ts';
import { HttpSink } from './http-sink.ts';
import { auditTableSql, PostgresSink } from './postgresql-sink.ts';
import { type AuditBatch, type AuditRecord, batchOf, lineOf } from './records.ts';
import { StreamSink } from './stream-sink.ts';

const { signal } = new AbortController();
let folder = '';
let server: Server | null = null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-sinks-'));
});
afterEach(() => {
  server?.close();
  server = null;
  rmSync(folder, { recursive: true });
});

function entries(from: number, to: number): AuditBatch {
  const records = Array.from({ length: to + 1 - from }, (_, at): AuditRecord => {
    const index = from + at;
    const place = { lineage: 'l', epoch: 1, index, at: index, wallMs: 0, eventHash: '' };
    return { type: 'entry', group: 'test/jobs', entry: { ...place, events: [] } };
  });
  return batchOf(records, records.map(lineOf));
}

const indexesIn = (text: string): number[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { index: number }).index);

test('a batch knows its first and last entry, also where one is a gap', () => {
  expect(entries(3, 5)).toMatchObject({ group: 'test/jobs', lineage: 'l', firstIndex: 3, lastIndex: 5 });
  const gap: AuditRecord = { type: 'gap', group: 'g', lineage: 'l', gap: { from: 2, to: 9 } };
  expect(batchOf([gap], [lineOf(gap)])).toMatchObject({ firstIndex: 2, lastIndex: 9 });
  expect(() => batchOf([], [])).toThrow(RangeError);
});

test.each(['batch', 'never'] as const)('a file grows line by line (fsync: %s)', async (fsync) => {
  const path = join(folder, 'audit.ndjson');
  const sink = new FileSink({ path, fsync });
  await sink.write(entries(1, 2));
  await Promise.all([sink.write(entries(3, 3)), sink.write(entries(4, 6))]);
  expect(indexesIn(readFileSync(path, 'utf8'))).toEqual([1, 2, 3, 4, 5, 6]);
});

test('half a line that a crash left is cut off, whole ones stay', async () => {
  const path = join(folder, 'audit.ndjson');
  await new FileSink({ path, fsync: 'never' }).write(entries(1, 2));
  appendFileSync(path, `{"group":"test/jobs","lin${'e'.repeat(100_000)}`);
  await new FileSink({ path, fsync: 'never' }).write(entries(3, 3));
  expect(indexesIn(readFileSync(path, 'utf8'))).toEqual([1, 2, 3]);
  const torn = join(folder, 'torn.ndjson');
  appendFileSync(torn, '{"group"');
  await new FileSink({ path: torn, fsync: 'never' }).write(entries(1, 1));
  expect(indexesIn(readFileSync(torn, 'utf8'))).toEqual([1]);
});

test('a file that was moved away is begun anew, and one that cannot be written rejects', async () => {
  const path = join(folder, 'audit.ndjson');
  const sink = new FileSink({ path, fsync: 'never' });
  await sink.write(entries(1, 1));
  renameSync(path, `${path}.1`);
  await sink.write(entries(2, 2));
  expect(indexesIn(readFileSync(path, 'utf8'))).toEqual([2]);
  const nowhere = new FileSink({ path: join(folder, 'none/audit.ndjson'), fsync: 'never' });
  await expect(nowhere.write(entries(1, 1))).rejects.toThrow('ENOENT');
});

test('a stream gets lines, and one that nobody reads rejects', async () => {
  const stream = new PassThrough();
  const sink = new StreamSink(stream);
  await sink.write(entries(1, 2), signal);
  expect(indexesIn(String(stream.read()))).toEqual([1, 2]);
  stream.destroy();
  await expect(sink.write(entries(3, 3), signal)).rejects.toThrow(
    'standard output takes nothing any more (it is closed)',
  );
});

interface Got {
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

async function receiver(
  answer: (got: Got) => number,
): Promise<{ readonly url: string; readonly got: Got[] }> {
  const got: Got[] = [];
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const one = { headers: request.headers, body };
      response.statusCode = answer(one);
      if (response.statusCode < 300) got.push(one);
      response.end('because');
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit`, got };
}

const httpSink = (url: string, timeoutMs = 5_000) =>
  new HttpSink({
    url,
    headers: { authorization: 'Bearer s' },
    timeoutMs,
    clock: systemClock,
    timers: systemTimers,
  });

test('an HTTP receiver gets NDJSON, and says what it took', async () => {
  const { url, got } = await receiver(() => 204);
  await httpSink(url).write(entries(4, 6), signal);
  expect(got[0]?.headers).toMatchObject({
    authorization: 'Bearer s',
    'content-type': 'application/x-ndjson',
    'leasehold-group': 'test%2Fjobs',
    'leasehold-lineage': 'l',
    'leasehold-first-index': '4',
    'leasehold-last-index': '6',
  });
  expect(indexesIn(got[0]?.body ?? '')).toEqual([4, 5, 6]);
});

test.each([400, 401, 404, 429, 500, 503])(
  'an answer %i is no answer: the batch is to be sent again',
  async (code) => {
    const { url } = await receiver(() => code);
    await expect(httpSink(url).write(entries(4, 6), signal)).rejects.toThrow(
      new RegExp(`^entries 4 to 6 were answered ${code}( \\(look at .*\\))?: because$`),
    );
  },
);

test('a batch that is too large is sent in halves, in order; one entry that is too large is told', async () => {
  const { url, got } = await receiver(({ body }) => (indexesIn(body).length > 2 ? 413 : 200));
  await httpSink(url).write(entries(1, 7), signal);
  expect(got.flatMap(({ body }) => indexesIn(body))).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(Math.max(...got.map(({ body }) => indexesIn(body).length))).toBe(2);
  server?.close();
  const none = await receiver(() => 413);
  await expect(httpSink(none.url).write(entries(1, 2), signal)).rejects.toThrow(
    'entries 1 to 1 were answered 413',
  );
});

test('a receiver that hangs is given up, and one that is gone rejects', async () => {
  server = createServer(() => undefined);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await expect(httpSink(`http://127.0.0.1:${port}`, 100).write(entries(1, 1), signal)).rejects.toThrow(
    'no answer within 100 ms',
  );
  const stopping = new AbortController();
  const writing = httpSink(`http://127.0.0.1:${port}`).write(entries(1, 1), stopping.signal);
  stopping.abort();
  await expect(writing).rejects.toThrow('aborted');
  server.closeAllConnections();
  server.close();
  await expect(httpSink(`http://127.0.0.1:${port}`).write(entries(1, 1), signal)).rejects.toThrow();
});

test('the table of docs/AUDIT.md is the one that the sink makes', () => {
  const page = readFileSync(new URL('../../../docs/AUDIT.md', import.meta.url), 'utf8');
  expect(page).toContain(auditTableSql('leasehold_audit'));
});

test('an exporter that is stopped before its first batch is on the way leaves no connection to PostgreSQL', async () => {
  let connections = 0;
  const database = createTcpServer((socket) => {
    connections++;
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => database.listen(0, '127.0.0.1', resolve));
  const url = `postgresql://u@127.0.0.1:${(database.address() as AddressInfo).port}/d`;
  const sink = new PostgresSink({ url, table: 'audit', createTable: true, timeoutMs: 1_000 });
  const gap: AuditRecord = { type: 'gap', group: 'g', lineage: 'l', gap: { from: 1, to: 2 } };
  const stopping = new AbortController();
  const writing = sink.write(batchOf([gap], [lineOf(gap)]), stopping.signal);
  stopping.abort();
  await expect(writing).rejects.toThrow();
  await sink.close();
  // Whatever it goes on with has loaded the library by then, too.
  await import('pg');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(connections).toBe(0);
  database.close();
});
