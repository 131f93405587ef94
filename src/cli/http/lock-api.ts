/**
 * The HTTP API as the commands need it, over the transport of the client library: one method for each route, and no sessions of
 * its own. A refusal rejects with LeaseholdError, a call without an answer with UnavailableError.
 */
import { ERRORS } from '../../api/errors.ts';
import { API_URL_DEFAULT } from '../../api/limits.ts';
import { errorOf } from '../../client/errors.ts';
import { type Answer, type Call, HttpTransport, NoAnswerError } from '../../client/http.ts';
import { onAbort, systemRuntime } from '../../client/runtime.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import type { Acquired, EventLine, Lock, LockPage, OpenedSession, Renewed } from './answers.ts';

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

type Route = Pick<Call, 'method' | 'path'> & { readonly body?: object };

export class LockApi {
  readonly url: string;
  readonly #transport: HttpTransport;

  /** Throws UsageError when `url` is none. */
  constructor(url: string) {
    const origin = originOf(url);
    this.url = origin;
    this.#transport = new HttpTransport(new URL(origin), systemRuntime);
  }

  open(body: OpenBody, options?: CallOptions): Promise<OpenedSession> {
    return this.#json({ method: 'POST', path: '/v1/sessions', body }, options);
  }

  /** Releases everything that the session holds. */
  async close(sessionId: string, options?: CallOptions): Promise<void> {
    await this.#json({ method: 'DELETE', path: sessionPath(sessionId) }, options);
  }

  acquire(name: string, body: AcquireBody, options?: CallOptions): Promise<Acquired> {
    const timeoutMs = body.wait_ms + WAIT_GRACE_MS;
    return this.#json({ method: 'POST', path: lockPath(name, '/acquire'), body }, { timeoutMs, ...options });
  }

  renew(name: string, body: GrantBody, options?: CallOptions): Promise<Renewed> {
    return this.#json({ method: 'POST', path: lockPath(name, '/renew'), body }, options);
  }

  release(name: string, body: GrantBody, options?: CallOptions): Promise<{ readonly already?: true }> {
    return this.#json({ method: 'POST', path: lockPath(name, '/release'), body }, options);
  }

  lock(name: string): Promise<Lock> {
    return this.#json({ method: 'GET', path: lockPath(name) });
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

  /** Follows the session's event stream; resolves when it is over, whoever ended it. */
  async follow(sessionId: string, signal: AbortSignal, onLine: (line: EventLine) => void): Promise<void> {
    const call = { method: 'GET', path: `${sessionPath(sessionId)}/events`, limitMs: ANSWER_MS_MAX } as const;
    const stream = await this.#transport
      .stream({ ...call, signals: [signal] }, (line) => onLine(line as unknown as EventLine))
      .catch((error: unknown) => this.#unreachable(error));
    if ('status' in stream) throw refusalOf(stream);
    const forget = onAbort([signal], () => stream.close());
    await stream.ended;
    forget();
  }

  async #json<T>(
    { body, ...route }: Route,
    { signal, timeoutMs = ANSWER_MS_MAX }: CallOptions = {},
  ): Promise<T> {
    const call: Call = {
      ...route,
      limitMs: timeoutMs,
      ...(body !== undefined && { body: { ...body } }),
      ...(signal !== undefined && { signals: [signal] }),
    };
    const answer = await this.#transport.call(call).catch((error: unknown) => this.#unreachable(error));
    if (answer.status !== 200) throw refusalOf(answer);
    return answer.body as T;
  }

  #unreachable(error: unknown): never {
    if (!(error instanceof NoAnswerError)) throw error;
    const isTimeout = error.kind === 'late' || error.kind === 'aborted';
    const why = isTimeout
      ? 'gave no answer in time'
      : `cannot be reached (${messageOf(error.cause ?? error)})`;
    const help = 'start one with "leasehold dev -f ...", or say where it is with --url or LEASEHOLD_URL';
    throw new UnavailableError(`the lock API at ${this.url} ${why}; ${help}`, { cause: error });
  }
}

function originOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed?.protocol !== 'http:') {
    throw new UsageError(`${url} is no URL of a lock API; it looks like ${API_URL_DEFAULT}`);
  }
  return parsed.origin;
}

function lockPath(name: string, action = ''): string {
  return `/v1/locks/${encodeURIComponent(name)}${action}`;
}

function sessionPath(sessionId: string): string {
  return `/v1/sessions/${encodeURIComponent(sessionId)}`;
}

/** Something that is no lock API at all may answer anything. */
function refusalOf(answer: Answer): Error {
  if (Object.hasOwn(ERRORS, String(answer.body.code))) return errorOf(answer);
  return new UnavailableError(`what answers there with status ${answer.status} is no lock API`);
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
