/**
 * Fences in etcd: a transaction that compares the stored token with the caller's and writes data and token together, for
 * the JSON gateway of the v3 API. Several keys may be under one fence.
 *
 * etcd compares values as bytes, so tokens are stored with a fixed number of digits; and a comparison of a missing key
 * with any value is false, so the first write has a branch of its own.
 */
import { TOKEN_MAX } from '../../api/limits.ts';
import {
  assertResource,
  assertToken,
  readToken,
  reported,
  type StaleReport,
  StaleTokenError,
} from './stale-token.ts';

const TOKEN_DIGITS = String(TOKEN_MAX).length;
const FENCE_PREFIX = 'leasehold/fence/';
const CALL_MS_MAX = 5_000;

export type EtcdOperation =
  | { readonly put: { readonly key: string; readonly value: string | Uint8Array } }
  | { readonly delete: { readonly key: string } };

export interface EtcdWrite {
  /** What the fence guards; its token is stored under `leasehold/fence/<resource>`, or `fenceKey`. */
  readonly resource: string;
  readonly token: number;
  /** Done together, or none of them. No key twice, and not the fence's. */
  readonly operations: readonly EtcdOperation[];
  readonly fenceKey?: string;
}

/** A TxnRequest in the JSON form of the gateway (POST /v3/kv/txn). */
export interface EtcdTransaction {
  readonly compare: readonly object[];
  readonly success: readonly object[];
  readonly failure: readonly object[];
}

interface EtcdAnswer {
  readonly succeeded?: boolean;
  readonly header?: { readonly revision?: string };
  readonly responses?: readonly {
    readonly response_range?: { readonly kvs?: readonly { readonly value?: string }[] };
    readonly response_txn?: EtcdAnswer;
  }[];
}

/**
 * The transaction: if the stored token is below token + 1, write; else if there is none, write; else read it. Sending it
 * again after an answer that was lost is harmless: an equal token passes, and a newer one in between refuses it.
 */
export function fencedTransaction({ resource, token, operations, fenceKey }: EtcdWrite): EtcdTransaction {
  assertToken(token);
  assertResource(resource);
  const key = toBase64(fenceKey ?? `${FENCE_PREFIX}${resource}`);
  const write = [
    { request_put: { key, value: toBase64(digits(token)) } },
    ...operations.map((operation) =>
      'put' in operation
        ? { request_put: { key: toBase64(operation.put.key), value: toBase64(operation.put.value) } }
        : { request_delete_range: { key: toBase64(operation.delete.key) } },
    ),
  ];
  const first = {
    compare: [{ key, target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
    success: write,
    failure: [{ request_range: { key } }],
  };
  return {
    compare: [{ key, target: 'VALUE', result: 'LESS', value: toBase64(digits(token + 1)) }],
    success: write,
    failure: [{ request_txn: first }],
  };
}

/** Reads the gateway's answer: the revision of the write. Throws StaleTokenError. */
export function fencedRevision({ resource, token }: EtcdWrite, answer: unknown): string {
  const outer = answer as EtcdAnswer;
  const revision = outer.header?.revision;
  if (revision === undefined) throw new TypeError(`not an answer of etcd: ${JSON.stringify(answer)}`);
  if (outer.succeeded === true) return revision;
  const inner = outer.responses?.[0]?.response_txn;
  if (inner?.succeeded === true) return revision;
  const stored = inner?.responses?.[0]?.response_range?.kvs?.[0]?.value;
  const text = stored === undefined ? undefined : fromBase64(stored);
  if (text?.length !== TOKEN_DIGITS)
    throw new TypeError(`the fence of ${resource} is not one of ours: ${text}`);
  throw new StaleTokenError({ token, current: readToken(text, `the fence of ${resource}`), resource });
}

export interface EtcdGateway {
  /** Of one member, without a path; for TLS and authentication give your own `fetch` or `headers`. */
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds, default 5,000. After it the outcome is open: send the same write again. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly report?: StaleReport;
}

/** Writes through the gateway. Resolves with the revision of the write. Throws StaleTokenError. */
export async function fencedWrite(gateway: EtcdGateway, write: EtcdWrite): Promise<string> {
  const { endpoint, headers = {}, timeoutMs = CALL_MS_MAX, fetch = globalThis.fetch, report } = gateway;
  const response = await fetch(`${endpoint.replace(/\/+$/, '')}/v3/kv/txn`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(fencedTransaction(write)),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${whatHappened(response.status)} (${response.status}): ${text}`);
  try {
    return fencedRevision(write, JSON.parse(text));
  } catch (error) {
    throw error instanceof StaleTokenError ? await reported(error, report) : error;
  }
}

/** A leader that changes or does not answer in time is told as 5xx, and may have written all the same. */
function whatHappened(status: number): string {
  return status < 500
    ? 'etcd refused the write'
    : 'etcd does not say whether it wrote: send the same write again';
}

/** `0000000000000042`: as bytes in the same order as the numbers. */
function digits(token: number): string {
  return String(token).padStart(TOKEN_DIGITS, '0');
}

function toBase64(value: string | Uint8Array): string {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

function fromBase64(text: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
}
