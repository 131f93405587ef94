/**
 * The steps of the log on etcd. Every write is one transaction that compares the fence (the create revision of the key
 * `leader`), so a deposed leader's write fails inside etcd, whatever it believes (rule L1). What a failed comparison means is read in
 * the else branch of the very same transaction, never by a read before or after it (rule L2).
 */
import { Buffer } from 'node:buffer';
import type { IKeyValue } from 'etcd3/lib/rpc.js';
import type { Clock, Random } from '../../platform/runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import { PAGE_ENTRIES_MIN } from '../limits.ts';
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
} from '../port.ts';
import { checkChain, checkPageEnd, judgeAppend, type WriteState } from '../rules.ts';
import type { NewLife, StoreArguments, StoreMethod, StoreReply } from '../store.ts';
import { EtcdAuditCursor } from './audit-cursor.ts';
import type { EtcdClient } from './client.ts';
import { EtcdIntegrity } from './integrity.ts';
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
import { Patience } from './patience.ts';
import { EtcdSnapshots } from './snapshot-store.ts';
import { EtcdSpace } from './space.ts';
import { hasValue, isAbsent, isFence, kvsOf, leads, put } from './transactions.ts';
import { EtcdTrim } from './trim.ts';

/** The store's steps, each answered later. */
export type AsyncStore = {
  [M in Exclude<StoreMethod, 'campaign'>]: (...args: StoreArguments<M>) => Promise<StoreReply<M>>;
};

const SEAL_KEY_BYTES = 32;
/** Entries in one answer; at their largest 64 MiB. */
const PAGE_ENTRIES = PAGE_ENTRIES_MIN;

const NOBODY: LeaderRecord = { serverId: '', epoch: 0 };

export class EtcdStore implements AsyncStore {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  /** The head as this handle saw it last: what the next append compares with. */
  #head: Head = EMPTY;
  readonly #patience: Patience;
  readonly #snapshots: EtcdSnapshots;
  readonly #trim: EtcdTrim;
  readonly #auditCursor: EtcdAuditCursor;
  readonly #space: EtcdSpace;
  readonly #integrity: EtcdIntegrity;

  constructor(client: EtcdClient, keys: Keys, quotaBytes: number, clock: Clock) {
    this.#client = client;
    this.#keys = keys;
    this.#patience = new Patience(clock);
    this.#snapshots = new EtcdSnapshots(client, keys);
    this.#trim = new EtcdTrim(client, keys, this.#snapshots);
    this.#auditCursor = new EtcdAuditCursor(client, keys);
    this.#space = new EtcdSpace(client, quotaBytes);
    this.#integrity = new EtcdIntegrity(client);
  }

  /** Random id of this life of the log; the first who opens it makes it. Sees to it that there is a seal key too. */
  async lineage(random: Random, bytes: number): Promise<string> {
    const made = random.hex(bytes);
    const birth: Birth = { sealKey: random.hex(SEAL_KEY_BYTES), tokenFloor: 0, quietMs: 0 };
    await this.#make(this.#keys.birth, encodeJson(birth));
    return (await this.#make(this.#keys.lineage, Buffer.from(made))).toString();
  }

  /** What is there, or now made. */
  async #make(key: Buffer, value: Buffer): Promise<Buffer> {
    // Read first: an etcd that is out of space refuses every transaction that could put something, and must still be opened.
    const [known] = await this.#client.read([{ key }]);
    if (known?.[0] !== undefined) return known[0].value;
    const { succeeded, responses } = await this.#client.txn({
      compare: [isAbsent(key)],
      success: [put(key, value)],
      failure: [{ request_range: { key } }],
    });
    if (succeeded) return value;
    const [stored] = kvsOf(responses[0]);
    if (stored === undefined) throw new CorruptLogError(`the key ${key.toString()} of the log is missing`);
    return stored.value;
  }

  async birth(): Promise<Birth> {
    const [pairs] = await this.#client.read([{ key: this.#keys.birth }]);
    const birth = decodeJson<Birth | null>(pairs?.[0], null);
    if (birth === null) throw new CorruptLogError('the key birth of the log is missing');
    return birth;
  }

  async standing(): Promise<Standing> {
    const { lineage, head, halted } = this.#keys;
    const [lineages, heads, proofs] = await this.#client.read([
      { key: lineage },
      { key: head },
      { key: halted },
    ]);
    const { index, hash } = decodeJson<Head>(heads?.[0], EMPTY);
    return {
      lineage: lineages?.[0]?.value.toString() ?? '',
      head: { index, hash },
      halted: decodeJson<RollBackProof | null>(proofs?.[0], null),
    };
  }

  async halt(proof: RollBackProof): Promise<void> {
    const { lineage, halted, leader } = this.#keys;
    await this.#client.txn({
      compare: [hasValue(lineage, proof.lineage), isAbsent(halted)],
      success: [put(halted, encodeJson(proof)), { request_delete_range: { key: leader } }],
    });
  }

  /** One transaction: whoever reads sees either life whole. The epoch and the seal key go on. */
  async beginLineage(from: string, { lineage, tokenFloor, quietMs }: NewLife): Promise<void> {
    const keys = this.#keys;
    const { sealKey } = await this.birth();
    const { succeeded, responses } = await this.#client.txn({
      compare: [hasValue(keys.lineage, from)],
      success: [
        put(keys.lineage, Buffer.from(lineage)),
        put(keys.birth, encodeJson({ sealKey, tokenFloor, quietMs })),
        ...keys
          .allBut(keys.lineage, keys.birth, keys.epoch)
          .map((range) => ({ request_delete_range: range })),
      ],
      failure: [{ request_range: { key: keys.lineage } }],
    });
    if (succeeded) this.#head = EMPTY;
    else if (kvsOf(responses[0])[0]?.value.toString() !== lineage) throw new ReplacedError();
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
    const request = {
      compare: [
        leads(leader, leadership),
        this.#head.index === 0 ? isAbsent(head) : hasValue(head, encodeJson(this.#head)),
      ],
      success: [
        put(this.#keys.entry(entry.index), encodeEntryValue(entry, totalBytes)),
        put(head, encodeJson(next)),
      ],
      failure: [{ request_range: { key: leader } }, { request_range: { key: head } }],
    };
    const { succeeded, responses } = await this.#client.txn(request, this.#patience.attempt());
    this.#patience.settled();
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

  async entryHash(index: number): Promise<string | null> {
    const [starts, pairs] = await this.#client.read([
      { key: this.#keys.start },
      { key: this.#keys.entry(index) },
    ]);
    const { firstIndex } = decodeJson<Start>(starts?.[0], FROM_THE_FIRST);
    if (index < firstIndex) throw new TrimmedError(firstIndex - 1);
    const pair = pairs?.[0];
    return pair === undefined ? null : decodeEntryValue(pair).hash;
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

  retainedBytes(aboveIndex: number): Promise<number> {
    return this.#trim.retainedBytes(aboveIndex);
  }

  openSnapshot(leadership: Leadership, id: string): Promise<void> {
    return this.#snapshots.open(leadership, id);
  }

  openedSnapshot(): Promise<OpenSnapshot | null> {
    return this.#snapshots.opened();
  }

  claimSnapshot(id: string, serverId: string): Promise<boolean> {
    return this.#snapshots.claim(id, serverId);
  }

  writeChunk(id: string, number: number, chunk: Uint8Array): Promise<void> {
    return this.#snapshots.writeChunk(id, number, chunk);
  }

  offerSnapshot(manifest: SnapshotManifest): Promise<void> {
    return this.#snapshots.offer(manifest);
  }

  commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): Promise<void> {
    return this.#snapshots.commit(leadership, manifest, keepFrom);
  }

  snapshots(): Promise<readonly SnapshotManifest[]> {
    return this.#snapshots.committed();
  }

  readChunk(manifest: SnapshotManifest, chunk: number): Promise<Uint8Array> {
    return this.#snapshots.readChunk(manifest, chunk);
  }

  trimStep(leadership: Leadership, upTo: number): Promise<boolean> {
    return this.#trim.step(leadership, upTo);
  }

  auditCursor(): Promise<number | null> {
    return this.#auditCursor.get();
  }

  setAuditCursor(leadership: Leadership, index: number | null): Promise<void> {
    return this.#auditCursor.set(leadership, index);
  }

  compareMembers(): Promise<readonly string[] | null> {
    return this.#integrity.compare();
  }

  space(): Promise<LogSpace | null> {
    return this.#space.space();
  }

  reclaim(): Promise<void> {
    return this.#space.reclaim();
  }

  async resign(leadership: Leadership, successor?: string): Promise<void> {
    const { leader, successor: key } = this.#keys;
    const compare = [leads(leader, leadership)];
    const goodbye = { request_delete_range: { key: leader } };
    if (successor !== undefined) {
      // Without space etcd refuses the wish and all that comes with it; then the resignation goes alone.
      const wish = put(key, Buffer.from(successor));
      const isDone = await this.#client.txn({ compare, success: [goodbye, wish] }).catch(() => null);
      if (isDone !== null) return;
    }
    await this.#client.txn({ compare, success: [goodbye] });
  }

  async #writeState(): Promise<WriteState> {
    const [leaders, heads] = await this.#client.read([{ key: this.#keys.leader }, { key: this.#keys.head }]);
    return this.#takeState(leaders ?? [], heads ?? []);
  }

  /** Who may write and after what; the head is remembered. */
  #takeState(leaders: readonly IKeyValue[], heads: readonly IKeyValue[]): WriteState {
    const leader = leaders[0];
    const { epoch } = decodeJson<LeaderRecord>(leader, NOBODY);
    this.#head = decodeJson<Head>(heads[0], EMPTY);
    return { epoch, fence: leader?.create_revision ?? '', head: this.#head };
  }
}
