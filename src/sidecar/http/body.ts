/** Reads a request's JSON body: bounded in size, strictly UTF-8, an object or nothing. */
import { isUtf8 } from 'node:buffer';
import express, { type Request, type Response } from 'express';
import { LeaseholdError } from '../../api/errors.ts';
import { HTTP_BODY_BYTES_MAX } from '../../api/limits.ts';
import { clipped, invalid } from './problems.ts';

const JSON_OR_DEFAULT =
  /^(application\/([a-z0-9.-]+\+)?json|application\/x-www-form-urlencoded|text\/plain)$/;

const read = express.raw({ type: () => true, limit: HTTP_BODY_BYTES_MAX, inflate: false });

/** The body's object; `{}` when there is none. Throws INVALID or BODY_TOO_LARGE. */
export async function readBody(request: Request, response: Response): Promise<object> {
  const bytes = await readBytes(request, response);
  if (bytes.length === 0) return {};
  checkContentType(request.headers['content-type']);
  if (!isUtf8(bytes)) throw invalidBody('must be valid UTF-8');
  return parseObject(bytes.toString('utf8'));
}

function readBytes(request: Request, response: Response): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    read(request, response, (failure?: unknown) => {
      if (failure !== undefined) reject(bodyError(failure, request));
      else resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
    });
  });
}

function bodyError(failure: unknown, request: Request): unknown {
  const type = failure instanceof Error && 'type' in failure ? failure.type : undefined;
  switch (type) {
    case 'entity.too.large':
      return new LeaseholdError('BODY_TOO_LARGE', `The body may have at most ${HTTP_BODY_BYTES_MAX} bytes.`, {
        field: 'body',
        limit: HTTP_BODY_BYTES_MAX,
      });
    case 'encoding.unsupported':
      return invalid({
        field: 'content-encoding',
        limit: 'identity',
        reason: `bodies are sent as they are, not as ${clipped(String(request.headers['content-encoding']))}`,
      });
    case 'request.aborted':
    case 'request.size.invalid':
      return invalidBody('ended before it was complete');
    default:
      return failure;
  }
}

/**
 * What clients send without being told a type (curl -d, fetch of a string) is taken for JSON too: it has to parse as such
 * anyway, and a browser's form is refused by its Origin (guard.ts). Any other type was meant as something else.
 */
function checkContentType(header: string | undefined): void {
  if (header === undefined || header.trim() === '') return;
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  const charset = parameters.map((parameter) => parameter.trim()).find((text) => text.startsWith('charset='));
  const isUtf8Charset = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  if (JSON_OR_DEFAULT.test(type.trim()) && isUtf8Charset) return;
  throw invalid({
    field: 'content-type',
    limit: 'application/json',
    reason: `must be application/json in UTF-8, not ${clipped(header)}`,
  });
}

function parseObject(text: string): object {
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw invalidBody('must be a JSON object, {...}');
}

function parseJson(text: string): unknown {
  const withoutMark = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (withoutMark.trim() === '') return {};
  try {
    return JSON.parse(withoutMark);
  } catch (error) {
    throw invalidBody(`is not JSON: ${error instanceof Error ? clipped(error.message) : 'malformed'}`);
  }
}

function invalidBody(reason: string): LeaseholdError {
  return invalid({ field: 'body', limit: 'a JSON object', reason });
}
