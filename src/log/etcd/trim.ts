/**
 * The beginning of the log: what has been trimmed, and how much is left (rules L4, L5). The key `start` says where the log begins and what
 * stood before, so that the chain of hashes and the sum of bytes can be checked without what is gone.
 */
import type { IKeyValue } from 'etcd3/lib/rpc.js';
import { CorruptLogError, type Leadership } from '../port.ts';
import { lastTrimmed } from '../rules.ts';
import type { EtcdClient } from './client.ts';
import {
  decodeEntryValue,
  decodeJson,
  EMPTY,
  encodeJson,
  FROM_THE_FIRST,
  type Head,
  type Keys,
  type Start,
} from './keys.ts';
import type { EtcdSnapshots } from './snapshot-store.ts';
import { hasValue, isAbsent, put, writeFenced } from './transactions.ts';

/** Entries deleted in one transaction: one range, so its cost is etcd's, not ours. */
const TRIM_ENTRIES_MAX = 1_000;
const WHAT = 'trim the log';

export class EtcdTrim {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #snapshots: EtcdSnapshots;

  constructor(client: EtcdClient, keys: Keys, snapshots: EtcdSnapshots) {
    this.#client = client;
    this.#keys = keys;
    this.#snapshots = snapshots;
  }

  /** After the last step etcd forgets what was deleted. True: there is more to do. */
  async step(leadership: Leadership, upTo: number): Promise<boolean> {
    const lastToGo = lastTrimmed(await this.#snapshots.committed(), upTo);
    const [starts] = await this.#client.read([{ key: this.#keys.start }]);
    const start = starts?.[0];
    const { firstIndex } = decodeJson<Start>(start, FROM_THE_FIRST);
    if (lastToGo < firstIndex) {
      await writeFenced(this.#client, this.#keys, { leadership, what: WHAT, success: [] });
      return false;
    }
    const last = Math.min(lastToGo, firstIndex + TRIM_ENTRIES_MAX - 1);
    const isDone = await this.#delete(leadership, start, { first: firstIndex, last });
    if (!isDone || last < lastToGo) return true;
    await this.#client.compact();
    return false;
  }

  async retainedBytes(aboveIndex: number): Promise<number> {
    const [starts, heads, entries] = await this.#client.read([
      { key: this.#keys.start },
      { key: this.#keys.head },
      { key: this.#keys.entry(aboveIndex) },
    ]);
    const start = decodeJson<Start>(starts?.[0], FROM_THE_FIRST);
    const { index, totalBytes } = decodeJson<Head>(heads?.[0], EMPTY);
    if (aboveIndex > index) return 0;
    const entry = entries?.[0];
    const below = entry === undefined ? start.trimmedBytes : decodeEntryValue(entry).totalBytes;
    return totalBytes - below;
  }

  /**
   * The entries from `first` to `last`. `start`: as the log begins now. False: it begins elsewhere by now, so an earlier try got through; one
   * that etcd carries out only after later steps must not set the beginning back (rule L2).
   */
  async #delete(
    leadership: Leadership,
    start: IKeyValue | undefined,
    { first, last }: { readonly first: number; readonly last: number },
  ): Promise<boolean> {
    const keys = this.#keys;
    const [pairs] = await this.#client.read([{ key: keys.entry(last) }]);
    const pair = pairs?.[0];
    if (pair === undefined) throw new CorruptLogError(`entry ${last} is missing`);
    const { hash, totalBytes } = decodeEntryValue(pair);
    const next: Start = { firstIndex: last + 1, firstPrevious: hash, trimmedBytes: totalBytes };
    try {
      await writeFenced(this.#client, keys, {
        leadership,
        what: WHAT,
        compare: [start === undefined ? isAbsent(keys.start) : hasValue(keys.start, start.value)],
        success: [
          put(keys.start, encodeJson(next)),
          { request_delete_range: { key: keys.entry(first), range_end: keys.entry(last + 1) } },
        ],
      });
      return true;
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }
}
