/**
 * The steps of the log on etcd. Every write is one transaction that compares the fence (the create revision of the key
 * `leader`), so a deposed leader's write fails inside etcd, whatever it believes (rule L1). What a failed comparison means is read in
 * the else branch of the very same transaction, never by a read before or after it (rule L2).
 */
import { Buffer } from 'node:buffer';
import type { ICompare, IKeyValue, IRequestOp } from 'etcd3/lib/rpc.js';
import type { Random } from '../../platform/runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import { PAGE_ENTRIES_MAX, SNAPSHOTS_KEPT } from '../limits.ts';
import {
  type AppendOutcome,
  CorruptLogError,
  type LeaderRecord,
  type Leadership,
  type LogPosition,
  type SnapshotManifest,
  type StoredEntry,
  TrimmedError,
} from '../port.ts';
import {
  checkAuditCursor,
  checkChain,
  checkNewChunk,
  checkPageEnd,
  checkSnapshotPlace,
  hashOf,
  judgeAppend,
  requireLeader,
  type WriteState,
} from '../rules.ts';
import type { StoreArguments, StoreMethod, StoreReply } from '../store.ts';
import type { EtcdClient } from './client.ts';
import {
  decodeEntryValue,
  decodeJson,
  EMPTY,
  encodeEntryValue,
  encodeJson,
  FROM_THE_FIRST,
  type Head,
  type Keys,
  type Start,
} from './keys.ts';
import { hasValue, isAbsent, isFence, kvsOf, leads, put } from './transactions.ts';

/** The store's steps, each answered later. */
export type AsyncStore = {
  [M in Exclude<StoreMethod, 'campaign'>]: (...args: StoreArguments<M>) => Promise<StoreReply<M>>;
};

/** Entries deleted in one transaction: one range, so its cost is etcd's, not ours. */
const TRIM_ENTRIES_MAX = 1_000;
/** Entries in one answer; at their largest 64 MiB. */
const PAGE_ENTRIES = Math.min(64, PAGE_ENTRIES_MAX);

interface OpenSnapshot {
  readonly id: string;
  readonly hashes: string[];
  bytes: number;
}

const NOBODY: LeaderRecord = { serverId: '', epoch: 0 };
const NO_SNAPSHOT: OpenSnapshot = { id: '', hashes: [], bytes: 0 };

export class EtcdStore implements AsyncStore {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  /** The head as this handle saw it last: what the next append compares with. */
  #head: Head = EMPTY;
  #open: OpenSnapshot = NO_SNAPSHOT;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  /** Random id of this life of the log; the first who opens it makes it. */
  async lineage(random: Random, bytes: number): Promise<string> {
    const key = this.#keys.lineage;
    const made = random.hex(bytes);
    const { succeeded, responses } = await this.#client.txn({
      compare: [isAbsent(key)],
      success: [put(key, Buffer.from(made))],
      failure: [{ request_range: { key } }],
    });
    if (succeeded) return made;
    const [stored] = kvsOf(responses[0]);
    if (stored === undefined) throw new CorruptLogError('the lineage of the log is missing');
    return stored.value.toString();
  }

  async append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome> {
    if (!isFence(leadership.fence)) return 'deposed';
    if (this.#head.index + 1 !== entry.index || this.#head.hash !== entry.previous) {
      // First entry of this handle, or one that does not fit: never sent before, so a read may say what is there.
      const verdict = judgeAppend(await this.#writeState(), leadership, entry);
      if (verdict !== 'append') return verdict === 'repeat' ? 'committed' : 'deposed';
    }
    const { head, leader } = this.#keys;
    const totalBytes = this.#head.totalBytes + entry.bytes.byteLength;
    const next: Head = { index: entry.index, hash: entry.hash, totalBytes };
    judgeAppend({ ...leadership, head: this.#head }, leadership, entry);
    const { succeeded, responses } = await this.#client.txn({
      compare: [
        leads(leader, leadership),
        this.#head.index === 0 ? isAbsent(head) : hasValue(head, encodeJson(this.#head)),
      ],
      success: [
        put(this.#keys.entry(entry.index), encodeEntryValue(entry, totalBytes)),
        put(head, encodeJson(next)),
      ],
      failure: [{ request_range: { key: leader } }, { request_range: { key: head } }],
    });
    if (succeeded) {
      this.#head = next;
      return 'committed';
    }
    const verdict = judgeAppend(this.#takeState(kvsOf(responses[0]), kvsOf(responses[1])), leadership, entry);
    if (verdict === 'append') throw new LogUnavailableError('the head moved while its entry was written');
    return verdict === 'repeat' ? 'committed' : 'deposed';
  }

  async leader(): Promise<LeaderRecord | null> {
    const [leaders] = await this.#client.read([{ key: this.#keys.leader }]);
    const leader = leaders?.[0];
    return leader === undefined ? null : decodeJson<LeaderRecord>(leader, NOBODY);
  }

  /** The key goes, not the lease behind it: in one transaction, so that it cannot hit a leadership that has begun meanwhile. */
  async evict(epoch: number): Promise<boolean> {
    const { leader: key } = this.#keys;
    const [leaders] = await this.#client.read([{ key }]);
    const leader = leaders?.[0];
    if (leader === undefined || decodeJson<LeaderRecord>(leader, NOBODY).epoch !== epoch) return false;
    const { succeeded } = await this.#client.txn({
      compare: [{ key, target: 'Create', result: 'Equal', create_revision: leader.create_revision }],
      success: [{ request_delete_range: { key } }],
    });
    return succeeded;
  }

  async head(): Promise<LogPosition> {
    const [head] = await this.#client.read([{ key: this.#keys.head }]);
    const { index, hash } = decodeJson<Head>(head?.[0], EMPTY);
    return { index, hash };
  }

  async readPage(fromIndex: number): Promise<readonly StoredEntry[]> {
    const before = fromIndex - 1;
    const [starts, heads, pairs] = await this.#client.read([
      { key: this.#keys.start },
      { key: this.#keys.head },
      {
        key: this.#keys.entry(before),
        range_end: this.#keys.entry(fromIndex + PAGE_ENTRIES),
        limit: PAGE_ENTRIES + 1,
      },
    ]);
    const start = decodeJson<Start>(starts?.[0], FROM_THE_FIRST);
    if (fromIndex < start.firstIndex) throw new TrimmedError(start.firstIndex - 1);
    const entries = (pairs ?? []).map(decodeEntryValue);
    const previous = entries[0]?.index === before ? entries.shift()?.hash : start.firstPrevious;
    checkChain(entries, fromIndex, previous ?? '');
    checkPageEnd(entries, fromIndex, decodeJson<Head>(heads?.[0], EMPTY));
    return entries.map(({ index, bytes, hash, previous: before }) => ({
      index,
      bytes,
      hash,
      previous: before,
    }));
  }

  async retainedBytes(): Promise<number> {
    const [starts, heads] = await this.#client.read([{ key: this.#keys.start }, { key: this.#keys.head }]);
    const { trimmedBytes } = decodeJson<Start>(starts?.[0], FROM_THE_FIRST);
    return decodeJson<Head>(heads?.[0], EMPTY).totalBytes - trimmedBytes;
  }

  async openSnapshot(leadership: Leadership, id: string): Promise<void> {
    const kept = new Set((await this.snapshots()).map((manifest) => manifest.id));
    const [chunkKeys] = await this.#client.read([{ ...this.#keys.chunks(), keys_only: true }]);
    const stale = new Set((chunkKeys ?? []).map(({ key }) => this.#keys.chunkId(key)));
    await this.#write(leadership, 'open a snapshot', {
      success: [
        put(this.#keys.openSnapshot, Buffer.from(id)),
        // Chunks of snapshots that were given up.
        ...[...stale]
          .filter((other) => other !== id && !kept.has(other))
          .map((other) => ({ request_delete_range: this.#keys.chunks(other) })),
      ],
    });
    if (this.#open.id !== id) this.#open = { id, hashes: [], bytes: 0 };
  }

  async writeChunk(leadership: Leadership, id: string, number: number, chunk: Uint8Array): Promise<void> {
    const open = this.#open;
    const hash = hashOf(chunk);
    const isRepeat = open.id === id && open.hashes[number] === hash;
    if (open.id === id && !isRepeat) checkNewChunk(number, open.hashes.length, chunk);
    const key = this.#keys.chunk(id, number);
    const { succeeded, responses } = await this.#client.txn({
      compare: [leads(this.#keys.leader, leadership), hasValue(this.#keys.openSnapshot, id), isAbsent(key)],
      success: [put(key, Buffer.from(chunk))],
      failure: [
        { request_range: { key: this.#keys.leader } },
        { request_range: { key: this.#keys.openSnapshot } },
        { request_range: { key } },
      ],
    });
    if (!succeeded) {
      requireLeader(
        this.#takeState(kvsOf(responses[0]), undefined),
        leadership,
        'write a chunk of a snapshot',
      );
      const isOpen = kvsOf(responses[1])[0]?.value.toString() === id;
      const stored = kvsOf(responses[2])[0]?.value;
      if (!isOpen) throw new RangeError(`snapshot ${id} is not open`);
      if (stored === undefined || hashOf(stored) !== hash) {
        throw new RangeError(`chunk ${number} of snapshot ${id} is written already, with other bytes`);
      }
    }
    if (isRepeat || open.id !== id) return;
    open.hashes.push(hash);
    open.bytes += chunk.byteLength;
  }

  async commitSnapshot(leadership: Leadership, id: string, at: LogPosition): Promise<SnapshotManifest> {
    const manifests = await this.snapshots();
    const done = manifests.find((manifest) => manifest.id === id && manifest.index === at.index);
    const [stored] = await this.#client.read([{ key: this.#keys.entry(at.index) }]);
    const open = this.#open;
    const manifest: SnapshotManifest = done ?? {
      id,
      index: at.index,
      entryHash: at.hash,
      chunkHashes: [...open.hashes],
      bytes: open.bytes,
    };
    if (done === undefined && open.id === id) {
      const entry = stored?.[0];
      const hash = entry === undefined ? undefined : decodeEntryValue(entry).hash;
      checkSnapshotPlace(at, manifests[0]?.index ?? 0, hash);
    }
    await this.#write(leadership, 'commit a snapshot', {
      compare: done === undefined ? [hasValue(this.#keys.openSnapshot, id)] : [],
      success:
        done === undefined
          ? [
              put(this.#keys.manifest(at.index), encodeJson(manifest)),
              { request_delete_range: { key: this.#keys.openSnapshot } },
              ...manifests.slice(SNAPSHOTS_KEPT - 1).flatMap((old) => this.#deletionOf(old)),
            ]
          : [],
      otherwise: `snapshot ${id} is not open`,
    });
    if (open.id === id) this.#open = NO_SNAPSHOT;
    return manifest;
  }

  async snapshots(): Promise<readonly SnapshotManifest[]> {
    const [pairs] = await this.#client.read([this.#keys.manifests()]);
    return (pairs ?? []).map((pair) => decodeJson<SnapshotManifest>(pair, NO_MANIFEST)).reverse();
  }

  async readChunk(manifest: SnapshotManifest, chunk: number): Promise<Uint8Array> {
    const [pairs] = await this.#client.read([{ key: this.#keys.chunk(manifest.id, chunk) }]);
    const stored = pairs?.[0]?.value;
    if (stored === undefined || hashOf(stored) !== manifest.chunkHashes[chunk]) {
      throw new CorruptLogError(
        `chunk ${chunk} of snapshot ${manifest.id} is missing or does not match its hash`,
      );
    }
    return new Uint8Array(stored);
  }

  /** Rule L4: up to the older of two snapshots. After the last step etcd forgets what was deleted. */
  async trimStep(leadership: Leadership): Promise<boolean> {
    const older = (await this.snapshots())[SNAPSHOTS_KEPT - 1];
    const [starts] = await this.#client.read([{ key: this.#keys.start }]);
    const start = decodeJson<Start>(starts?.[0], FROM_THE_FIRST);
    if (older === undefined || older.index < start.firstIndex) {
      await this.#write(leadership, 'trim the log', { success: [] });
      return false;
    }
    const last = Math.min(older.index, start.firstIndex + TRIM_ENTRIES_MAX - 1);
    const [pairs] = await this.#client.read([{ key: this.#keys.entry(last) }]);
    const pair = pairs?.[0];
    if (pair === undefined) throw new CorruptLogError(`entry ${last} is missing`);
    const { hash, totalBytes } = decodeEntryValue(pair);
    const next: Start = { firstIndex: last + 1, firstPrevious: hash, trimmedBytes: totalBytes };
    await this.#write(leadership, 'trim the log', {
      success: [
        put(this.#keys.start, encodeJson(next)),
        {
          request_delete_range: {
            key: this.#keys.entry(start.firstIndex),
            range_end: this.#keys.entry(last + 1),
          },
        },
      ],
    });
    if (last < older.index) return true;
    await this.#client.compact();
    return false;
  }

  async auditCursor(): Promise<number | null> {
    const [pairs] = await this.#client.read([{ key: this.#keys.auditCursor }]);
    return auditCursorOf(pairs?.[0]);
  }

  async setAuditCursor(leadership: Leadership, index: number | null): Promise<void> {
    const key = this.#keys.auditCursor;
    const [pairs] = await this.#client.read([{ key }]);
    const before = pairs?.[0];
    const isValid = index === null || (Number.isSafeInteger(index) && index >= 0);
    const isForward = isValid && (index === null || index >= (auditCursorOf(before) ?? 0));
    await this.#write(leadership, 'move the audit cursor', {
      compare: [before === undefined ? isAbsent(key) : hasValue(key, before.value)],
      success: !isForward
        ? []
        : [index === null ? { request_delete_range: { key } } : put(key, Buffer.from(String(index)))],
      otherwise: 'the audit cursor was moved meanwhile',
    });
    // Only now: that somebody else leads comes first.
    checkAuditCursor(auditCursorOf(before), index);
  }

  async resign(leadership: Leadership): Promise<void> {
    const { leader } = this.#keys;
    await this.#client.txn({
      compare: [leads(leader, leadership)],
      success: [{ request_delete_range: { key: leader } }],
    });
  }

  /** A write under the fence; what else it compares and does. */
  async #write(
    leadership: Leadership,
    what: string,
    { compare = [], success, otherwise }: FencedWrite,
  ): Promise<void> {
    const { leader } = this.#keys;
    const { succeeded, responses } = await this.#client.txn({
      compare: [leads(leader, leadership), ...compare],
      success,
      failure: [{ request_range: { key: leader } }],
    });
    if (succeeded) return;
    requireLeader(this.#takeState(kvsOf(responses[0]), undefined), leadership, what);
    throw new RangeError(otherwise ?? `${what}: refused`);
  }

  async #writeState(): Promise<WriteState> {
    const [leaders, heads] = await this.#client.read([{ key: this.#keys.leader }, { key: this.#keys.head }]);
    return this.#takeState(leaders ?? [], heads ?? []);
  }

  /** Who may write and after what; the head is remembered if it was read. */
  #takeState(leaders: readonly IKeyValue[], heads: readonly IKeyValue[] | undefined): WriteState {
    const leader = leaders[0];
    const { epoch } = decodeJson<LeaderRecord>(leader, NOBODY);
    if (heads !== undefined) this.#head = decodeJson<Head>(heads[0], EMPTY);
    return { epoch, fence: leader?.create_revision ?? '', head: this.#head };
  }

  #deletionOf({ id, index }: SnapshotManifest): readonly IRequestOp[] {
    return [
      { request_delete_range: { key: this.#keys.manifest(index) } },
      { request_delete_range: this.#keys.chunks(id) },
    ];
  }
}

interface FencedWrite {
  readonly compare?: readonly ICompare[];
  readonly success: IRequestOp[];
  /** What it means when this server leads and the rest of the comparison fails. */
  readonly otherwise?: string;
}

const NO_MANIFEST: SnapshotManifest = { id: '', index: 0, entryHash: '', chunkHashes: [], bytes: 0 };

/** @throws CorruptLogError */
function auditCursorOf(pair: IKeyValue | undefined): number | null {
  if (pair === undefined) return null;
  const index = Number(pair.value.toString());
  if (!Number.isSafeInteger(index)) throw new CorruptLogError('the key audit-cursor holds no index');
  return index;
}
