/** The small parts of transactions: what is compared, what is put, what came back. */
import { Buffer } from 'node:buffer';
import type { ICompare, IKeyValue, IRequestOp } from 'etcd3/lib/rpc.js';
import { DeposedError, type Leadership } from '../port.ts';

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
