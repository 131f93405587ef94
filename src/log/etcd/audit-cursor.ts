/** How far the audit exporter has delivered (rule L4): one key, moved forward by whoever leads, or given up. */
import { Buffer } from 'node:buffer';
import type { IKeyValue } from 'etcd3/lib/rpc.js';
import { CorruptLogError, type Leadership } from '../port.ts';
import { checkAuditCursor } from '../rules.ts';
import type { EtcdClient } from './client.ts';
import type { Keys } from './keys.ts';
import { hasValue, isAbsent, put, writeFenced } from './transactions.ts';

export class EtcdAuditCursor {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  async get(): Promise<number | null> {
    return indexOf(await this.#read());
  }

  async set(leadership: Leadership, index: number | null): Promise<void> {
    const key = this.#keys.auditCursor;
    const before = await this.#read();
    const isValid = index === null || (Number.isSafeInteger(index) && index >= 0);
    const isForward = isValid && (index === null || index >= (indexOf(before) ?? 0));
    await writeFenced(this.#client, this.#keys, {
      leadership,
      what: 'move the audit cursor',
      compare: [before === undefined ? isAbsent(key) : hasValue(key, before.value)],
      success: !isForward
        ? []
        : [index === null ? { request_delete_range: { key } } : put(key, Buffer.from(String(index)))],
      otherwise: 'the audit cursor was moved meanwhile',
    });
    // Only now: that somebody else leads comes first.
    checkAuditCursor(indexOf(before), index);
  }

  async #read(): Promise<IKeyValue | undefined> {
    const [pairs] = await this.#client.read([{ key: this.#keys.auditCursor }]);
    return pairs?.[0];
  }
}

/** @throws CorruptLogError */
function indexOf(pair: IKeyValue | undefined): number | null {
  if (pair === undefined) return null;
  const index = Number(pair.value.toString());
  if (!Number.isSafeInteger(index)) throw new CorruptLogError('the key audit-cursor holds no index');
  return index;
}
