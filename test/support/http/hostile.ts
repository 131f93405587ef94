/** Hostile requests as data: what is sent, byte by byte, and what must come back. */
import { isRecord } from './client.ts';

/** Stands for the id of an open session. */
export const SESSION = 'SESSION';
export const LOCK = '/v1/locks/payouts%2Fa';

export interface Hostile {
  readonly title: string;
  /** Method and target, as they stand in the request line. */
  readonly line: string;
  readonly version?: string;
  readonly headers?: readonly string[];
  /** Without Host. */
  readonly bare?: boolean;
  readonly body?: string | Buffer;
  readonly status: number;
  readonly code?: string;
  readonly field: string;
  readonly limit?: number | string;
  readonly reason?: RegExp;
}

export const JSON_HEADER = 'content-type: application/json';

type Told = Pick<Hostile, 'field' | 'limit' | 'reason'>;

/** A POST that is answered 400 INVALID. Anything but a string or bytes is sent as JSON. */
export function posted(title: string, path: string, body: unknown, told: Told): Hostile {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { title, line: `POST ${path}`, headers: [JSON_HEADER], body: text, status: 400, ...told };
}

/** POSTs to one path, with titles that say so. */
export function postedTo(place: string, path: string) {
  return (title: string, body: unknown, told: Told) => posted(`${place}: ${title}`, path, body, told);
}

/** What 400 INVALID must say. */
export function bad(field: string, reason?: RegExp) {
  return { status: 400, field, ...(reason !== undefined && { reason }) };
}

/** `sessionId` takes the place of `SESSION`. The connection is closed by the answer. */
export function bytesOf(hostile: Hostile, sessionId: string): Buffer {
  const { line, version = 'HTTP/1.1', headers = [], bare = false } = hostile;
  const body = Buffer.isBuffer(hostile.body)
    ? hostile.body
    : Buffer.from((hostile.body ?? '').replaceAll(SESSION, sessionId), 'utf8');
  const framed = headers.some((header) => /^(content-length|transfer-encoding):/.test(header));
  const lines = [
    `${line.replaceAll(SESSION, sessionId)} ${version}`,
    ...(bare ? [] : ['host: localhost']),
    ...headers,
    ...(hostile.body === undefined || framed ? [] : [`content-length: ${body.length}`]),
    'connection: close',
  ];
  const trailer = framed ? 'zz\r\n' : '';
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n${trailer}`, 'latin1'), body]);
}

/** Status and JSON body of an answer as it came over the socket. */
export function parse(reply: string): { status: number; body: Record<string, unknown> } {
  const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(reply)?.[1]);
  const text = Buffer.from(reply.slice(reply.indexOf('\r\n\r\n') + 4), 'latin1').toString('utf8');
  const body: unknown = JSON.parse(text);
  if (!isRecord(body)) throw new TypeError(`not a JSON object: ${reply}`);
  return { status, body };
}
