/** Trimming: behind the older snapshot and behind who still reads; the audit cursor. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Stored } from '../engines.fixture.ts';
import { appendEntries, chunk, entryAfter, readAll, takeSnapshot } from '../log.fixture.ts';
import { DeposedError, type LockLog, TrimmedError } from '../port.ts';
import type { ContractScene } from './scene.fixture.ts';

export function trimmingContract(scene: ContractScene): void {
  describe('trimming, and who holds it back (rule L4)', () => {
    let log: LockLog;
    let stored: Stored;

    beforeEach(() => {
      ({ log, stored } = scene);
    });

    // One that was opened again is closed with the scene.
    afterEach(() => {
      scene.log = log;
    });

    test('trim deletes up to the older snapshot; below it reading answers TRIMMED (rule L4)', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 700);
      await log.trim(leadership);
      await takeSnapshot(log, leadership, entries[599]!, [chunk('a')]);
      await log.trim(leadership);
      expect((await readAll(log, 1)).length).toBe(700);

      await takeSnapshot(log, leadership, entries[649]!, [chunk('b')]);
      await log.trim(leadership);
      const trimmed = await readAll(log, 600).catch((error: unknown) => error);
      expect(trimmed).toBeInstanceOf(TrimmedError);
      expect(trimmed).toMatchObject({ below: 600 });
      expect(await readAll(log, 601)).toEqual(entries.slice(600));
      const keptBytes = entries.slice(600).reduce((sum, entry) => sum + entry.bytes.byteLength, 0);
      expect(await log.retainedBytes()).toBe(keptBytes);
      await log.trim(leadership);
      expect(await readAll(log, 601)).toEqual(entries.slice(600));
      expect(await log.append(leadership, entryAfter(entries[699]!))).toBe('committed');
    });

    test('trim stays behind the place that it is given, and sizes are known above any (rule L4)', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 20);
      const bytesAbove = (index: number): number =>
        entries.slice(index).reduce((sum, entry) => sum + entry.bytes.byteLength, 0);
      for (const at of [9, 11]) await takeSnapshot(log, leadership, entries[at]!, [chunk('a')]);
      expect(await log.retainedBytes(4)).toBe(bytesAbove(4));
      await log.trim(leadership, 4);
      expect(await readAll(log, 5)).toEqual(entries.slice(4));
      await expect(readAll(log, 4)).rejects.toMatchObject({ below: 4 });
      for (const index of [0, 3, 4]) expect(await log.retainedBytes(index)).toBe(bytesAbove(4));
      expect(await log.retainedBytes(15)).toBe(bytesAbove(15));
      expect(await log.retainedBytes(20)).toBe(0);
      await log.trim(leadership, 3);
      expect(await readAll(log, 5)).toEqual(entries.slice(4));
      await log.trim(leadership, 15);
      await expect(readAll(log, 10)).rejects.toMatchObject({ below: 10 });
      expect(await readAll(log, 11)).toEqual(entries.slice(10));
    });

    test('a reader that is overtaken by a trim is told TRIMMED, not given a gap', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 600);
      const reader = log.read(1)[Symbol.asyncIterator]();
      expect((await reader.next()).value).toEqual(entries[0]);
      await takeSnapshot(log, leadership, entries[590]!, []);
      await takeSnapshot(log, leadership, entries[595]!, []);
      await log.trim(leadership);
      const rest = async (): Promise<void> => {
        for (let next = 2; ; next += 1) {
          const step = await reader.next();
          if (step.done === true) return;
          expect(step.value.index).toBe(next);
        }
      };
      await expect(rest()).rejects.toThrow(TrimmedError);
    });

    test('the audit cursor only moves upwards, outlives its leader, and can be removed', async () => {
      expect(await log.auditCursor()).toBeNull();
      const first = await log.campaign('server-a');
      await log.setAuditCursor(first, 0);
      expect(await log.auditCursor()).toBe(0);
      await log.setAuditCursor(first, 7);
      await log.setAuditCursor(first, 7);
      for (const index of [6, -1, 7.5, Number.NaN]) {
        await expect(log.setAuditCursor(first, index)).rejects.toThrow(RangeError);
      }
      expect(await log.auditCursor()).toBe(7);
      const second = await log.campaign('server-b');
      for (const index of [8, 6, null]) {
        await expect(log.setAuditCursor(first, index)).rejects.toThrow(DeposedError);
      }
      await log.setAuditCursor(second, 12);
      await log.close();
      log = await stored.open();
      expect(await log.auditCursor()).toBe(12);
      const third = await log.campaign('server-a');
      await log.setAuditCursor(third, null);
      await log.setAuditCursor(third, null);
      expect(await log.auditCursor()).toBeNull();
      await log.setAuditCursor(third, 3);
      expect(await log.auditCursor()).toBe(3);
    });
  });
}
