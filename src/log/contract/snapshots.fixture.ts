/** Snapshots: opened by a leader, written by anybody, made visible by the leader alone. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Stored } from '../engines.fixture.ts';
import { appendEntries, chunk, entryAfter, placeAt, readAll, START, takeSnapshot } from '../log.fixture.ts';
import { CorruptLogError, type LockLog } from '../port.ts';
import { loadNewestSnapshot } from '../snapshot-reader.ts';
import { SnapshotWriter } from '../snapshot-writer.ts';
import type { ContractScene } from './scene.fixture.ts';

export function snapshotsContract(scene: ContractScene, hasStandbys: boolean): void {
  describe('snapshots (rule L3)', () => {
    let log: LockLog;
    let stored: Stored;

    beforeEach(() => {
      ({ log, stored } = scene);
    });

    test('a new leader closes the open snapshot of its predecessor (rule L3)', async () => {
      const first = await log.campaign('server-a');
      const [entry] = await appendEntries(log, first, 1);
      const writer = new SnapshotWriter(log, await log.openSnapshot(first));
      await writer.write(chunk('a'));
      const second = await log.campaign('server-b');
      expect(await log.openedSnapshot()).toBeNull();
      await expect(log.commitSnapshot(second, writer.manifest(placeAt(entry!)))).rejects.toThrow(RangeError);
      expect(await log.snapshots()).toEqual([]);
    });

    test('snapshots are listed newest first and two are kept (rule L3)', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 5);
      for (const at of [0, 2, 4]) {
        await takeSnapshot(log, leadership, entries[at]!, [chunk(`a${at}`), chunk(`b${at}`)]);
      }
      const manifests = await log.snapshots();
      expect(manifests.map((manifest) => manifest.index)).toEqual([5, 3]);
      expect(manifests[0]).toMatchObject({ entryHash: entries[4]?.hash, bytes: 4_000 });
      expect(manifests[0]?.chunkHashes).toHaveLength(2);
      expect(await log.readChunk(manifests[0]!, 1)).toEqual(chunk('b4'));
      expect(await log.readChunk(manifests[1]!, 0)).toEqual(chunk('a2'));
    });

    test('the newest at or below a place that is given stays too, until the next one without it (rule L4)', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 7);
      const indexes = async (): Promise<number[]> => (await log.snapshots()).map(({ index }) => index);
      const take = (index: number, keepFrom?: number): Promise<void> =>
        takeSnapshot(log, leadership, entries[index - 1]!, [chunk(`a${index}`)], keepFrom);
      for (const at of [1, 2, 3]) await take(at, 2);
      expect(await indexes()).toEqual([3, 2]);
      await take(4, 2);
      expect(await indexes()).toEqual([4, 3, 2]);
      await take(5, 2);
      expect(await indexes()).toEqual([5, 4, 2]);
      const oldest = (await log.snapshots())[2]!;
      expect(await log.readChunk(oldest, 0)).toEqual(chunk('a2'));
      await log.trim(leadership, 2);
      expect(await readAll(log, 3)).toEqual(entries.slice(2));
      await take(6, 1);
      expect(await indexes()).toEqual([6, 5]);
      await take(7, 5);
      expect(await indexes()).toEqual([7, 6, 5]);
      await log.trim(leadership);
      await expect(log.readChunk(oldest, 0)).rejects.toThrow(CorruptLogError);
      await expect(readAll(log, 6)).rejects.toMatchObject({ below: 6 });
    });

    test('an open snapshot is not listed, and opening another gives it up', async () => {
      const leadership = await log.campaign('server-a');
      const [entry] = await appendEntries(log, leadership, 1);
      const forgotten = new SnapshotWriter(log, await log.openSnapshot(leadership));
      await forgotten.write(chunk('a'));
      const writer = new SnapshotWriter(log, await log.openSnapshot(leadership));
      await writer.write(chunk('b'));
      expect(await log.snapshots()).toEqual([]);
      expect(await log.openedSnapshot()).toEqual({ id: writer.id, serverId: null, chunks: 1, offer: null });
      const place = placeAt(entry!);
      await expect(forgotten.write(chunk('b'))).rejects.toThrow(RangeError);
      await expect(log.commitSnapshot(leadership, forgotten.manifest(place))).rejects.toThrow(RangeError);
      const manifest = writer.manifest(place);
      await log.commitSnapshot(leadership, manifest);
      await log.commitSnapshot(leadership, manifest);
      expect(await log.snapshots()).toEqual([manifest]);
      expect(await log.openedSnapshot()).toBeNull();
      expect(await log.readChunk(manifest, 0)).toEqual(chunk('b'));
      await expect(writer.write(chunk('c'))).rejects.toThrow(RangeError);
    });

    test('a chunk is written once: again the same is fine, another one under its number is not (rule L3)', async () => {
      const leadership = await log.campaign('server-a');
      const [entry] = await appendEntries(log, leadership, 1);
      const id = await log.openSnapshot(leadership);
      await log.writeChunk(id, 0, chunk('a'));
      await log.writeChunk(id, 0, chunk('a'));
      await expect(log.writeChunk(id, 0, chunk('b'))).rejects.toThrow(RangeError);
      const writer = new SnapshotWriter(log, id);
      await writer.write(chunk('a'));
      const manifest = writer.manifest(placeAt(entry!));
      const short = { ...manifest, chunkHashes: [] };
      await expect(log.commitSnapshot(leadership, short)).rejects.toThrow(RangeError);
      await log.commitSnapshot(leadership, manifest);
      expect(await log.readChunk(manifest, 0)).toEqual(chunk('a'));
    });

    test('a snapshot only moves upwards and stands on an entry of the log', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 3);
      await takeSnapshot(log, leadership, entries[1]!, []);
      const places = [
        START,
        entries[0]!,
        entries[1]!,
        entryAfter(entries[2]!),
        { index: 3, hash: entries[1]!.hash },
      ];
      const writer = new SnapshotWriter(log, await log.openSnapshot(leadership));
      for (const at of places) {
        await expect(log.commitSnapshot(leadership, writer.manifest(placeAt(at)))).rejects.toThrow(
          RangeError,
        );
      }
      expect((await log.snapshots()).map((manifest) => manifest.index)).toEqual([2]);
      await log.commitSnapshot(leadership, writer.manifest(placeAt(entries[2]!)));
      expect((await log.snapshots()).map((manifest) => manifest.index)).toEqual([3, 2]);
    });

    test('a chunk beyond the limit is refused', async () => {
      const leadership = await log.campaign('server-a');
      const id = await log.openSnapshot(leadership);
      await expect(log.writeChunk(id, 0, new Uint8Array(1024 * 1024 + 1))).rejects.toThrow(RangeError);
    });

    test('a corrupted chunk is detected and the older snapshot taken (rule L3)', async () => {
      const leadership = await log.campaign('server-a');
      const entries = await appendEntries(log, leadership, 2);
      await takeSnapshot(log, leadership, entries[0]!, [chunk('old')]);
      await takeSnapshot(log, leadership, entries[1]!, [chunk('a'), chunk('b')]);
      const [newest, older] = await log.snapshots();
      await stored.damageChunk(newest!, 1);
      expect(await log.readChunk(newest!, 0)).toEqual(chunk('a'));
      await expect(log.readChunk(newest!, 1)).rejects.toThrow(CorruptLogError);
      await expect(log.readChunk(newest!, 2)).rejects.toThrow(CorruptLogError);

      const skipped: number[] = [];
      const loaded = await loadNewestSnapshot(log, (manifest) => skipped.push(manifest.index));
      expect(skipped).toEqual([2]);
      expect(loaded).toEqual({ manifest: older, chunks: [chunk('old')] });

      await stored.damageChunk(older!, 0);
      await expect(loadNewestSnapshot(log, () => undefined)).rejects.toThrow(CorruptLogError);
    });

    test('without snapshots there is none to load', async () => {
      expect(await loadNewestSnapshot(log, () => undefined)).toBeUndefined();
    });
    if (hasStandbys) {
      test('a standby claims the open snapshot, writes and offers it (rule L3)', async () => {
        const leadership = await log.campaign('server-a');
        const [entry] = await appendEntries(log, leadership, 1);
        expect(await log.claimSnapshot('no such snapshot', 'server-b')).toBe(false);
        const id = await log.openSnapshot(leadership);
        expect(await log.claimSnapshot(id, 'server-b')).toBe(true);
        expect(await log.claimSnapshot(id, 'server-b')).toBe(true);
        expect(await log.claimSnapshot(id, 'server-c')).toBe(false);
        const writer = new SnapshotWriter(log, id);
        await writer.write(chunk('a'));
        const manifest = writer.manifest(placeAt(entry!));
        await expect(log.offerSnapshot({ ...manifest, chunkHashes: [] })).rejects.toThrow(RangeError);
        expect(await log.openedSnapshot()).toEqual({ id, serverId: 'server-b', chunks: 1, offer: null });
        await log.offerSnapshot(manifest);
        expect(await log.openedSnapshot()).toMatchObject({ id, offer: manifest });
        await log.commitSnapshot(leadership, manifest);
        expect(await log.snapshots()).toEqual([manifest]);
        await expect(log.offerSnapshot(manifest)).rejects.toThrow(RangeError);
      });

      test('what a standby still writes for a deposed leader is refused (rule L3)', async () => {
        const first = await log.campaign('server-a');
        const [entry] = await appendEntries(log, first, 1);
        const writer = new SnapshotWriter(log, await log.openSnapshot(first));
        expect(await log.claimSnapshot(writer.id, 'server-c')).toBe(true);
        await writer.write(chunk('a'));
        const second = await log.campaign('server-b');
        expect(await log.claimSnapshot(writer.id, 'server-c')).toBe(false);
        await expect(writer.write(chunk('b'))).rejects.toThrow(RangeError);
        await expect(log.offerSnapshot(writer.manifest(placeAt(entry!)))).rejects.toThrow(RangeError);
        const next = await log.openSnapshot(second);
        expect(await log.openedSnapshot()).toEqual({ id: next, serverId: null, chunks: 0, offer: null });
      });
    }
  });
}
