/** The lives of a log: halted, begun anew, closed and opened again. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Stored } from '../engines.fixture.ts';
import { appendEntries, chunk, entryAfter, readAll, START, takeSnapshot } from '../log.fixture.ts';
import { type LockLog, ReplacedError, type RollBackProof, TrimmedError } from '../port.ts';
import type { ContractScene } from './scene.fixture.ts';

const proofOf = (lineage: string): RollBackProof => ({
  lineage,
  seenBy: 'client',
  seen: { index: 9, hash: 'ab' },
  found: '',
  headIndex: 1,
  serverId: 'server-a',
  wallMs: 1,
});

export function livesContract(scene: ContractScene): void {
  describe('halts, lineages, closing (rules S10, M3)', () => {
    let log: LockLog;
    let stored: Stored;

    beforeEach(() => {
      ({ log, stored } = scene);
    });

    // One that was opened again is closed with the scene.
    afterEach(() => {
      scene.log = log;
    });

    test('a halt ends the leadership and stays, with its first proof, over re-opening (rule S10)', async () => {
      const leadership = await log.campaign('server-a');
      const [entry] = await appendEntries(log, leadership, 1);
      const head = { index: 1, hash: entry!.hash };
      const proof = proofOf(log.lineage);
      await log.halt({ ...proof, lineage: 'another' });
      expect(await log.standing()).toEqual({ lineage: log.lineage, head, halted: null });
      await log.halt(proof);
      await log.halt({ ...proof, serverId: 'server-b' });
      expect(await log.append(leadership, entryAfter(head))).toBe('deposed');
      expect(await log.leader()).toBeNull();
      await log.close();
      log = await stored.open();
      expect(await log.standing()).toEqual({ lineage: log.lineage, head, halted: proof });
    });

    test('a new lineage is an empty log with a floor, and ends all that was (rule S10)', async () => {
      const old = log.lineage;
      const first = await log.birth();
      expect(first).toEqual({ sealKey: expect.stringMatching(/^[0-9a-f]{64}$/), tokenFloor: 0, quietMs: 0 });
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 3);
      await takeSnapshot(log, leadership, entries[0]!, [chunk('a')]);
      await log.setAuditCursor(leadership, 2);
      await log.halt(proofOf(old));
      const lineage = await log.beginLineage({ tokenFloor: 2 ** 50, quietMs: 60_000 });
      expect(lineage).not.toBe(old);
      expect((await log.standing()).lineage).toBe(lineage);
      expect(await log.append(leadership, entryAfter(entries[2]!))).toBe('deposed');
      await expect(log.beginLineage({ tokenFloor: 0, quietMs: 0 })).rejects.toThrow(ReplacedError);
      await log.close();

      log = await stored.open();
      expect(log.lineage).toBe(lineage);
      expect(await log.standing()).toEqual({ lineage, head: { index: 0, hash: '' }, halted: null });
      expect(await log.birth()).toEqual({ ...first, tokenFloor: 2 ** 50, quietMs: 60_000 });
      expect(await log.snapshots()).toEqual([]);
      expect(await log.auditCursor()).toBeNull();
      expect(await log.retainedBytes()).toBe(0);
      const next = await log.campaign('server-a');
      expect(next.epoch).toBeGreaterThan(leadership.epoch);
      const again = await appendEntries(log, next, 2);
      expect(await readAll(log, 1)).toEqual(again);
    });

    test('a log goes on where it was after close and re-open', async () => {
      const first = await log.campaign('server-a');
      const entries = await appendEntries(log, first, 300);
      await takeSnapshot(log, first, entries[99]!, [chunk('a')]);
      await takeSnapshot(log, first, entries[199]!, [chunk('b')]);
      await log.trim(first);
      const { lineage } = log;
      const manifests = await log.snapshots();
      await log.close();
      await log.close();

      log = await stored.open();
      expect(log.lineage).toBe(lineage);
      expect(await log.head()).toEqual({ index: 300, hash: entries[299]?.hash });
      expect(await log.snapshots()).toEqual(manifests);
      expect(await log.readChunk(manifests[0]!, 0)).toEqual(chunk('b'));
      expect(await readAll(log, 101)).toEqual(entries.slice(100));
      await expect(readAll(log, 100)).rejects.toThrow(TrimmedError);
      const second = await log.campaign('server-a');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await log.append(second, entryAfter(entries[299]!))).toBe('committed');
    });

    test('a closed log refuses every call', async () => {
      const leadership = await log.campaign('server-a');
      await log.close();
      await expect(log.head()).rejects.toMatchObject({ name: 'LogClosedError' });
      await expect(log.append(leadership, entryAfter(START))).rejects.toMatchObject({
        name: 'LogClosedError',
      });
      await expect(readAll(log, 1)).rejects.toMatchObject({ name: 'LogClosedError' });
    });
  });
}
