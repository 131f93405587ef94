/**
 * Applications of a soak: each turn is one short life with the lock API, chosen at random: orderly ones, and ones that hang
 * up, are silent, repeat calls or leave without a word. All waits and pauses are short, so that many turns are made.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type Answered, HttpClient } from '../../support/http/client.ts';
import type { Random } from '../../support/random.ts';
import { PERMITS } from './mixed.ts';

const ALIAS_DEFAULT = 'mixed';
const NAMES = 40;
const POOLS = 6;
const HOLD_MS_MAX = 60;
const WAIT_MS_MAX = 400;
const TURN_PAUSE_MS_MAX = 30;

export interface Acquired {
  readonly name: string;
  readonly session: string;
  readonly token: number;
  readonly request: string | undefined;
}

type Turn = (worker: SoakWorker) => Promise<void>;

/** What was done and answered: `turn`s, and answers as `acquire 200`. */
export type Counts = Map<string, number>;

export class SoakWorker {
  readonly #client: HttpClient;
  readonly #counts: Counts;
  readonly random: Random;
  readonly alias: string;
  #requests = 0;

  constructor(port: number, random: Random, counts: Counts, alias = ALIAS_DEFAULT) {
    this.alias = alias;
    this.#client = new HttpClient(port);
    this.random = random;
    this.#counts = counts;
  }

  async run(isOver: () => boolean): Promise<void> {
    const turns = Object.entries(TURNS);
    while (!isOver()) {
      const [name, turn] = this.random.pick(turns);
      await turn(this);
      this.count(`turn ${name}`);
      await pause(this.random.int(TURN_PAUSE_MS_MAX));
    }
    this.#client.close();
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  async call(what: string, method: string, path: string, body?: object, signal?: AbortSignal) {
    const { status, text }: Answered = await this.#client.send({
      method,
      path,
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
    });
    this.count(`${what} ${status}`);
    if (status >= 500 && !(status === 503 && text.includes('"UNAVAILABLE"')))
      throw new Error(`${what} was answered ${status}: ${text}`);
    return { status, body: JSON.parse(text) as Record<string, unknown> };
  }

  async open(keepalive = 'app'): Promise<string> {
    const { body } = await this.call('open', 'POST', '/v1/sessions', { client: 'soak', ttl_s: 5, keepalive });
    return String(body.session_id);
  }

  close(session: string) {
    return this.call('close', 'DELETE', `/v1/sessions/${session}`);
  }

  /** A random lock in a random mode. */
  wanted(): { readonly name: string; readonly fields: object; readonly request: string | undefined } {
    const kind = this.random.int(4);
    const name = kind === 3 ? `pool/${this.random.int(POOLS)}` : `lock-${this.random.int(NAMES)}`;
    const mode = ['exclusive', 'exclusive', 'shared', 'semaphore'][kind];
    const permits = kind === 3 ? { permits: this.random.between(1, PERMITS) } : {};
    const reentrant = this.random.chance(0.2);
    const request = reentrant || this.random.chance(0.3) ? `r-${++this.#requests}` : undefined;
    return {
      name,
      request,
      fields: {
        mode,
        ...permits,
        wait_ms: this.random.int(WAIT_MS_MAX),
        ...(request && { request, reentrant }),
      },
    };
  }

  path(name: string, action: string): string {
    return `/v1/locks/${encodeURIComponent(`${this.alias}/${name}`)}/${action}`;
  }

  async acquire(
    session: string | undefined,
    { name, fields, request } = this.wanted(),
  ): Promise<Acquired | null> {
    const owner = session === undefined ? { client: 'soak', ttl_s: 5 } : { session_id: session };
    const { status, body } = await this.call('acquire', 'POST', this.path(name, 'acquire'), {
      ...owner,
      ...fields,
    });
    if (status !== 200) return null;
    return { name, session: String(body.session_id), token: Number(body.token), request };
  }

  release({ name, session, token, request }: Acquired) {
    const body = { session_id: session, token, ...(request && { request }) };
    return this.call('release', 'POST', this.path(name, 'release'), body);
  }

  renew({ name, session, token }: Acquired) {
    return this.call('renew', 'POST', this.path(name, 'renew'), { session_id: session, token });
  }

  async hold(): Promise<void> {
    await pause(this.random.int(HOLD_MS_MAX));
  }

  /** The event stream of a session; the answer cuts it. */
  async stream(session: string): Promise<() => void> {
    const response = await this.#client.open({ method: 'GET', path: `/v1/sessions/${session}/events` });
    this.count(`events ${response.statusCode}`);
    response.on('error', () => undefined);
    response.resume();
    return () => void response.destroy();
  }
}

const TURNS: Readonly<Record<string, Turn>> = {
  async orderly(worker) {
    const session = await worker.open();
    for (let i = 0; i < 3; i++) {
      const held = await worker.acquire(session);
      await worker.hold();
      if (held !== null) await worker.release(held);
    }
    await worker.close(session);
  },
  async 'one lock'(worker) {
    const held = await worker.acquire(undefined);
    if (held === null) return;
    await worker.hold();
    await worker.renew(held);
    await worker.release(held);
  },
  async 'closes with locks held'(worker) {
    const session = await worker.open();
    await worker.acquire(session);
    await worker.acquire(session);
    await worker.call('keepalive', 'POST', `/v1/sessions/${session}/keepalive`);
    await worker.close(session);
    await worker.call('keepalive', 'POST', `/v1/sessions/${session}/keepalive`);
  },
  async 'leaves without a word'(worker) {
    await worker.acquire(await worker.open());
    await worker.acquire(undefined);
  },
  async 'hangs up'(worker) {
    const session = await worker.open();
    const { name, fields } = worker.wanted();
    const body = { session_id: session, ...fields, wait_ms: 5_000 };
    const signal = AbortSignal.timeout(worker.random.between(1, 100));
    await worker
      .call('acquire', 'POST', worker.path(name, 'acquire'), body, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
        worker.count('hang-up');
      });
    await worker.close(session);
  },
  async 'works with a stream, which breaks'(worker) {
    const session = await worker.open('both');
    const cut = await worker.stream(session);
    const held = await worker.acquire(session);
    await worker.hold();
    cut();
    if (held !== null) await worker.release(held);
  },
  async 'repeats calls'(worker) {
    const session = await worker.open();
    const wanted = worker.wanted();
    const held = await worker.acquire(session, wanted);
    if (wanted.request !== undefined) await worker.acquire(session, wanted);
    if (held !== null) {
      await worker.release(held);
      await worker.release(held);
    }
    await worker.close(session);
  },
  async looks(worker) {
    const { name } = worker.wanted();
    await worker.call('look', 'GET', worker.path(name, '').slice(0, -1));
    await worker.call('list', 'GET', `/v1/locks?prefix=${worker.alias}%2F&limit=20`);
    await worker.call('held', 'GET', worker.path(name, 'held?token=7'));
    const report = { token: 7, resource: 'soak' };
    await worker.call('stale report', 'POST', worker.path(name, 'stale-reports'), report);
    await worker.call('livez', 'GET', '/livez');
  },
};

export const TURN_NAMES = Object.keys(TURNS);
