/**
 * Reads a history file: NDJSON, one HistoryEntry a line, as `History` and the audit exporter write it; the exporter also says what is
 * missing.
 * Strict, because a checker that guesses at what it reads proves nothing: an unknown event, a missing field, or one too many
 * is an error that names its line.
 */
import { z } from 'zod';
import { MODES } from '../api/config.ts';
import { type HistoryEntry, type LockEvent, REVOKE_CAUSES } from '../api/entry.ts';
import { issueLines, wordsOf } from '../api/issues.ts';

/** A line longer than this is refused unread: an entry holds at most 512 KiB of commands. */
export const LINE_LENGTH_MAX = 64 * 1024 * 1024;

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
  /** Whose log it is, in exports. */
  group: text.optional(),
  lineage: text.min(1),
  epoch: count,
  index: z.int().positive(),
  at: ms,
  wallMs: z.number(),
  eventHash: z.string().regex(/^([0-9a-f]{64})?$/, 'expected 64 hex digits, or nothing'),
  events: z.array(lockEvent),
}) satisfies z.ZodType<HistoryEntry>;

const gapLine = z.strictObject({
  type: z.literal('gap'),
  group: text,
  lineage: text.min(1),
  from: z.int().positive(),
  to: z.int().positive(),
});

/** One line of an export: an entry, or a stretch that was trimmed before it could be exported. `group`: if it says whose log it is. */
export type HistoryLine = { readonly group?: string } & (
  | { readonly type: 'entry'; readonly entry: HistoryEntry }
  | { readonly type: 'gap'; readonly lineage: string; readonly from: number; readonly to: number }
);

function jsonOf(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** One line of a history; `line` counts from 1. Throws HistoryFormatError. */
export function parseHistoryLine(text: string, line: number): HistoryEntry {
  const parsed = parseLine(text, line);
  if (parsed.type === 'entry') return parsed.entry;
  throw new HistoryFormatError(line, `entries ${parsed.from} to ${parsed.to} are missing`);
}

function parseLine(text: string, line: number): HistoryLine {
  checkLength(text, line);
  const json = jsonOf(text);
  if ('problem' in json) throw new HistoryFormatError(line, `not JSON (${json.problem})`);
  return lineOf(json.value, line);
}

function lineOf(value: unknown, line: number): HistoryLine {
  if (isGap(value)) {
    return parsedBy(gapLine, value, line);
  }
  const { group, ...entry } = parsedBy(historyEntry, value, line);
  return { type: 'entry', entry, ...(group !== undefined && { group }) };
}

function checkLength(text: string, line: number): void {
  if (text.length <= LINE_LENGTH_MAX) return;
  throw new HistoryFormatError(line, `longer than ${LINE_LENGTH_MAX} characters`);
}

function isGap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'gap';
}

function parsedBy<T>(schema: z.ZodType<T>, value: unknown, line: number): T {
  const parsed = schema.safeParse(value, { error: wordsOf });
  if (parsed.success) return parsed.data;
  const [first = 'malformed'] = issueLines(schema, parsed.error.issues, 'the entry');
  throw new HistoryFormatError(line, first);
}

/** All entries of a history, line by line; empty lines are skipped. Throws HistoryFormatError at the first bad line, or at a gap. */
export async function* readHistory(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<HistoryEntry> {
  let line = 0;
  for await (const text of lines) {
    line += 1;
    if (text.trim() !== '') yield parseHistoryLine(text, line);
  }
}

/**
 * An export, gaps included. A last line that is no JSON is taken for one that is still being written, or was when its writer died:
 * `onUnfinished` is told, and it is left out.
 */
export async function* readExport(
  lines: AsyncIterable<string> | Iterable<string>,
  onUnfinished: (line: number) => void,
): AsyncGenerator<HistoryLine> {
  let line = 0;
  let unfinished: HistoryFormatError | null = null;
  for await (const text of lines) {
    line += 1;
    if (text.trim() === '') continue;
    if (unfinished !== null) throw unfinished;
    checkLength(text, line);
    const json = jsonOf(text);
    if ('problem' in json) unfinished = new HistoryFormatError(line, `not JSON (${json.problem})`);
    else yield lineOf(json.value, line);
  }
  if (unfinished !== null) onUnfinished(unfinished.line);
}
