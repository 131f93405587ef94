/** The embedded engine among processes: they die at any moment, start twice, and read while another one writes. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LogClosedError, LogFormatError, LogInUseError } from '../errors.ts';
import { appendEntries, entryAfter, readAll, seededRandom, seedOfRun, takeSnapshot } from '../log.fixture.ts';
import { TrimmedError } from '../port.ts';
import { EmbeddedBench } from './embedded.fixture.ts';

const KILLS = 20;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

let bench: EmbeddedBench;

beforeEach(() => {
  bench = new EmbeddedBench();
});

afterEach(async () => {
  await bench.remove();
});

describe('processes that die', () => {
  test(`kill -9 in a loop of appends, ${KILLS} times, loses nothing that was acknowledged`, async () => {
    const seed = seedOfRun(process.env.LEASEHOLD_SEED);
    const random = seededRandom(seed);
    let head = 0;
    for (let round = 1; round <= KILLS; round += 1) {
      const { child, lines } = bench.startAppender();
      await vi.waitUntil(() => lines.length > 2, { timeout: 20_000, interval: 2 });
      await sleep(random.fraction() * 100);
      await bench.kill(child);
      const acknowledged = lines.length - 1;
      const expected = Array.from({ length: acknowledged }, (_, at) => `acknowledged ${head + at + 1}`);
      expect(lines, `seed ${seed}`).toEqual(['open', ...expected]);

      const log = await bench.open();
      const entries = await readAll(log, 1);
      // One entry was in flight at the kill and may have got through without its acknowledgement.
      expect([0, 1], `seed ${seed}`).toContain(entries.length - head - acknowledged);
      head = entries.length;
      expect((await log.head()).index).toBe(head);
      await log.close();
    }
    expect(head).toBeGreaterThan(KILLS);
  }, 120_000);

  test('a worker thread that dies rejects what is under way, and the directory can be opened again', async () => {
    const log = await bench.open();
    const leadership = await log.campaign('server-a');
    const [entry] = await appendEntries(log, leadership, 1);
    const send = Worker.prototype.postMessage;
    vi.spyOn(Worker.prototype, 'postMessage').mockImplementationOnce(function crash(this: Worker) {
      send.call(this, null);
    });
    const appending = log.append(leadership, entryAfter(entry!));
    const reading = readAll(log, 1);
    await expect(appending).rejects.toThrow(LogClosedError);
    await expect(appending).rejects.toThrow('worker thread failed');
    await expect(reading).rejects.toThrow(LogClosedError);
    await expect(log.head()).rejects.toThrow(LogClosedError);
    await log.close();
    const again = await bench.open();
    expect(await readAll(again, 1)).toEqual([entry]);
  });
});

describe('one process per directory', () => {
  test('a second handle of the same process is refused', async () => {
    const log = await bench.open();
    const refused = await bench.open().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LogInUseError);
    expect(refused).toMatchObject({ pid: process.pid, directory: bench.directory });
    // The refused one must not have taken the first one's lock with it.
    await expect(bench.open()).rejects.toThrow(LogInUseError);
    await log.close();
    await bench.open();
  });

  test('a second process is refused with the pid of the first, until that is gone, however it went', async () => {
    const { child, lines } = bench.startAppender('hold');
    await vi.waitUntil(() => lines.length === 1, { timeout: 20_000 });
    await expect(bench.open()).rejects.toThrow(`is in use by process ${child.pid};`);
    await bench.kill(child);
    const log = await bench.open();
    expect((await log.campaign('server-a')).epoch).toBe(2);
  });

  test('of several processes that start together exactly one serves', async () => {
    const starters = Array.from({ length: 4 }, () => bench.startAppender('hold'));
    await vi.waitUntil(() => starters.every(({ lines }) => lines.length > 0), { timeout: 20_000 });
    const firstLines = starters.map(({ lines }) => lines[0]?.split(' ')[0]);
    expect(firstLines.toSorted()).toEqual(['open', 'refused', 'refused', 'refused']);
  });

  test('the pid of a dead owner is not told', async () => {
    const log = await bench.open();
    writeFileSync(join(bench.directory, 'owner.json'), '{"pid": 4194304}');
    await expect(bench.open()).rejects.toThrow('is in use by another process;');
    writeFileSync(join(bench.directory, 'owner.json'), 'not JSON');
    await expect(bench.open()).rejects.toThrow('is in use by another process;');
    await log.close();
  });

  test('an owner that cannot be recorded, as on a full disk, owns it all the same and is not told', async () => {
    mkdirSync(join(bench.directory, 'owner.json.new'), { recursive: true });
    writeFileSync(join(bench.directory, 'owner.json'), `{"pid": ${process.ppid}}`);
    const log = await bench.open();
    await expect(bench.open()).rejects.toThrow('is in use by another process;');
    await log.close();
  });

  test('a log with as many calls under way as it takes can be closed, and its directory opened again', async () => {
    const log = await bench.open();
    const heads = Array.from({ length: 1_024 }, () => log.head());
    await log.close();
    await expect(Promise.all(heads)).resolves.toHaveLength(1_024);
    expect(await (await bench.open()).head()).toEqual({ index: 0, hash: '' });
  });
});

describe('reading beside a running server', () => {
  test('a reader in another thread sees a consistent log while entries are appended and trimmed', async () => {
    const log = await bench.open();
    const leadership = await log.campaign('server-a');
    await appendEntries(log, leadership, 10);
    const reader = await bench.openReadOnly();
    expect(reader.lineage).toBe(log.lineage);
    let readings = 0;
    let from = 1;
    let writing = true;
    const reading = (async () => {
      while (writing) {
        try {
          const entries = await readAll(reader, from);
          expect(entries[0]?.index).toBe(from);
          readings += 1;
        } catch (error) {
          if (!(error instanceof TrimmedError)) throw error;
          expect(error.below).toBeGreaterThanOrEqual(from);
          from = error.below + 1;
        }
      }
    })();
    for (let round = 0; round < 8; round += 1) {
      const entries = await appendEntries(log, leadership, 60, { bytes: 2_000 });
      await takeSnapshot(log, leadership, entries.at(-1)!, [new Uint8Array(10_000)]);
      await log.trim(leadership);
    }
    writing = false;
    await reading;
    expect(readings).toBeGreaterThan(3);
    expect(from).toBeGreaterThan(1);
    expect(await reader.head()).toEqual(await log.head());
    expect(await reader.snapshots()).toEqual(await log.snapshots());
    expect((await readAll(reader, 431)).map((entry) => entry.index)).toEqual(
      Array.from({ length: 60 }, (_, at) => 431 + at),
    );
    await expect(readAll(reader, 430)).rejects.toThrow(TrimmedError);
  });

  test('a reader in another process than the server sees what that one acknowledged', async () => {
    const { lines } = bench.startAppender();
    await vi.waitUntil(() => lines.length > 5, { timeout: 20_000 });
    const reader = await bench.openReadOnly();
    const before = lines.length - 1;
    const entries = await readAll(reader, 1);
    expect(entries.length).toBeGreaterThanOrEqual(before);
    await vi.waitUntil(() => lines.length > before + 20, { timeout: 20_000 });
  });

  test('after a crash a reader sees everything, changes nothing and does not hinder the next server', async () => {
    const { child, lines } = bench.startAppender();
    await vi.waitUntil(() => lines.length > 20, { timeout: 20_000 });
    await bench.kill(child);
    const acknowledged = lines.length - 1;
    const reader = await bench.openReadOnly();
    const entries = await readAll(reader, 1);
    expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
    const log = await bench.open();
    expect(await readAll(log, 1)).toEqual(entries);
    const leadership = await log.campaign('server-a');
    expect(leadership.epoch).toBe(2);
    await appendEntries(log, leadership, 1);
    expect(await readAll(reader, 1)).toHaveLength(entries.length + 1);
  });

  test('where there is no log, none is made', async () => {
    await expect(bench.openReadOnly()).rejects.toThrow(LogFormatError);
    expect(existsSync(bench.directory)).toBe(false);
    await bench.makeLog();
    const before = readdirSync(bench.directory);
    const reader = await bench.openReadOnly();
    await reader.close();
    expect(before.filter((name) => !readdirSync(bench.directory).includes(name))).toEqual([]);
  });

  test('it cannot write', async () => {
    await bench.makeLog();
    const reader = await bench.openReadOnly();
    const writer = reader as unknown as { campaign(serverId: string): Promise<unknown> };
    await expect(writer.campaign('server-b')).rejects.toThrow('a read-only log does not campaign');
    const log = await bench.open();
    expect((await log.campaign('server-a')).epoch).toBe(2);
  });
});
