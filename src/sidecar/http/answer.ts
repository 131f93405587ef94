/** Writes answers: small JSON bodies of known length, refusals always as `{code, message, ...details}`. */
import type { ServerResponse } from 'node:http';
import { type ErrorDetails, LeaseholdError } from '../../api/errors.ts';
import type { HolderView } from '../../api/wire.ts';
import type { Logger, Random } from '../../platform/runtime.ts';
import { holderBody } from './views.ts';

export interface TextAnswer {
  readonly contentType: string;
  readonly text: string;
}

const MS_PER_SECOND = 1_000;
/** What a refused caller waits at least when the service names no time. */
const RETRY_AFTER_MS_DEFAULT = 1_000;

/** Does nothing when the connection is gone or an answer was begun. */
export function sendText(
  response: ServerResponse,
  status: number,
  answer: TextAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.text),
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(answer.text);
}

export function jsonAnswer(body: object): TextAnswer {
  return { contentType: 'application/json', text: JSON.stringify(body, bigintAsString) };
}

/** 64-bit values are strings in JSON: doubles would round them. */
function bigintAsString(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** `context`: what the route adds to its refusals, for example `acquired: false`. */
export function sendError(
  response: ServerResponse,
  error: LeaseholdError,
  random: Random,
  context: Readonly<Record<string, unknown>>,
): void {
  const headers: Record<string, string> = {};
  const body = errorBody(error, context);
  if (error.status === 429 || error.status === 503) {
    const retryAfterMs = jittered(error.details.retry_after_ms, random);
    body.retry_after_ms = retryAfterMs;
    headers['retry-after'] = String(Math.ceil(retryAfterMs / MS_PER_SECOND));
  }
  if (error.code === 'METHOD_NOT_ALLOWED') headers.allow = String(error.details.allow);
  if (error.code === 'BODY_TOO_LARGE') headers.connection = 'close';
  sendText(response, error.status, jsonAnswer(body), headers);
}

/** `code` and `message` stand first, and win over details of the same name. */
function errorBody(
  { code, message, details }: { code: string; message: string; details: ErrorDetails },
  context: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const body: Record<string, unknown> = { ...context, code, message };
  for (const [key, value] of Object.entries(details)) {
    if (key === 'code' || key === 'message') continue;
    body[key] = isHolder(value) ? holderBody(value) : value;
  }
  return body;
}

function isHolder(value: unknown): value is HolderView {
  return typeof value === 'object' && value !== null && 'heldForMs' in value && 'session' in value;
}

/** Between one and two times the wait: callers refused together must not come back together. */
function jittered(waitMs: unknown, random: Random): number {
  const base = typeof waitMs === 'number' && waitMs > 0 ? waitMs : RETRY_AFTER_MS_DEFAULT;
  return Math.round(base * (1 + random.fraction()));
}

/**
 * Whatever was thrown, as an error of the table. What nobody foresaw is logged and not told, since its text may name
 * inner things; it becomes UNAVAILABLE, as all that a caller can do is to repeat the request later.
 */
export function asLeaseholdError(thrown: unknown, logger: Logger, route: string): LeaseholdError {
  if (thrown instanceof LeaseholdError) return thrown;
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  logger.error({ error, route }, 'unexpected error in an HTTP route');
  return new LeaseholdError('UNAVAILABLE', 'The request failed for an internal reason, which was logged.');
}
