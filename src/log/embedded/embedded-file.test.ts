/** The embedded engine and its file: damaged, not ours, full, or growing. */
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LogFormatError, LogUnavailableError } from '../errors.ts';
import { appendEntries, entryAfter, placeAt, readAll, START, takeSnapshot } from '../log.fixture.ts';
import { CorruptLogError, type LogPosition } from '../port.ts';
import { EmbeddedBench } from './embedded.fixture.ts';

const MIB = 1024 * 1024;

let bench: EmbeddedBench;

beforeEach(() => {
  bench = new EmbeddedBench();
});

afterEach(async () => {
  await bench.remove();
});

describe('damage', () => {
  const damages = [
    {
      what: 'a flipped byte',
      index: 5,
      sql: `UPDATE entries SET bytes = CAST(zeroblob(1) || substr(bytes, 2) AS BLOB) WHERE entry_index = 5`,
    },
    { what: 'a row that is gone', index: 7, sql: 'DELETE FROM entries WHERE entry_index = 7' },
    { what: 'a broken chain', index: 9, sql: `UPDATE entries SET previous = 'x' WHERE entry_index = 9` },
    { what: 'another hash', index: 11, sql: `UPDATE entries SET hash = 'x' WHERE entry_index = 11` },
    { what: 'a first entry that is gone', index: 1, sql: 'DELETE FROM entries WHERE entry_index = 1' },
  ];

  test.each(damages)('$what is reported with its index, and not repaired', async ({ index, sql }) => {
    await bench.makeLog();
    bench.tamper(sql);
    const log = await bench.open();
    const error = await readAll(log, 1).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CorruptLogError);
    expect(String(error)).toMatch(new RegExp(`entry ${index}\\b`));
    await expect(readAll(log, 1)).rejects.toThrow(CorruptLogError);
  });

  const headDamages = [
    { what: 'the newest entry is gone', sql: 'DELETE FROM entries WHERE entry_index = 20' },
    { what: 'the head has another hash', sql: `UPDATE log_state SET head_hash = 'x'` },
    { what: 'the newest entry is damaged', sql: `UPDATE entries SET bytes = x'00' WHERE entry_index = 20` },
    { what: 'there is an entry above the head', sql: `UPDATE log_state SET head_index = 19` },
    { what: 'the state is gone', sql: 'DELETE FROM log_state' },
  ];

  test.each(headDamages)('$what: the log does not open', async ({ sql }) => {
    await bench.makeLog();
    bench.tamper(sql);
    await expect(bench.open()).rejects.toThrow(CorruptLogError);
    await expect(bench.openReadOnly()).rejects.toThrow(CorruptLogError);
    await expect(bench.open()).rejects.toThrow(CorruptLogError);
  });

  test('pages of garbage are reported as damage, wherever they are', async () => {
    await bench.makeLog();
    const path = bench.file;
    const whole = readFileSync(path);
    let noticed = 0;
    for (let at = 4_096; at + 4_096 <= whole.byteLength; at += 4_096) {
      const damaged = Buffer.from(whole);
      damaged.fill(0xa5, at, at + 4_096);
      writeFileSync(path, damaged);
      const outcome = await openAndRead().catch((error: unknown) => error);
      // Pages that hold no part of the log (free, or those of empty tables) may go unnoticed, wrong entries may not.
      if (outcome === 20) continue;
      expect(outcome, `page at ${at}`).toBeInstanceOf(CorruptLogError);
      noticed += 1;
    }
    // 20 entries of 3,000 bytes: at least 15 pages of 4 KiB.
    expect(noticed).toBeGreaterThan(15);
  });

  test('so is garbage in the first page, behind its header', async () => {
    await bench.makeLog();
    const damaged = readFileSync(bench.file);
    damaged.fill(0xa5, 100, 4_096);
    writeFileSync(bench.file, damaged);
    await expect(bench.open()).rejects.toThrow(CorruptLogError);
    await expect(bench.openReadOnly()).rejects.toThrow(CorruptLogError);
  });

  test('an I/O error in a read is told as such, and reading goes on when it is over', async () => {
    const log = await bench.open();
    await appendEntries(log, await log.campaign('server-a'), 20, { bytes: 3_000 });
    const reader = await bench.openReadOnly();
    const wal = readFileSync(`${bench.file}-wal`);
    truncateSync(`${bench.file}-wal`, 8_192);
    await expect(readAll(reader, 1)).rejects.toThrow(LogUnavailableError);
    writeFileSync(`${bench.file}-wal`, wal);
    expect(await readAll(reader, 1)).toHaveLength(20);
  });

  async function openAndRead(): Promise<number> {
    const log = await bench.open();
    try {
      const entries = await readAll(log, 1);
      return entries.length;
    } finally {
      await log.close();
    }
  }
});

describe('what is not a log of ours', () => {
  const FOREIGN = [
    {
      what: 'a file that is no database',
      make: (path: string) =>
        writeFileSync(path, 'only text, longer than the header of a database. '.repeat(20)),
    },
    {
      what: 'a database of another program',
      make: (path: string) => {
        const database = new DatabaseSync(path);
        database.exec('CREATE TABLE log_state (lineage TEXT); INSERT INTO log_state VALUES (1)');
        database.close();
      },
    },
    { what: 'an empty file', make: (path: string) => writeFileSync(path, '') },
  ];

  test.each(FOREIGN)('$what is refused and left as it is', async ({ make }) => {
    mkdirSync(bench.directory, { recursive: true });
    make(bench.file);
    const before = readFileSync(bench.file);
    await expect(bench.open()).rejects.toThrow(LogFormatError);
    await expect(bench.openReadOnly()).rejects.toThrow('nothing was changed');
    expect(readFileSync(bench.file)).toEqual(before);
  });

  test('a log of a newer format is refused and left as it is (rule L6)', async () => {
    await bench.makeLog();
    bench.tamper('PRAGMA user_version = 3');
    const before = readFileSync(bench.file);
    await expect(bench.open()).rejects.toThrow(LogFormatError);
    await expect(bench.open()).rejects.toThrow(
      'has format 3 and this program reads 1 to 2; nothing was changed',
    );
    await expect(bench.openReadOnly()).rejects.toThrow('has format 3');
    expect(readFileSync(bench.file)).toEqual(before);
    bench.tamper('PRAGMA user_version = 2');
    expect(await readAll(await bench.open(), 1)).toHaveLength(20);
  });

  test('a log of format 1 is read as it is, and moved up when it is written (rule L6)', async () => {
    const before = await bench.open();
    const first = await before.campaign('server-a');
    const entries = await appendEntries(before, first, 20);
    await takeSnapshot(before, first, entries[4]!, [new Uint8Array([1])]);
    await before.close();
    bench.tamper('ALTER TABLE snapshots DROP COLUMN event_hash; PRAGMA user_version = 1');
    const reader = await bench.openReadOnly();
    expect((await reader.snapshots()).map(({ eventHash }) => eventHash)).toEqual(['']);
    await reader.close();
    const log = await bench.open();
    expect((await log.snapshots()).map(({ eventHash }) => eventHash)).toEqual(['']);
    const leadership = await log.campaign('server-a');
    const head = await log.head();
    await takeSnapshot(log, leadership, head, []);
    expect((await log.snapshots())[0]?.eventHash).toBe(placeAt(head).eventHash);
    expect(await readAll(log, 11)).toHaveLength(10);
  });

  test('a log whose file is lost is not begun anew over the rest of the old one', async () => {
    mkdirSync(bench.directory, { recursive: true });
    writeFileSync(`${bench.file}-wal`, 'entries that were never copied into the file');
    await expect(bench.open()).rejects.toThrow('write-ahead log is there');
    rmSync(`${bench.file}-wal`);
    expect(await (await bench.open()).head()).toEqual(START);
  });

  test('a directory that cannot be made is told with its path', async () => {
    mkdirSync(dirname(bench.directory), { recursive: true });
    writeFileSync(bench.directory, 'a file in its place');
    await expect(bench.open()).rejects.toThrow(LogUnavailableError);
    await expect(bench.open()).rejects.toThrow('a file is in its place');
  });

  test('the rest of an interrupted creation is no hindrance', async () => {
    mkdirSync(bench.directory, { recursive: true });
    writeFileSync(`${bench.file}.new`, 'half a file');
    writeFileSync(`${bench.file}.new-journal`, 'and its journal');
    const log = await bench.open();
    expect(await log.head()).toEqual(START);
  });
});

describe('a full disk (rule S11)', () => {
  test('an append is never called committed, can be repeated, and goes through once there is room', async () => {
    const log = await bench.open({ databaseBytesMax: 2 * MIB });
    const leadership = await log.campaign('server-a');
    const [first, second] = await appendEntries(log, leadership, 2, { bytes: 300_000 });
    await takeSnapshot(log, leadership, first!, []);
    await takeSnapshot(log, leadership, second!, []);

    let position: LogPosition = second!;
    let refused = entryAfter(position, { bytes: 300_000 });
    const fill = async (): Promise<void> => {
      for (;;) {
        await log.append(leadership, refused);
        position = refused;
        refused = entryAfter(position, { bytes: 300_000 });
      }
    };
    await expect(fill()).rejects.toThrow(LogUnavailableError);
    expect(refused.index).toBeGreaterThan(4);
    expect(await log.head()).toEqual({ index: position.index, hash: position.hash });
    await expect(log.append(leadership, refused)).rejects.toThrow('disk is full');
    const other = entryAfter(position, { filler: 'another' });
    await expect(log.append(leadership, other)).rejects.toThrow('only that very entry');

    await log.trim(leadership);
    expect(await log.append(leadership, refused)).toBe('committed');
    expect(await readAll(log, 3)).toHaveLength(refused.index - 2);
    await log.close();
    const again = await bench.open();
    expect(await again.head()).toEqual({ index: refused.index, hash: refused.hash });
  });
});

test('the file does not grow for ever, and shrinks again after a burst', async () => {
  const log = await bench.open({ freeBytesKept: MIB });
  const leadership = await log.campaign('server-a');
  const sizes: number[] = [];
  for (const count of [600, 100, 100, 100, 100, 100]) {
    const entries = await appendEntries(log, leadership, count, { bytes: 50_000 });
    await takeSnapshot(log, leadership, entries.at(-1)!, [new Uint8Array(MIB), new Uint8Array(MIB)]);
    await log.trim(leadership);
    sizes.push(statSync(bench.file).size + statSync(`${bench.file}-wal`).size);
  }
  // Kept at the end: 100 entries between the two snapshots, 4 MiB of snapshots, 1 MiB free, and the write-ahead log.
  expect(await log.retainedBytes()).toBe(5_000_000);
  expect(sizes[0]).toBeGreaterThan(28 * MIB);
  expect(Math.max(...sizes)).toBeLessThan(80 * MIB);
  await log.close();
  expect(statSync(bench.file).size).toBeLessThan(12 * MIB);
});
