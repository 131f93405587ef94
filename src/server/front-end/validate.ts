/**
 * What is wrong with a client's request before it gets near the log: shapes, sizes, encodings. Whatever passes here can be
 * written into an entry; limits that a namespace sets are the core's business, since they need the state.
 */
import { MODES } from '../../api/config.ts';
import {
  CLIENT_BYTES_MAX,
  KEY_BYTES_MAX,
  LIST_LIMIT_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  RESOURCE_BYTES_MAX,
  UNSETTLED_OUTCOMES_MAX,
  WAIT_MS_MAX,
} from '../../api/limits.ts';
import { bucketOf, nameProblem } from '../../api/names.ts';
import { type TextBounds, textProblem } from '../../api/text.ts';
import type { ClientRequestBody } from '../../api/wire.ts';

export interface Problem {
  readonly field: string;
  readonly message: string;
  readonly limit?: number;
}

const OWNER = upTo(OWNER_BYTES_MAX);
const PURPOSE = upTo(PURPOSE_BYTES_MAX);
const KEY = upTo(KEY_BYTES_MAX);
const CLIENT = upTo(CLIENT_BYTES_MAX);
const RESOURCE = upTo(RESOURCE_BYTES_MAX);
const SECRET = upTo(256);
/** 64 hex digits; whether they are is the core's to say. */
const HASH = upTo(64);
/** Where a list begins need not be a name, but no longer text can be of use. */
const PLACE = upTo(4 * NAME_BYTES_MAX);

function upTo(max: number): TextBounds {
  return { min: 0, max };
}

/** Null when the request may go on. */
export function requestProblem(body: ClientRequestBody): Problem | null {
  switch (body.type) {
    case 'acquire':
      return (
        acting(body) ??
        name(body.name) ??
        key(body.key) ??
        text('owner', body.owner, OWNER) ??
        text('purpose', body.purpose, PURPOSE) ??
        number('wait_ms', body.waitMs, WAIT_MS_MAX) ??
        number('permits', body.permits, PERMITS_MAX) ??
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
        text('key', body.key, KEY) ??
        acks(body.acks)
      );
    case 'cancel':
      return acting(body) ?? key(body.key) ?? acks(body.acks);
    case 'closeSession':
      return acting(body) ?? flag('clean', body.clean);
    case 'attachWithSecret':
      return acting(body) ?? text('secret', body.secret, SECRET);
    case 'open':
      return (
        text('client', body.client, CLIENT) ??
        number('ttl_s', body.ttlMs, Number.MAX_SAFE_INTEGER) ??
        number('max_hold_ms', body.maxHoldMs, Number.MAX_SAFE_INTEGER) ??
        text('secretHash', body.secretHash, HASH)
      );
    case 'reportStale':
      return (
        number('session', body.session, Number.MAX_SAFE_INTEGER) ??
        name(body.name) ??
        number('token', body.token, Number.MAX_SAFE_INTEGER) ??
        text('resource', body.resource, RESOURCE)
      );
    case 'getLock':
      return name(body.name);
    case 'listLocks':
      return (
        text('prefix', body.prefix, PLACE) ??
        text('after', body.after, PLACE) ??
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
  return value === '' ? { field: 'key', message: 'the key is empty' } : text('key', value, KEY);
}

function text(field: string, value: string, bounds: TextBounds): Problem | null {
  if (typeof value !== 'string') return { field, message: `${field} is not a text` };
  const problem = textProblem(value, bounds);
  return problem === null ? null : { field, message: `${field} ${problem}`, limit: bounds.max };
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
    const problem = text('acks', ack, KEY);
    if (problem !== null) return problem;
  }
  return null;
}
