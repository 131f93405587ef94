/**
 * A log in memory whose appends a test can hold back, let go and fail, and which remembers everything that was sent to it:
 * what a leader answers before an append is committed, and what it sends again, shows only here.
 */
import type { Entry } from '../../../src/api/entry.ts';
import { decodeEntry } from '../../../src/core/index.ts';
import { LogUnavailableError } from '../../../src/log/errors.ts';
import { MemoryLog } from '../../../src/log/memory-log.ts';
import type { MemoryStore } from '../../../src/log/memory-store.ts';
import {
  type AppendOutcome,
  CorruptLogError,
  type Leadership,
  type SnapshotManifest,
  type StoredEntry,
} from '../../../src/log/port.ts';

export class HeldLog extends MemoryLog {
  /** Every append, also the same one sent again. */
  readonly sent: StoredEntry[] = [];
  readonly calls = { snapshots: 0, trims: 0, reads: 0, resigns: 0, closes: 0 };
  /** Chunks of these snapshots do not match their hash any more. */
  readonly corrupt = new Set<string>();
  isOut = false;
  areSnapshotsOut = false;
  #isHolding = false;
  readonly #held: (() => void)[] = [];

  constructor(store: MemoryStore) {
    super(store);
  }

  /** The entries sent, without repeats. */
  get entries(): readonly Entry[] {
    return [...new Map(this.sent.map((stored) => [stored.index, decodeEntry(stored.bytes)])).values()];
  }

  /** From now on appends stay under way until they are let go. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Lets go of what is held, in order, and of all that comes. */
  letGo(): void {
    this.#isHolding = false;
    this.letGoOne(this.#held.length);
  }

  /** Lets go of so many; what comes later is held again. */
  letGoOne(count = 1): void {
    for (const go of this.#held.splice(0, count)) go();
  }

  override async append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome> {
    this.sent.push(entry);
    if (this.isOut) throw new LogUnavailableError('the storage does not answer');
    if (this.#isHolding) await new Promise<void>((resolve) => void this.#held.push(resolve));
    return super.append(leadership, entry);
  }

  override async openSnapshot(leadership: Leadership): Promise<string> {
    this.calls.snapshots++;
    if (this.areSnapshotsOut) throw new LogUnavailableError('no snapshot can be written');
    return super.openSnapshot(leadership);
  }

  override async trim(leadership: Leadership, upTo?: number): Promise<void> {
    this.calls.trims++;
    await super.trim(leadership, upTo);
  }

  override async *read(fromIndex: number): AsyncIterable<StoredEntry> {
    this.calls.reads++;
    yield* super.read(fromIndex);
  }

  override async readChunk(manifest: SnapshotManifest, chunk: number): Promise<Uint8Array> {
    if (this.corrupt.has(manifest.id))
      throw new CorruptLogError(`chunk ${chunk} of ${manifest.id} is corrupt`);
    return super.readChunk(manifest, chunk);
  }

  override async resign(leadership: Leadership): Promise<void> {
    this.calls.resigns++;
    await super.resign(leadership);
  }

  override async close(): Promise<void> {
    this.calls.closes++;
    await super.close();
  }
}
