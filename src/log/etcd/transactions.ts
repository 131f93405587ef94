/** The small parts of transactions: what is compared, what is put, what came back. */
import { Buffer } from 'node:buffer';
import type { ICompare, IKeyValue, IRequestOp } from 'etcd3/lib/rpc.js';
import { DeposedError, type Leadership } from '../port.ts';
import type { EtcdClient } from './client.ts';
import type { Keys } from './keys.ts';

export function kvsOf(
  response: { readonly response_range: { readonly kvs: IKeyValue[] } } | undefined,
): IKeyValue[] {
  return response?.response_range.kvs ?? [];
}

export function put(key: Buffer, value: Buffer): IRequestOp {
  return { request_put: { key, value } };
}

export function isAbsent(key: Buffer): ICompare {
  return { key, target: 'Create', result: 'Equal', create_revision: '0' };
}

export function hasValue(key: Buffer, value: Buffer | string): ICompare {
  return { key, target: 'Value', result: 'Equal', value: Buffer.from(value as string) };
}

/** Revisions of etcd count from 1; create revision 0 would mean that nobody leads. */
const FENCE = /^[1-9][0-9]*$/;

export function isFence(fence: string): boolean {
  return FENCE.test(fence);
}

/** The comparison that makes a write this leader's. @throws DeposedError for a leadership that no campaign gave. */
export function leads(key: Buffer, { fence }: Leadership): ICompare {
  if (!isFence(fence)) throw new DeposedError('write to the log');
  return { key, target: 'Create', result: 'Equal', create_revision: fence };
}

export interface FencedWrite {
  readonly compare?: readonly ICompare[];
  readonly success: IRequestOp[];
  /** What it means when this server leads and the rest of the comparison fails. */
  readonly otherwise?: string;
}

/**
 * A write of the leader: one transaction that compares the fence, and what else it is told to.
 * @throws DeposedError; RangeError when this server leads and the rest of the comparison fails.
 */
export async function writeFenced(
  client: EtcdClient,
  { leader }: Keys,
  write: FencedWrite & { readonly leadership: Leadership; readonly what: string },
): Promise<void> {
  const { leadership, what, compare = [], success, otherwise } = write;
  const { succeeded, responses } = await client.txn({
    compare: [leads(leader, leadership), ...compare],
    success,
    failure: [{ request_range: { key: leader } }],
  });
  if (succeeded) return;
  if (kvsOf(responses[0])[0]?.create_revision !== leadership.fence) throw new DeposedError(what);
  throw new RangeError(otherwise ?? `${what}: refused`);
}
