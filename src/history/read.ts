/**
 * Reads a history file: NDJSON, one HistoryEntry a line, as `History` and the audit exporter write it.
 * Strict, because a checker that guesses at what it reads proves nothing: an unknown event, a missing field, or one too many
 * is an error that names its line.
 */
import { z } from 'zod';
import { MODES } from '../api/config.ts';
import { type HistoryEntry, type LockEvent, REVOKE_CAUSES } from '../api/entry.ts';

/** A line longer than this is refused unread: an entry holds at most 512 KiB of commands. */
const LINE_LENGTH_MAX = 64 * 1024 * 1024;

export class HistoryFormatError extends Error {
  /** From 1. */
  readonly line: number;

  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
    this.name = 'HistoryFormatError';
    this.line = line;
  }
}

const count = z.int().nonnegative();
const ms = z.number().nonnegative();
const text = z.string();
const mode = z.enum(MODES);
const ofRequest = { name: text.min(1), session: count, key: text.min(1) };
const ofGrant = { name: text.min(1), session: count, token: z.int().positive() };
const refusalCode = z.enum([
  'INVALID',
  'FORBIDDEN',
  'QUOTA_EXCEEDED',
  'NAMESPACE_NOT_FOUND',
  'HELD',
  'WAIT_TIMEOUT',
  'QUARANTINED',
  'SESSION_EXPIRED',
  'QUEUE_FULL',
]);
const sessionEndCause = z.enum(['closed', 'stream', 'expired', 'threw']);
const revokeCause = z.enum(REVOKE_CAUSES);

const lockEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('granted'),
    ...ofRequest,
    token: z.int().positive(),
    mode,
    permits: count,
    owner: text,
    joined: z.boolean(),
    fromQueue: z.boolean(),
    waitedMs: ms,
  }),
  z.strictObject({
    type: z.literal('queued'),
    ...ofRequest,
    mode,
    permits: count,
    position: z.int().positive(),
    waitUntil: ms,
  }),
  z.strictObject({ type: z.literal('refused'), ...ofRequest, code: refusalCode, fromQueue: z.boolean() }),
  z.strictObject({
    type: z.literal('released'),
    ...ofGrant,
    cause: z.enum(['release', 'close']),
    key: text,
    remaining: count,
  }),
  z.strictObject({ type: z.literal('cancelled'), ...ofRequest, token: count, remaining: count }),
  z.strictObject({ type: z.literal('expired'), ...ofGrant, cause: sessionEndCause }),
  z.strictObject({ type: z.literal('revoking'), ...ofGrant, cause: revokeCause, until: ms }),
  z.strictObject({ type: z.literal('revoked'), ...ofGrant, cause: revokeCause, unsafe: z.boolean() }),
  z.strictObject({ type: z.literal('delayed'), name: text.min(1), until: ms }),
  z.strictObject({
    type: z.literal('sessionOpened'),
    session: count,
    client: text,
    identity: z.strictObject({ account: text, podUid: text }),
    ttlMs: ms,
  }),
  z.strictObject({ type: z.literal('sessionEnding'), session: count, cause: sessionEndCause }),
  z.strictObject({ type: z.literal('sessionEnded'), session: count }),
  z.strictObject({ type: z.literal('tookOver'), epoch: count, token: count, reason: text }),
  z.strictObject({ type: z.literal('configured'), version: count }),
  z.strictObject({ type: z.literal('broken'), ...ofGrant, now: z.boolean(), reason: text, by: text }),
  z.strictObject({ type: z.literal('quarantined'), name: text, reason: text }),
  z.strictObject({ type: z.literal('unquarantined'), name: text, by: text }),
  z.strictObject({
    type: z.literal('fencingRejected'),
    ...ofGrant,
    token: count,
    name: text,
    resource: text,
  }),
]) satisfies z.ZodType<LockEvent>;

const historyEntry = z.strictObject({
  lineage: text.min(1),
  epoch: count,
  index: z.int().positive(),
  at: ms,
  wallMs: z.number(),
  eventHash: z.string().regex(/^([0-9a-f]{64})?$/, 'expected 64 hex digits, or nothing'),
  events: z.array(lockEvent),
}) satisfies z.ZodType<HistoryEntry>;

function jsonOf(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** One line of a history; `line` counts from 1. Throws HistoryFormatError. */
export function parseHistoryLine(text: string, line: number): HistoryEntry {
  if (text.length > LINE_LENGTH_MAX) {
    throw new HistoryFormatError(line, `longer than ${LINE_LENGTH_MAX} characters`);
  }
  const json = jsonOf(text);
  if ('problem' in json) throw new HistoryFormatError(line, `not JSON (${json.problem})`);
  const parsed = historyEntry.safeParse(json.value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') ?? '';
  throw new HistoryFormatError(
    line,
    `${where === '' ? 'the entry' : where}: ${issue?.message ?? 'malformed'}`,
  );
}

/** All entries of a history, line by line; empty lines are skipped. Throws HistoryFormatError at the first bad line. */
export async function* readHistory(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<HistoryEntry> {
  let line = 0;
  for await (const text of lines) {
    line += 1;
    if (text.trim() !== '') yield parseHistoryLine(text, line);
  }
}
