/**
 * The durable part of the memory engine: it outlives the handles on it, as a disk outlives the processes that use it. The simulator
 * keeps one per group and opens a new MemoryLog on it after each simulated crash. Nothing is copied: what is handed in must not be
 * changed afterwards.
 */
import { ok as assert } from 'node:assert';
import { Buffer } from 'node:buffer';
import { PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, SNAPSHOTS_KEPT_MAX } from './limits.ts';
import {
  type AppendOutcome,
  type Birth,
  CorruptLogError,
  type LeaderRecord,
  type Leadership,
  type LogPosition,
  type LogSpace,
  type OpenSnapshot,
  ReplacedError,
  type RollBackProof,
  type SnapshotManifest,
  type Standing,
  type StoredEntry,
  TrimmedError,
} from './port.ts';
import {
  checkAuditCursor,
  checkChain,
  checkManifest,
  checkNewChunk,
  checkPageEnd,
  checkSnapshotPlace,
  EMPTY_HEAD,
  hashOf,
  judgeAppend,
  keptSnapshots,
  lastTrimmed,
  requireLeader,
  type WriteState,
} from './rules.ts';
import type { LogStore, NewLife } from './store.ts';

interface StoredSnapshot {
  readonly id: string;
  readonly chunks: Uint8Array[];
  readonly hashes: string[];
  serverId: string | null;
  offer: SnapshotManifest | null;
  /** Set by the commit. */
  manifest: SnapshotManifest | undefined;
}

export class MemoryStore implements LogStore {
  #lineage: string;
  #birth: Birth;
  #halted: RollBackProof | null = null;
  #epoch = 0;
  #serverId = '';
  #fence = '';
  #head = EMPTY_HEAD;
  #entries: StoredEntry[] = [];
  #firstIndex = 1;
  #firstPrevious = '';
  #retainedBytes = 0;
  /** Oldest first; at most one open one. */
  #snapshots: StoredSnapshot[] = [];
  #serial = 0;
  #auditCursor: number | null = null;

  /** `lineage`: a random id, new for every life of a log (rule M3). */
  constructor(lineage: string) {
    assert(lineage !== '', 'a log has a lineage');
    this.#lineage = lineage;
    this.#birth = { sealKey: hashOf(Buffer.from(`seal of ${lineage}`)), tokenFloor: 0, quietMs: 0 };
  }

  get lineage(): string {
    return this.#lineage;
  }

  birth(): Birth {
    return this.#birth;
  }

  standing(): Standing {
    return { lineage: this.#lineage, head: this.#head, halted: this.#halted };
  }

  halt(proof: RollBackProof): void {
    if (proof.lineage !== this.#lineage) return;
    this.#halted ??= proof;
    this.depose();
    assert(this.#halted !== null && this.leader() === null, 'nobody leads a halted log');
  }

  beginLineage(from: string, { lineage, tokenFloor, quietMs }: NewLife): void {
    if (this.#lineage === lineage) return;
    if (this.#lineage !== from) throw new ReplacedError();
    this.#lineage = lineage;
    this.#birth = { ...this.#birth, tokenFloor, quietMs };
    this.#halted = null;
    this.depose();
    this.#head = EMPTY_HEAD;
    this.#entries = [];
    this.#firstIndex = 1;
    this.#firstPrevious = '';
    this.#retainedBytes = 0;
    this.#snapshots = [];
    this.#auditCursor = null;
  }

  /** For tests: this store as it is now, to be put back in its place later, as an old copy of a disk would be. */
  copy(): MemoryStore {
    const copy = new MemoryStore(this.#lineage);
    copy.restore(this);
    return copy;
  }

  /** For tests: becomes what the copy was. Handles on this store notice nothing. */
  restore(copy: MemoryStore): void {
    this.#lineage = copy.#lineage;
    this.#birth = copy.#birth;
    this.#halted = copy.#halted;
    this.#epoch = copy.#epoch;
    this.#serverId = copy.#serverId;
    this.#fence = copy.#fence;
    this.#head = copy.#head;
    this.#entries = [...copy.#entries];
    this.#firstIndex = copy.#firstIndex;
    this.#firstPrevious = copy.#firstPrevious;
    this.#retainedBytes = copy.#retainedBytes;
    this.#snapshots = copy.#snapshots.map((snapshot) => ({
      ...snapshot,
      chunks: [...snapshot.chunks],
      hashes: [...snapshot.hashes],
    }));
    this.#auditCursor = copy.#auditCursor;
  }

  campaign(serverId: string): Leadership {
    this.#epoch += 1;
    this.#serverId = serverId;
    this.#fence = `${this.#lineage}/${this.#epoch}`;
    this.#snapshots = this.#snapshots.filter((snapshot) => snapshot.manifest !== undefined);
    return { serverId, epoch: this.#epoch, fence: this.#fence };
  }

  leader(): LeaderRecord | null {
    return this.#fence === '' ? null : { serverId: this.#serverId, epoch: this.#epoch };
  }

  evict(epoch: number): boolean {
    if (this.#fence === '' || epoch !== this.#epoch) return false;
    this.depose();
    assert(this.leader() === null, 'nobody leads after an eviction');
    return true;
  }

  /** The leader loses its leadership and nobody gains it, as when its etcd lease runs out. */
  depose(): void {
    this.#fence = '';
  }

  /** 1, 2, 3, ...: for ids where nothing is random. */
  takeSerial(): number {
    this.#serial += 1;
    return this.#serial;
  }

  append(leadership: Leadership, entry: StoredEntry): AppendOutcome {
    const verdict = judgeAppend(this.#state(), leadership, entry);
    if (verdict === 'deposed') return 'deposed';
    if (verdict === 'repeat') return 'committed';
    assert(this.#firstIndex + this.#entries.length === entry.index, 'entries are consecutive');
    assert(entry.hash !== '', 'an entry has a hash');
    this.#entries.push(entry);
    this.#head = { index: entry.index, hash: entry.hash };
    this.#retainedBytes += entry.bytes.byteLength;
    return 'committed';
  }

  head(): LogPosition {
    return this.#head;
  }

  entryHash(index: number): string | null {
    if (index < this.#firstIndex) throw new TrimmedError(this.#firstIndex - 1);
    return this.#entries[index - this.#firstIndex]?.hash ?? null;
  }

  readPage(fromIndex: number): readonly StoredEntry[] {
    if (fromIndex < this.#firstIndex) throw new TrimmedError(this.#firstIndex - 1);
    const offset = fromIndex - this.#firstIndex;
    const page: StoredEntry[] = [];
    let bytes = 0;
    for (const entry of this.#entries.slice(offset, offset + PAGE_ENTRIES_MAX)) {
      bytes += entry.bytes.byteLength;
      if (page.length > 0 && bytes > PAGE_BYTES_MAX) break;
      page.push(entry);
    }
    const before = offset === 0 ? this.#firstPrevious : this.#entries[offset - 1]?.hash;
    checkChain(page, fromIndex, before ?? '');
    checkPageEnd(page, fromIndex, this.#head);
    return page;
  }

  retainedBytes(aboveIndex: number): number {
    if (aboveIndex < this.#firstIndex) return this.#retainedBytes;
    const above = this.#entries.slice(aboveIndex + 1 - this.#firstIndex);
    return above.reduce((sum, entry) => sum + entry.bytes.byteLength, 0);
  }

  openSnapshot(leadership: Leadership, id: string): void {
    requireLeader(this.#state(), leadership, 'open a snapshot');
    const open = this.#snapshots.find((snapshot) => snapshot.manifest === undefined);
    if (open?.id === id) return;
    assert(!this.#snapshots.some((snapshot) => snapshot.id === id), 'a snapshot id is used once');
    this.#snapshots = this.#snapshots.filter((snapshot) => snapshot !== open);
    this.#snapshots.push({ id, chunks: [], hashes: [], serverId: null, offer: null, manifest: undefined });
  }

  openedSnapshot(): OpenSnapshot | null {
    const open = this.#snapshots.find((snapshot) => snapshot.manifest === undefined);
    if (open === undefined) return null;
    return { id: open.id, serverId: open.serverId, chunks: open.chunks.length, offer: open.offer };
  }

  claimSnapshot(id: string, serverId: string): boolean {
    const open = this.#snapshots.find((snapshot) => snapshot.manifest === undefined);
    if (open?.id !== id || (open.serverId ?? serverId) !== serverId) return false;
    open.serverId = serverId;
    return true;
  }

  writeChunk(id: string, number: number, chunk: Uint8Array): void {
    const snapshot = this.#requireOpen(id);
    const chunkHash = hashOf(chunk);
    if (snapshot.hashes[number] === chunkHash) return;
    checkNewChunk(number, snapshot.chunks.length, chunk);
    snapshot.chunks.push(chunk);
    snapshot.hashes.push(chunkHash);
  }

  offerSnapshot(manifest: SnapshotManifest): void {
    const snapshot = this.#requireOpen(manifest.id);
    checkManifest(manifest, snapshot.chunks.length);
    snapshot.offer = manifest;
  }

  commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): void {
    requireLeader(this.#state(), leadership, 'commit a snapshot');
    const { id, index, entryHash } = manifest;
    const before = this.snapshots();
    if (before.some((same) => same.id === id && same.index === index)) return;
    const snapshot = this.#requireOpen(id);
    const stored = this.#entries[index - this.#firstIndex]?.hash;
    checkSnapshotPlace({ index, hash: entryHash }, before[0]?.index ?? 0, stored);
    checkManifest(manifest, snapshot.chunks.length);
    snapshot.manifest = manifest;
    const kept = new Set(keptSnapshots(this.snapshots(), keepFrom));
    this.#snapshots = this.#snapshots.filter((one) => one.manifest !== undefined && kept.has(one.manifest));
    assert(this.snapshots()[0]?.id === id, 'the newest snapshot is the one just made');
    assert(this.#snapshots.length <= SNAPSHOTS_KEPT_MAX, 'at most three snapshots stay');
  }

  #requireOpen(id: string): StoredSnapshot {
    const snapshot = this.#snapshots.find((candidate) => candidate.id === id);
    if (snapshot === undefined || snapshot.manifest !== undefined) {
      throw new RangeError(`snapshot ${id} is not open`);
    }
    return snapshot;
  }

  snapshots(): readonly SnapshotManifest[] {
    const manifests: SnapshotManifest[] = [];
    for (const { manifest } of this.#snapshots) if (manifest !== undefined) manifests.unshift(manifest);
    return manifests;
  }

  readChunk(manifest: SnapshotManifest, chunk: number): Uint8Array {
    const stored = this.#snapshots.find((snapshot) => snapshot.id === manifest.id)?.chunks[chunk];
    if (stored === undefined || hashOf(stored) !== manifest.chunkHashes[chunk]) {
      throw new CorruptLogError(
        `chunk ${chunk} of snapshot ${manifest.id} is missing or does not match its hash`,
      );
    }
    return stored;
  }

  trimStep(leadership: Leadership, upTo: number): boolean {
    requireLeader(this.#state(), leadership, 'trim the log');
    const last = lastTrimmed(this.snapshots(), upTo);
    if (last < this.#firstIndex) return false;
    const removed = this.#entries.splice(0, last + 1 - this.#firstIndex);
    for (const entry of removed) this.#retainedBytes -= entry.bytes.byteLength;
    this.#firstIndex = last + 1;
    this.#firstPrevious = removed.at(-1)?.hash ?? '';
    assert(this.#retainedBytes >= 0, 'no more bytes are removed than were kept');
    assert(this.#firstIndex + this.#entries.length === this.#head.index + 1, 'the head stays');
    return false;
  }

  auditCursor(): number | null {
    return this.#auditCursor;
  }

  setAuditCursor(leadership: Leadership, index: number | null): void {
    requireLeader(this.#state(), leadership, 'move the audit cursor');
    checkAuditCursor(this.#auditCursor, index);
    this.#auditCursor = index;
  }

  /** It is alone. */
  compareMembers(): null {
    return null;
  }

  /** There is no quota but what a test sets. */
  space(): LogSpace | null {
    return null;
  }

  reclaim(): void {
    // Nothing is left over.
  }

  resign(leadership: Leadership): void {
    if (leadership.fence === this.#fence) this.#fence = '';
  }

  #state(): WriteState {
    return { epoch: this.#epoch, fence: this.#fence, head: this.#head };
  }
}
