/**
 * What is wrong with a client's request before it gets near the log: shapes, sizes, encodings. Whatever passes here can be
 * written into an entry; limits that a namespace sets are the core's business, since they need the state.
 */
import { MODES } from '../api/config.ts';
import {
  CLIENT_BYTES_MAX,
  KEY_BYTES_MAX,
  LIST_LIMIT_MAX,
  OWNER_BYTES_MAX,
  PURPOSE_BYTES_MAX,
  RESOURCE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../api/limits.ts';
import { bucketOf, nameProblem, utf8Length } from '../api/names.ts';
import type { ClientRequestBody } from '../api/wire.ts';

export interface Problem {
  readonly field: string;
  readonly message: string;
  readonly limit?: number;
}

/** Null when the request may go on. */
export function requestProblem(body: ClientRequestBody): Problem | null {
  switch (body.type) {
    case 'acquire':
      return (
        acting(body) ??
        name(body.name) ??
        key(body.key) ??
        text('owner', body.owner, OWNER_BYTES_MAX) ??
        text('purpose', body.purpose, PURPOSE_BYTES_MAX) ??
        number('wait_ms', body.waitMs, WAIT_MS_MAX) ??
        number('permits', body.permits, Number.MAX_SAFE_INTEGER) ??
        mode(body.mode) ??
        flag('reentrant', body.reentrant) ??
        bucket(body.name, body.bucket) ??
        number('mapVersion', body.mapVersion, Number.MAX_SAFE_INTEGER) ??
        acks(body.acks)
      );
    case 'release':
      return (
        acting(body) ??
        name(body.name) ??
        number('token', body.token, Number.MAX_SAFE_INTEGER) ??
        text('key', body.key, KEY_BYTES_MAX) ??
        acks(body.acks)
      );
    case 'cancel':
      return acting(body) ?? key(body.key) ?? acks(body.acks);
    case 'closeSession':
      return acting(body) ?? flag('clean', body.clean);
    case 'attachWithSecret':
      return acting(body) ?? text('secret', body.secret, 256);
    case 'open':
      return (
        text('client', body.client, CLIENT_BYTES_MAX) ??
        number('ttl_s', body.ttlMs, Number.MAX_SAFE_INTEGER) ??
        number('max_hold_ms', body.maxHoldMs, Number.MAX_SAFE_INTEGER) ??
        text('secretHash', body.secretHash, 64)
      );
    case 'reportStale':
      return (
        number('session', body.session, Number.MAX_SAFE_INTEGER) ??
        name(body.name) ??
        number('token', body.token, Number.MAX_SAFE_INTEGER) ??
        text('resource', body.resource, RESOURCE_BYTES_MAX)
      );
    case 'getLock':
      return name(body.name);
    case 'listLocks':
      return (
        text('prefix', body.prefix, 4 * 512) ??
        text('after', body.after, 4 * 512) ??
        number('limit', body.limit, LIST_LIMIT_MAX)
      );
    default:
      return { field: 'type', message: `unknown request ${String((body as { type?: unknown }).type)}` };
  }
}

function acting({ session, attach }: { readonly session: number; readonly attach: number }): Problem | null {
  return (
    number('session', session, Number.MAX_SAFE_INTEGER) ?? number('attach', attach, Number.MAX_SAFE_INTEGER)
  );
}

function name(value: string): Problem | null {
  const message = typeof value === 'string' ? nameProblem(value) : 'the name is not a text';
  return message === null ? null : { field: 'name', message };
}

function key(value: string): Problem | null {
  return value === '' ? { field: 'key', message: 'the key is empty' } : text('key', value, KEY_BYTES_MAX);
}

function text(field: string, value: string, bytesMax: number): Problem | null {
  if (typeof value !== 'string') return { field, message: `${field} is not a text` };
  if (!value.isWellFormed()) return { field, message: `${field} is not well-formed Unicode` };
  const isShort = 3 * value.length <= bytesMax || (value.length <= bytesMax && utf8Length(value) <= bytesMax);
  return isShort
    ? null
    : { field, message: `${field} is longer than ${bytesMax} bytes of UTF-8`, limit: bytesMax };
}

function number(field: string, value: number, max: number): Problem | null {
  if (Number.isSafeInteger(value) && value >= 0 && value <= max) return null;
  return { field, message: `${field} must be a whole number from 0 to ${max}`, limit: max };
}

function flag(field: string, value: boolean): Problem | null {
  return typeof value === 'boolean' ? null : { field, message: `${field} must be true or false` };
}

function mode(value: string): Problem | null {
  const isKnown = (MODES as readonly string[]).includes(value);
  return isKnown ? null : { field: 'mode', message: `mode must be one of ${MODES.join(', ')}` };
}

/** A wrong bucket means a client that computes names another way than we do: better refused than split in two. */
function bucket(lockName: string, value: number): Problem | null {
  const expected = bucketOf(lockName);
  return value === expected ? null : { field: 'bucket', message: `the bucket of this name is ${expected}` };
}

function acks(keys: readonly string[]): Problem | null {
  if (!Array.isArray(keys)) return { field: 'acks', message: 'acks is not a list' };
  if (keys.length > UNSETTLED_OUTCOMES_MAX) {
    const message = `more than ${UNSETTLED_OUTCOMES_MAX} keys are acknowledged at once`;
    return { field: 'acks', message, limit: UNSETTLED_OUTCOMES_MAX };
  }
  for (const ack of keys) {
    const problem = text('acks', ack, KEY_BYTES_MAX);
    if (problem !== null) return problem;
  }
  return null;
}
