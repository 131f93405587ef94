/** The HTTP API as an application calls it, one method a route, answers as they come. */
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { HttpClient } from '../http/client.ts';

export interface ApiAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A grant as its application knows it. `name` without the alias. */
export interface Held {
  readonly name: string;
  readonly session: string;
  readonly token: number;
}

export interface StreamedLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

const SOON_MS = 5_000;
const POLL_MS = 10;
const KEEPALIVE_EVERY_MS = 1_000;

/** Waits until `isSo`; fails when it takes longer than `limitMs`. Gives the time it took. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  limitMs: number = SOON_MS,
): Promise<number> {
  const start = performance.now();
  while (!(await isSo())) {
    if (performance.now() - start > limitMs) throw new Error(`it did not happen within ${limitMs} ms`);
    await pause(POLL_MS);
  }
  return performance.now() - start;
}

export class LockApi {
  readonly client: HttpClient;
  readonly port: number;
  readonly alias: string;

  constructor(port: number, alias: string) {
    this.port = port;
    this.alias = alias;
    this.client = new HttpClient(port);
  }

  path(name: string, action = ''): string {
    return `/v1/locks/${encodeURIComponent(`${this.alias}/${name}`)}${action}`;
  }

  /** A session kept alive by calls, which outlives any test of a few seconds, unless told otherwise. */
  async open(fields: object = {}): Promise<string> {
    const body = { client: 'test', ttl_s: 30, keepalive: 'app', ...fields };
    const answer = await this.client.post('/v1/sessions', body);
    if (answer.status !== 200) throw new Error(`no session: ${JSON.stringify(answer.body)}`);
    return String(answer.body.session_id);
  }

  acquire(name: string, fields: object = {}, signal?: AbortSignal): Promise<ApiAnswer> {
    return this.client.json({
      method: 'POST',
      path: this.path(name, '/acquire'),
      body: fields,
      ...(signal !== undefined && { signal }),
    });
  }

  /** Acquires what must be granted. */
  async lock(name: string, fields: object = {}): Promise<Held> {
    const { status, body } = await this.acquire(name, fields);
    if (status !== 200) throw new Error(`${name} was not granted: ${JSON.stringify(body)}`);
    return { name, session: String(body.session_id), token: Number(body.token) };
  }

  release({ name, session, token }: Held): Promise<ApiAnswer> {
    return this.client.post(this.path(name, '/release'), { session_id: session, token });
  }

  renew({ name, session, token }: Held): Promise<ApiAnswer> {
    return this.client.post(this.path(name, '/renew'), { session_id: session, token });
  }

  async isHeld({ name, token }: Pick<Held, 'name' | 'token'>): Promise<boolean> {
    return (await this.client.get(this.path(name, `/held?token=${token}`))).body.held === true;
  }

  async get(name: string): Promise<Readonly<Record<string, unknown>>> {
    const { status, body } = await this.client.get(this.path(name));
    if (status !== 200) throw new Error(`${name} cannot be read: ${JSON.stringify(body)}`);
    return body;
  }

  async tokenOf(name: string): Promise<number | null> {
    const { token } = await this.get(name);
    return token === null ? null : Number(token);
  }

  keepalive(session: string): Promise<ApiAnswer> {
    return this.client.post(`/v1/sessions/${session}/keepalive`);
  }

  /** Calls keepalive every second until told to stop; gives the codes of refusals. */
  keepAlive(session: string): { readonly refused: string[]; stop(): void } {
    const refused: string[] = [];
    const ending = new AbortController();
    const { signal } = ending;
    const keep = async (): Promise<void> => {
      while (!signal.aborted) {
        const { status, body } = await this.keepalive(session);
        if (status !== 200) refused.push(String(body.code));
        await pause(KEEPALIVE_EVERY_MS, undefined, { signal }).catch(() => undefined);
      }
    };
    keep().catch((error: unknown) => {
      if (!signal.aborted) refused.push(String(error));
    });
    return { refused, stop: () => ending.abort() };
  }

  close(session: string): Promise<ApiAnswer> {
    return this.client.json({ method: 'DELETE', path: `/v1/sessions/${session}` });
  }

  /** Names in use in this namespace. */
  async names(): Promise<string[]> {
    const { body } = await this.client.get(
      `/v1/locks?prefix=${encodeURIComponent(`${this.alias}/`)}&limit=1000`,
    );
    return (body.locks as { name: string }[]).map(({ name }) => name);
  }

  async waiting(name: string, count: number): Promise<void> {
    await eventually(async () => (await this.get(name)).waiters === count);
  }

  /** One sample of /metrics, 0 when it has none. */
  async metric(name: string): Promise<number> {
    const { text } = await this.client.send({ method: 'GET', path: '/metrics' });
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
  }

  /** Acquires of this namespace that have ended so far, in whatever way: what was sent before has been worked off. */
  async acquiresEnded(): Promise<number> {
    const { text } = await this.client.send({ method: 'GET', path: '/metrics' });
    const prefix = `leasehold_acquire_seconds_count{namespace="${this.alias}"`;
    const counts = text.split('\n').filter((line) => line.startsWith(prefix));
    return counts.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** A figure of this namespace. */
  namespaceMetric(name: string): Promise<number> {
    return this.metric(`leasehold_${name}{namespace="${this.alias}"}`);
  }

  stream(session: string): Promise<EventStream> {
    return EventStream.open(this.client, session);
  }

  end(): void {
    this.client.close();
  }
}

/** An application's event stream: all lines so far, but for `alive`. */
export class EventStream {
  readonly lines: StreamedLine[] = [];
  /** Resolves when the other side has ended it, or it was closed. */
  readonly ended: Promise<void>;
  readonly #hangUp = new AbortController();

  private constructor(response: AsyncIterable<string>, hangUp: AbortController) {
    this.#hangUp = hangUp;
    this.ended = this.#read(response);
  }

  static async open(client: HttpClient, session: string): Promise<EventStream> {
    const hangUp = new AbortController();
    const response = await client.open({
      method: 'GET',
      path: `/v1/sessions/${session}/events`,
      signal: hangUp.signal,
    });
    if (response.statusCode !== 200) {
      response.resume();
      throw new Error(`no stream: ${response.statusCode}`);
    }
    response.on('error', () => undefined);
    return new EventStream(createInterface({ input: response }), hangUp);
  }

  count(event: string): number {
    return this.lines.filter((line) => line.event === event).length;
  }

  async has(event: string, limitMs?: number): Promise<StreamedLine> {
    await eventually(() => this.count(event) > 0, limitMs);
    return this.lines.find((line) => line.event === event) as StreamedLine;
  }

  close(): void {
    this.#hangUp.abort();
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    try {
      for await (const text of lines) {
        const line = JSON.parse(text) as StreamedLine;
        if (line.event !== 'alive') this.lines.push(line);
      }
    } catch {
      // The connection broke, or this side closed it: `ended` says so.
    }
  }
}
