/**
 * Snapshots in etcd (rule L3). The leader opens one under its fence, and a new leader closes it; chunks compare only that it is open, so
 * that a standby can write them; the manifest is the leader's again. What a deposed leader or a slow standby still sends fails
 * inside etcd.
 */
import { Buffer } from 'node:buffer';
import type { IRequestOp } from 'etcd3/lib/rpc.js';
import { CorruptLogError, type Leadership, type OpenSnapshot, type SnapshotManifest } from '../port.ts';
import { checkChunk, checkManifest, checkSnapshotPlace, hashOf, keptSnapshots } from '../rules.ts';
import type { EtcdClient } from './client.ts';
import { type Claim, decodeEntryValue, decodeJson, encodeJson, type Keys } from './keys.ts';
import { hasValue, isAbsent, kvsOf, put, writeFenced } from './transactions.ts';

const NO_MANIFEST: SnapshotManifest = {
  id: '',
  index: 0,
  entryHash: '',
  eventHash: '',
  chunkHashes: [],
  bytes: 0,
};
const NO_CLAIM: Claim = { id: '', serverId: '' };

export class EtcdSnapshots {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  async open(leadership: Leadership, id: string): Promise<void> {
    const kept = new Set((await this.committed()).map((manifest) => manifest.id));
    const [chunkKeys] = await this.#client.read([{ ...this.#keys.chunks(), keys_only: true }]);
    const stale = new Set((chunkKeys ?? []).map(({ key }) => this.#keys.chunkId(key)));
    await writeFenced(this.#client, this.#keys, {
      leadership,
      what: 'open a snapshot',
      success: [
        put(this.#keys.openSnapshot, Buffer.from(id)),
        ...this.#forgetWriter(),
        // Chunks of snapshots that were given up.
        ...[...stale]
          .filter((other) => other !== id && !kept.has(other))
          .map((other) => ({ request_delete_range: this.#keys.chunks(other) })),
      ],
    });
  }

  async opened(): Promise<OpenSnapshot | null> {
    const { openSnapshot, snapshotClaim, snapshotOffer } = this.#keys;
    const [opens, claims, offers] = await this.#client.read([
      { key: openSnapshot },
      { key: snapshotClaim },
      { key: snapshotOffer },
    ]);
    const id = opens?.[0]?.value.toString();
    if (id === undefined) return null;
    const claim = decodeJson<Claim>(claims?.[0], NO_CLAIM);
    const offer = decodeJson<SnapshotManifest>(offers?.[0], NO_MANIFEST);
    return {
      id,
      serverId: claim.id === id ? claim.serverId : null,
      chunks: await this.#chunkCount(id),
      offer: offer.id === id ? offer : null,
    };
  }

  async claim(id: string, serverId: string): Promise<boolean> {
    const { openSnapshot, snapshotClaim } = this.#keys;
    const { succeeded, responses } = await this.#client.txn({
      compare: [hasValue(openSnapshot, id), isAbsent(snapshotClaim)],
      success: [put(snapshotClaim, encodeJson({ id, serverId }))],
      failure: [{ request_range: { key: openSnapshot } }, { request_range: { key: snapshotClaim } }],
    });
    if (succeeded) return true;
    const isOpen = kvsOf(responses[0])[0]?.value.toString() === id;
    const claim = decodeJson<Claim>(kvsOf(responses[1])[0], NO_CLAIM);
    // An earlier try of this very claim got through.
    return isOpen && claim.id === id && claim.serverId === serverId;
  }

  async writeChunk(id: string, number: number, chunk: Uint8Array): Promise<void> {
    checkChunk(number, chunk);
    const key = this.#keys.chunk(id, number);
    const { openSnapshot } = this.#keys;
    const { succeeded, responses } = await this.#client.txn({
      compare: [hasValue(openSnapshot, id), isAbsent(key)],
      success: [put(key, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))],
      failure: [{ request_range: { key: openSnapshot } }, { request_range: { key } }],
    });
    if (succeeded) return;
    if (kvsOf(responses[0])[0]?.value.toString() !== id) throw new RangeError(`snapshot ${id} is not open`);
    const stored = kvsOf(responses[1])[0]?.value;
    if (stored === undefined || hashOf(stored) !== hashOf(chunk)) {
      throw new RangeError(`chunk ${number} of snapshot ${id} is written already, with other bytes`);
    }
  }

  async offer(manifest: SnapshotManifest): Promise<void> {
    const { id } = manifest;
    checkManifest(manifest, await this.#chunkCount(id));
    const { succeeded } = await this.#client.txn({
      compare: [hasValue(this.#keys.openSnapshot, id)],
      success: [put(this.#keys.snapshotOffer, encodeJson(manifest))],
    });
    if (!succeeded) throw new RangeError(`snapshot ${id} is not open`);
  }

  async commit(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): Promise<void> {
    const { id, index, entryHash } = manifest;
    const before = await this.committed();
    if (before.some((same) => same.id === id && same.index === index)) {
      await writeFenced(this.#client, this.#keys, { leadership, what: 'commit a snapshot', success: [] });
      return;
    }
    const [entries] = await this.#client.read([{ key: this.#keys.entry(index) }]);
    const entry = entries?.[0];
    const stored = entry === undefined ? undefined : decodeEntryValue(entry).hash;
    checkSnapshotPlace({ index, hash: entryHash }, before[0]?.index ?? 0, stored);
    checkManifest(manifest, await this.#chunkCount(id));
    const all = [manifest, ...before];
    const kept = new Set(keptSnapshots(all, keepFrom));
    await writeFenced(this.#client, this.#keys, {
      leadership,
      what: 'commit a snapshot',
      compare: [hasValue(this.#keys.openSnapshot, id)],
      success: [
        put(this.#keys.manifest(index), encodeJson(manifest)),
        { request_delete_range: { key: this.#keys.openSnapshot } },
        ...this.#forgetWriter(),
        ...all.filter((one) => !kept.has(one)).flatMap((old) => this.#deletionOf(old)),
      ],
      otherwise: `snapshot ${id} is not open`,
    });
  }

  async committed(): Promise<readonly SnapshotManifest[]> {
    const [pairs] = await this.#client.read([this.#keys.manifests()]);
    // Those of the first version have no event hash.
    return (pairs ?? [])
      .map((pair) => ({ ...NO_MANIFEST, ...decodeJson<SnapshotManifest>(pair, NO_MANIFEST) }))
      .reverse();
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

  async #chunkCount(id: string): Promise<number> {
    const { responses } = await this.#client.txn({
      success: [{ request_range: { ...this.#keys.chunks(id), count_only: true } }],
    });
    return Number(responses[0]?.response_range.count ?? 0);
  }

  #deletionOf({ id, index }: SnapshotManifest): readonly IRequestOp[] {
    return [
      { request_delete_range: { key: this.#keys.manifest(index) } },
      { request_delete_range: this.#keys.chunks(id) },
    ];
  }

  #forgetWriter(): readonly IRequestOp[] {
    const { snapshotClaim, snapshotOffer } = this.#keys;
    return [snapshotClaim, snapshotOffer].map((key) => ({ request_delete_range: { key } }));
  }
}
