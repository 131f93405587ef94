/**
 * Where things lie in etcd, and how they are written. Everything of one lock group is below one prefix; numbers in keys have a
 * fixed width, so that etcd's order of bytes is the order of indexes.
 */
import { Buffer } from 'node:buffer';
import type { IKeyValue } from 'etcd3/lib/rpc.js';
import {
  type Birth,
  CorruptLogError,
  type LeaderRecord,
  type LogPosition,
  type RollBackProof,
  type SnapshotManifest,
  type StoredEntry,
} from '../port.ts';
import { hashOf } from '../rules.ts';

/** Digits of 2^53. */
const NUMBER_WIDTH = 16;
const HASH_BYTES = 32;
const TOTAL_BYTES = 8;
const NO_HASH = Buffer.alloc(HASH_BYTES);

const padded = (value: number): string => String(value).padStart(NUMBER_WIDTH, '0');

export class Keys {
  readonly lineage: Buffer;
  /** Bound to the leader's etcd lease; its create revision is the fence (rule L1). */
  readonly leader: Buffer;
  readonly epoch: Buffer;
  readonly head: Buffer;
  /** Where the kept part of the log begins; absent until the first trim. */
  readonly start: Buffer;
  /** Who should lead next, as the one before wished. */
  readonly successor: Buffer;
  /** Id of the snapshot being written. */
  readonly openSnapshot: Buffer;
  /** What holds for this life of the log from its first moment on; made with the first one. */
  readonly birth: Buffer;
  /** Proof of a roll-back; while it is there nobody may serve the log. */
  readonly halted: Buffer;
  /** Index of the last entry that the audit exporter has delivered. */
  readonly auditCursor: Buffer;
  /** Which standby writes it, and what it has written once that is all. Both mean nothing unless they name the open one. */
  readonly snapshotClaim: Buffer;
  readonly snapshotOffer: Buffer;
  readonly #prefix: string;

  /** `prefix` ends in a slash. */
  constructor(prefix: string) {
    this.#prefix = prefix;
    this.lineage = this.#key('lineage');
    this.leader = this.#key('leader');
    this.epoch = this.#key('epoch');
    this.head = this.#key('head');
    this.start = this.#key('start');
    this.successor = this.#key('successor');
    this.openSnapshot = this.#key('snapshot/open');
    this.birth = this.#key('birth');
    this.halted = this.#key('halted');
    this.auditCursor = this.#key('audit-cursor');
    this.snapshotClaim = this.#key('snapshot/claim');
    this.snapshotOffer = this.#key('snapshot/offer');
  }

  entry(index: number): Buffer {
    return this.#key(`log/${padded(index)}`);
  }

  manifest(index: number): Buffer {
    return this.#key(`snapshot/manifest/${padded(index)}`);
  }

  manifests(): { readonly key: Buffer; readonly range_end: Buffer } {
    return { key: this.#key('snapshot/manifest/'), range_end: this.#key('snapshot/manifest0') };
  }

  chunk(id: string, number: number): Buffer {
    return this.#key(`snapshot/chunk/${id}/${padded(number)}`);
  }

  /** All chunks of one snapshot, or of all. */
  chunks(id?: string): { readonly key: Buffer; readonly range_end: Buffer } {
    const folder = id === undefined ? 'snapshot/chunk' : `snapshot/chunk/${id}`;
    // '0' is the character after '/'.
    return { key: this.#key(`${folder}/`), range_end: this.#key(`${folder}0`) };
  }

  chunkId(key: Uint8Array): string {
    return Buffer.from(key).toString().slice(`${this.#prefix}snapshot/chunk/`.length).split('/')[0] ?? '';
  }

  /** All keys but those named: as ranges, in order. */
  allBut(...kept: readonly Buffer[]): readonly { readonly key: Buffer; readonly range_end: Buffer }[] {
    const places = [...kept].sort(Buffer.compare);
    // '0' is the character after the slash at the end of the prefix.
    const end = Buffer.from(`${this.#prefix.slice(0, -1)}0`);
    const from = [this.#key(''), ...places.map((key) => Buffer.concat([key, Buffer.of(0)]))];
    return from.map((key, at) => ({ key, range_end: places[at] ?? end }));
  }

  #key(name: string): Buffer {
    return Buffer.from(this.#prefix + name);
  }
}

/** The head as stored: a position, and how many bytes of entries were ever written up to it. */
export interface Head extends LogPosition {
  readonly totalBytes: number;
}

/** Where the kept part begins, as stored. */
export interface Start {
  readonly firstIndex: number;
  readonly firstPrevious: string;
  /** Bytes of the entries that are gone. */
  readonly trimmedBytes: number;
}

/** Which standby writes the open snapshot, as stored. */
export interface Claim {
  readonly id: string;
  readonly serverId: string;
}

type StoredRecord = Head | Start | LeaderRecord | SnapshotManifest | Claim | Birth | RollBackProof | null;

export const EMPTY: Head = { index: 0, hash: '', totalBytes: 0 };
export const FROM_THE_FIRST: Start = { firstIndex: 1, firstPrevious: '', trimmedBytes: 0 };

export function encodeJson(value: StoredRecord): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** @throws CorruptLogError naming the key. */
export function decodeJson<T extends StoredRecord>(pair: IKeyValue | undefined, absent: T): T {
  if (pair === undefined) return absent;
  try {
    return JSON.parse(pair.value.toString()) as T;
  } catch (error) {
    throw new CorruptLogError(`the key ${pair.key.toString()} holds no record of a lock group`, {
      cause: error,
    });
  }
}

/** Previous hash, total bytes, entry. The hash of the entry is not stored: readers compute it, and the next entry names it. */
export function encodeEntryValue(entry: StoredEntry, totalBytes: number): Buffer {
  const value = Buffer.allocUnsafe(HASH_BYTES + TOTAL_BYTES + entry.bytes.byteLength);
  if (entry.previous === '') NO_HASH.copy(value);
  else value.write(entry.previous, 'hex');
  value.writeBigUInt64BE(BigInt(totalBytes), HASH_BYTES);
  value.set(entry.bytes, HASH_BYTES + TOTAL_BYTES);
  return value;
}

/** @throws CorruptLogError when the value is too short to be an entry. */
export function decodeEntryValue(pair: IKeyValue): StoredEntry & { readonly totalBytes: number } {
  const { key, value } = pair;
  if (value.byteLength < HASH_BYTES + TOTAL_BYTES) {
    throw new CorruptLogError(`the key ${key.toString()} holds no entry`);
  }
  const previous = value.subarray(0, HASH_BYTES);
  const bytes = new Uint8Array(value.subarray(HASH_BYTES + TOTAL_BYTES));
  return {
    index: Number(key.subarray(-NUMBER_WIDTH).toString()),
    bytes,
    hash: hashOf(bytes),
    previous: previous.equals(NO_HASH) ? '' : previous.toString('hex'),
    totalBytes: Number(value.readBigUInt64BE(HASH_BYTES)),
  };
}
