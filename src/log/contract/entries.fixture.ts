/** Entries: one after the other, as they were sent, or an error. */
import { beforeEach, describe, expect, test } from 'vitest';
import { appendEntries, chunk, entryAfter, readAll, START, takeSnapshot } from '../log.fixture.ts';
import { type LockLog, TrimmedError } from '../port.ts';
import { hashOf } from '../rules.ts';
import type { ContractScene } from './scene.fixture.ts';

export function entriesContract(scene: ContractScene): void {
  describe('entries (rules L1, L2)', () => {
    let log: LockLog;

    beforeEach(() => {
      ({ log } = scene);
    });

    test('a new log is empty and has a lineage', async () => {
      expect(log.lineage).not.toBe('');
      expect(await log.head()).toEqual({ index: 0, hash: '' });
      expect(await readAll(log, 1)).toEqual([]);
      expect(await log.snapshots()).toEqual([]);
      expect(await log.retainedBytes()).toBe(0);
    });

    test('entries come back as they were appended, in order and without gaps', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 600);
      expect(await readAll(log, 1)).toEqual(entries);
      expect(await readAll(log, 599)).toEqual(entries.slice(598));
      expect(await readAll(log, 601)).toEqual([]);
      expect(await log.head()).toEqual({ index: 600, hash: entries[599]?.hash });
      expect(await log.retainedBytes()).toBe(entries.reduce((sum, entry) => sum + entry.bytes.byteLength, 0));
    });

    test('large entries are read back over several pages', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 12, { bytes: 1024 * 1024 });
      expect((await readAll(log, 1)).map((entry) => entry.hash)).toEqual(entries.map((entry) => entry.hash));
    });

    test('an entry that does not follow the head is a bug of the caller', async () => {
      const leadership = await log.campaign('server-a');
      const [first, second] = await appendEntries(log, leadership, 2);
      const gap = entryAfter({ index: 3, hash: second!.hash });
      const otherChain = entryAfter({ index: 2, hash: first!.hash });
      const otherEntry = entryAfter(first!, { filler: 'another' });
      for (const entry of [gap, otherChain, otherEntry, first!]) {
        await expect(log.append(leadership, entry)).rejects.toThrow(RangeError);
      }
      expect(await readAll(log, 1)).toEqual([first, second]);
      expect(await log.append(leadership, entryAfter(second!))).toBe('committed');
    });

    test('the very entry that is the head may be sent again and is there once (rule L2)', async () => {
      const leadership = await log.campaign('server-a');
      const [first, second] = await appendEntries(log, leadership, 2);
      expect(await log.append(leadership, second!)).toBe('committed');
      expect(await readAll(log, 1)).toEqual([first, second]);
    });

    test('a second append before the first is answered is refused', async () => {
      const leadership = await log.campaign('server-a');
      const first = entryAfter(START);
      const appending = log.append(leadership, first);
      await expect(log.append(leadership, entryAfter(first))).rejects.toThrow(RangeError);
      expect(await appending).toBe('committed');
      expect(await log.append(leadership, entryAfter(first))).toBe('committed');
    });

    test('an entry beyond the limit is refused', async () => {
      const leadership = await log.campaign('server-a');
      const entry = entryAfter(START, { bytes: 1024 * 1024 + 1 });
      await expect(log.append(leadership, entry)).rejects.toThrow(RangeError);
      expect(await log.head()).toEqual(START);
    });

    test('a reader sees what is appended while it reads', async () => {
      const leadership = await log.campaign('server-a');
      await appendEntries(log, leadership, 300);
      const seen: number[] = [];
      for await (const entry of log.read(1)) {
        seen.push(entry.index);
        if (entry.index === 10) await appendEntries(log, leadership, 20);
      }
      expect(seen).toEqual(Array.from({ length: 320 }, (_, at) => at + 1));
    });

    test.each([0, -1, 1.5, Number.NaN])('reading from %s is refused', async (from) => {
      await expect(readAll(log, from)).rejects.toThrow(RangeError);
    });

    test('the hash of each kept entry can be asked for', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 4);
      expect(await log.entryHash(1)).toBe(entries[0]?.hash);
      expect(await log.entryHash(4)).toBe(entries[3]?.hash);
      expect(await log.entryHash(5)).toBeNull();
      await expect(async () => log.entryHash(0)).rejects.toThrow(RangeError);
      await takeSnapshot(log, leadership, entries[1]!, [chunk('a')]);
      await takeSnapshot(log, leadership, entries[2]!, [chunk('b')]);
      await log.trim(leadership);
      await expect(log.entryHash(2)).rejects.toThrow(TrimmedError);
      expect(await log.entryHash(3)).toBe(entries[2]?.hash);
    });

    test('bytes handed to append stay usable by their owner', async () => {
      const leadership = await log.campaign('server-a');
      const pool = new Uint8Array(4_096).fill(7);
      const bytes = pool.subarray(100, 200);
      await log.append(leadership, { index: 1, bytes, hash: hashOf(bytes), previous: '' });
      expect(pool).toEqual(new Uint8Array(4_096).fill(7));
      expect((await readAll(log, 1))[0]?.bytes).toEqual(new Uint8Array(100).fill(7));
    });
  });
}
