/**
 * What a line of the state file may say. The file can come back torn, from another program or from a hand that meant harm; what is in it would be
 * sent to the group and counted with, so a line that cannot be one of ours is left out: the session it kept ends by itself.
 */
import * as z from 'zod';
import { MODES } from '../api/config.ts';
import { PERMITS_MAX, TOKEN_MAX, TTL_MS_MAX } from '../api/limits.ts';
import type { RecordKey, SidecarRecord } from './state-store.ts';

export type StateLine =
  | { readonly format: unknown }
  | { readonly put: SidecarRecord }
  | { readonly remove: RecordKey }
  | { readonly removeEnvelope: string };

/** Far more than a session is ever attached, and far enough from what can be sent. */
const ATTACH_MAX = 2 ** 52;

const id = z.string().min(1);
const number = z.int().min(0);
const place = { envelope: id, alias: id };
const body = {
  name: z.string(),
  mode: z.enum(MODES),
  permits: z.int().min(1).max(PERMITS_MAX),
  owner: z.string(),
  reentrant: z.boolean(),
};
const acquired = { ...place, ...body, token: z.int().min(0).max(TOKEN_MAX), key: z.string() };
const ttlMs = z.int().min(1).max(TTL_MS_MAX);

const record = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('envelope'),
    id,
    client: z.string(),
    ttlMs,
    isTtlChosen: z.boolean(),
    keepalive: z.enum(['stream', 'app', 'both']),
    maxHoldMs: number,
    isSingle: z.boolean(),
  }),
  z.object({
    type: z.literal('session'),
    ...place,
    session: number,
    attach: z.int().min(0).max(ATTACH_MAX),
    secret: z.string(),
    ttlMs,
  }),
  z.object({ type: z.literal('grant'), ...acquired, request: z.string().nullable() }),
  z.object({
    type: z.literal('settled'),
    how: z.enum(['released', 'lost']),
    ...acquired,
    request: z.string(),
  }),
  z.object({ type: z.literal('lost'), ...place, name: z.string(), token: number, key: z.string() }),
  z.object({
    type: z.literal('mark'),
    alias: id,
    mark: z.object({ lineage: z.string(), epoch: number, index: number, hash: z.string(), seal: z.string() }),
  }),
]);

const line = z.union([
  z.object({ put: record }),
  z.object({ remove: z.object({ type: z.string() }) }),
  z.object({ removeEnvelope: z.string() }),
]);

/** Null: it is none of ours. What it has besides is kept. */
export function readLine(text: string): StateLine | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value === 'object' && value !== null && 'format' in value) return value;
  return line.safeParse(value).success ? (value as StateLine) : null;
}
