/** What every engine of the log has to do: a suite that is run against each. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Stored } from './engines.fixture.ts';
import { appendEntries, entryAfter, placeAt, readAll, START, takeSnapshot } from './log.fixture.ts';
import {
  CorruptLogError,
  DeposedError,
  type LockLog,
  ReplacedError,
  type RollBackProof,
  TrimmedError,
} from './port.ts';
import { hashOf } from './rules.ts';
import { loadNewestSnapshot } from './snapshot-reader.ts';
import { SnapshotWriter } from './snapshot-writer.ts';

const proofOf = (lineage: string): RollBackProof => ({
  lineage,
  seenBy: 'client',
  seen: { index: 9, hash: 'ab' },
  found: '',
  headIndex: 1,
  serverId: 'server-a',
  wallMs: 1,
});
const chunk = (text: string): Uint8Array => new TextEncoder().encode(text.repeat(1_000));

/** `hasStandbys`: more than one process can have the log open. */
export function testContract(
  engine: string,
  make: () => Stored,
  { hasStandbys = true }: { readonly hasStandbys?: boolean } = {},
): void {
  describe(`log contract: ${engine}`, () => {
    let stored: Stored;
    let log: LockLog;

    beforeEach(async () => {
      stored = make();
      log = await stored.open();
    });

    afterEach(async () => {
      await log.close();
      await stored.remove();
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

    test('bytes handed to append stay usable by their owner', async () => {
      const leadership = await log.campaign('server-a');
      const pool = new Uint8Array(4_096).fill(7);
      const bytes = pool.subarray(100, 200);
      await log.append(leadership, { index: 1, bytes, hash: hashOf(bytes), previous: '' });
      expect(pool).toEqual(new Uint8Array(4_096).fill(7));
      expect((await readAll(log, 1))[0]?.bytes).toEqual(new Uint8Array(100).fill(7));
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
