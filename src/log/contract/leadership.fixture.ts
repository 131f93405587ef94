/** Who may write: one leadership at a time, proved in every write. */
import { beforeEach, describe, expect, test } from 'vitest';
import { appendEntries, chunk, entryAfter, placeAt, readAll, START, takeSnapshot } from '../log.fixture.ts';
import { DeposedError, type LockLog } from '../port.ts';
import { SnapshotWriter } from '../snapshot-writer.ts';
import type { ContractScene } from './scene.fixture.ts';

export function leadershipContract(scene: ContractScene): void {
  describe('who may write (rules L1, L2, S7)', () => {
    let log: LockLog;

    beforeEach(() => {
      ({ log } = scene);
    });

    test('epochs grow and the fence of the newest leadership alone is good (rule L1)', async () => {
      const first = await log.campaign('server-a');
      await appendEntries(log, first, 1);
      const second = await log.campaign('server-b');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(second.serverId).toBe('server-b');
      const next = entryAfter(await log.head());
      expect(await log.append(first, next)).toBe('deposed');
      expect(await log.head()).toEqual({ index: 1, hash: next.previous });
      expect(await log.append(second, next)).toBe('committed');
    });

    test('a deposed leader is told so even where the head has its entry (rule L2)', async () => {
      const first = await log.campaign('server-a');
      const [entry] = await appendEntries(log, first, 1);
      await log.campaign('server-b');
      expect(await log.append(first, entry!)).toBe('deposed');
    });

    test('every write of a deposed leader is refused and changes nothing (rules L3, L4)', async () => {
      const first = await log.campaign('server-a');
      const entries = await appendEntries(log, first, 4);
      await takeSnapshot(log, first, entries[0]!, [chunk('a')]);
      await takeSnapshot(log, first, entries[1]!, [chunk('b')]);
      const late = new SnapshotWriter(log, await log.openSnapshot(first));
      await late.write(chunk('c'));
      const second = await log.campaign('server-b');
      const before = await log.snapshots();

      // It needs no leadership, but the new leader has closed what it belongs to.
      await expect(late.write(chunk('d'))).rejects.toThrow(RangeError);
      await expect(log.commitSnapshot(first, late.manifest(placeAt(entries[3]!)))).rejects.toThrow(
        DeposedError,
      );
      await expect(log.openSnapshot(first)).rejects.toThrow(DeposedError);
      await expect(log.trim(first)).rejects.toThrow(DeposedError);
      await log.resign(first);

      expect(await log.snapshots()).toEqual(before);
      expect(before.map((manifest) => manifest.index)).toEqual([2, 1]);
      expect(await readAll(log, 1)).toEqual(entries);
      expect(await log.append(second, entryAfter(entries[3]!))).toBe('committed');
    });

    test('after a resignation nobody can write until the next campaign', async () => {
      const first = await log.campaign('server-a');
      await appendEntries(log, first, 1);
      await log.resign(first);
      const next = entryAfter(await log.head());
      expect(await log.append(first, next)).toBe('deposed');
      await log.resign(first);
      const second = await log.campaign('server-a');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await log.append(second, next)).toBe('committed');
    });

    test('it says who leads, by its newest epoch', async () => {
      expect(await log.leader()).toBeNull();
      const first = await log.campaign('server-a');
      expect(await log.leader()).toEqual({ serverId: 'server-a', epoch: first.epoch });
      const second = await log.campaign('server-b');
      expect(await log.leader()).toEqual({ serverId: 'server-b', epoch: second.epoch });
      await log.resign(second);
      expect(await log.leader()).toBeNull();
    });

    test('an eviction ends the leadership it names and no other (rule S7)', async () => {
      expect(await log.evict(1)).toBe(false);
      const first = await log.campaign('server-a');
      const second = await log.campaign('server-b');
      expect(await log.evict(first.epoch)).toBe(false);
      const entries = await appendEntries(log, second, 1);
      expect(await log.evict(second.epoch)).toBe(true);
      expect(await log.evict(second.epoch)).toBe(false);
      expect(await log.leader()).toBeNull();
      expect(await log.append(second, entryAfter(await log.head()))).toBe('deposed');
      expect(await log.head()).toEqual({ index: 1, hash: entries[0]?.hash });
      const third = await log.campaign('server-a');
      expect(third.epoch).toBeGreaterThan(second.epoch);
      expect(await log.append(third, entryAfter(await log.head()))).toBe('committed');
    });

    test('nobody can write without a campaign', async () => {
      const forged = { serverId: 'server-a', epoch: 0, fence: '' };
      expect(await log.append(forged, entryAfter(START))).toBe('deposed');
      await expect(log.openSnapshot(forged)).rejects.toThrow(DeposedError);
      expect(await log.head()).toEqual(START);
    });
  });
}
