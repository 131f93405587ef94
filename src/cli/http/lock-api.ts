/**
 * The client of the HTTP API that the commands need, on Node's own `http`: an acquire may be answered a day later, which `fetch` does
 * not wait for. A refusal rejects with LeaseholdError, a call without an answer with UnavailableError.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ERRORS, type ErrorCode, type ErrorDetails, LeaseholdError } from '../../api/errors.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import type { Acquired, Deadline, EventLine, Lock, LockPage, OpenedSession, Renewed } from './answers.ts';

/** Calls that do not wait for a lock are answered within a beat of the log; this is far more. */
const ANSWER_MS_MAX = 10_000;
/** Beyond its `wait_ms` an acquire gets an answer within seconds (rule S11). */
const WAIT_GRACE_MS = 15_000;

export interface OpenBody {
  readonly client: string;
  readonly keepalive: 'app';
  readonly ttl_s?: number;
}

export interface AcquireBody {
  readonly session_id?: string;
  readonly client?: string;
  readonly ttl_s?: number;
  readonly owner?: string;
  /** Left out: exclusive. */
  readonly mode?: 'shared' | 'semaphore';
  readonly permits?: number;
  readonly wait_ms: number;
  readonly purpose?: string;
  readonly request?: string;
}

/** Names one grant. */
export interface GrantBody {
  readonly session_id: string;
  readonly token: number;
}

export interface CallOptions {
  /** Hangs up. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: object;
}

export class LockApi {
  readonly url: string;
  readonly #origin: URL;
  readonly #agent = new Agent({ keepAlive: true });

  /** Throws UsageError when `url` is none. */
  constructor(url: string) {
    this.#origin = originOf(url);
    this.url = this.#origin.origin;
  }

  open(body: OpenBody, options?: CallOptions): Promise<OpenedSession> {
    return this.#json({ method: 'POST', path: '/v1/sessions', body, ...options });
  }

  /** Releases everything that the session holds. */
  async close(sessionId: string, options?: CallOptions): Promise<void> {
    await this.#json({ method: 'DELETE', path: sessionPath(sessionId), ...options });
  }

  acquire(name: string, body: AcquireBody, options?: CallOptions): Promise<Acquired> {
    const timeoutMs = body.wait_ms + WAIT_GRACE_MS;
    return this.#json({ method: 'POST', path: lockPath(name, '/acquire'), body, timeoutMs, ...options });
  }

  renew(name: string, body: GrantBody, options?: CallOptions): Promise<Renewed> {
    return this.#json({ method: 'POST', path: lockPath(name, '/renew'), body, ...options });
  }

  release(name: string, body: GrantBody, options?: CallOptions): Promise<{ readonly already?: true }> {
    return this.#json({ method: 'POST', path: lockPath(name, '/release'), body, ...options });
  }

  lock(name: string): Promise<Lock> {
    return this.#json({ method: 'GET', path: lockPath(name) });
  }

  keepalive(sessionId: string, options?: CallOptions): Promise<Deadline> {
    return this.#json({ method: 'POST', path: `${sessionPath(sessionId)}/keepalive`, ...options });
  }

  /** All locks whose full names start with `prefix`, page by page. */
  async *locks(prefix: string): AsyncGenerator<Lock> {
    let next: string | undefined;
    do {
      const query = new URLSearchParams({ prefix, ...(next !== undefined && { continue: next }) });
      const page: LockPage = await this.#json({ method: 'GET', path: `/v1/locks?${query}` });
      yield* page.locks;
      next = page.continue;
    } while (next !== undefined);
  }

  /** Lines of the session's event stream, until the other side ends it (or breaks off: UnavailableError) or `signal` fires. */
  async *events(sessionId: string, signal: AbortSignal): AsyncGenerator<EventLine> {
    const response = await this.#send({ method: 'GET', path: `${sessionPath(sessionId)}/events`, signal });
    if (response.statusCode !== 200) throw refusalOf(response, await text(response));
    try {
      for await (const line of createInterface({ input: response })) yield JSON.parse(line) as EventLine;
    } catch (error) {
      throw new UnavailableError('the event stream broke off', { cause: error });
    }
  }

  async #json<Answer>(call: Call): Promise<Answer> {
    const response = await this.#send({ timeoutMs: ANSWER_MS_MAX, ...call });
    const body = await text(response).catch((error: unknown) => {
      throw this.#unreachable(error);
    });
    if (response.statusCode !== 200) throw refusalOf(response, body);
    return JSON.parse(body) as Answer;
  }

  #send({ method, path, body, signal, timeoutMs }: Call): Promise<IncomingMessage> {
    const signals = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)];
    return new Promise((resolve, reject) => {
      const sending = request(new URL(path, this.#origin), {
        method,
        agent: this.#agent,
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        signal: AbortSignal.any(signals.filter((one) => one !== undefined)),
      });
      sending.once('response', resolve);
      // Also after the answer began: then its reader is told, and nobody listens here any more.
      sending.on('error', (error) => reject(this.#unreachable(error)));
      sending.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  #unreachable(cause: unknown): UnavailableError {
    const isTimeout = cause instanceof Error && cause.name === 'AbortError';
    const why = isTimeout ? 'gave no answer in time' : `cannot be reached (${messageOf(cause)})`;
    const help = 'start one with "leasehold dev -f ...", or say where it is with --url or LEASEHOLD_URL';
    return new UnavailableError(`the lock API at ${this.url} ${why}; ${help}`, { cause });
  }
}

function originOf(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed?.protocol !== 'http:') {
    throw new UsageError(`${url} is no URL of a lock API; it looks like http://127.0.0.1:7070`);
  }
  return parsed;
}

function lockPath(name: string, action = ''): string {
  return `/v1/locks/${encodeURIComponent(name)}${action}`;
}

function sessionPath(sessionId: string): string {
  return `/v1/sessions/${encodeURIComponent(sessionId)}`;
}

/** Something that is no lock API at all may answer anything. */
function refusalOf({ statusCode }: IncomingMessage, body: string): Error {
  const parsed = jsonOf(body);
  if (parsed !== null && Object.hasOwn(ERRORS, String(parsed.code))) {
    const { code, message, ...details } = parsed;
    return new LeaseholdError(code as ErrorCode, String(message), details as ErrorDetails);
  }
  return new UnavailableError(`what answers there with status ${statusCode} is no lock API`);
}

function jsonOf(body: string): Readonly<Record<string, unknown>> | null {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' ? (parsed as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
