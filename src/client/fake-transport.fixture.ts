/** The service as one client sees it, on virtual time: it answers, is silent, or is not there; a test may answer by itself. */
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import { Client } from './client.ts';
import { type Answer, type Call, type Json, type LineStream, NoAnswerError, type Transport } from './http.ts';
import type { ClientOptions } from './options.ts';
import { onAbort } from './runtime.ts';

const TTL_MS = 15_000;
export const LEASE_MS = 12_000;
export const KEEPALIVE_MS = 3_000;

interface OpenStream {
  readonly onLine: (line: Json) => void;
  end(): void;
}

export class FakeTransport implements Transport {
  readonly runtime: VirtualRuntime;
  readonly calls: (Call & { readonly atMs: number })[] = [];
  /** Calls that succeeded, with the time they were sent. */
  readonly answered: { readonly path: string; readonly atMs: number }[] = [];
  /** What it does with calls; streams that are open stay so. */
  mode: 'answers' | 'silent' | 'refused' = 'answers';
  /** Half of it before a call is worked on, half after. */
  roundTripMs = 0;
  /** Only calls whose path ends so take their time. */
  slowPathEnd = '';
  /** Answers instead of the built-in routes; null = they do. */
  answer: (call: Call) => Answer | null = () => null;
  /** Whether it knows sessions that were opened. */
  knowsSessions = true;
  readonly holders = new Map<string, number>();
  readonly #streams = new Set<OpenStream>();
  #lastToken = 100;
  #sessions = 0;

  constructor(runtime: VirtualRuntime) {
    this.runtime = runtime;
  }

  get streams(): number {
    return this.#streams.size;
  }

  sent(method: string, pathEnd: string): Call[] {
    return this.calls.filter((call) => call.method === method && call.path.endsWith(pathEnd));
  }

  async call(call: Call): Promise<Answer> {
    const atMs = this.runtime.nowMs;
    await this.#reach(call);
    const answer = this.answer(call) ?? this.#route(call);
    await this.#travel(call);
    if (answer.status === 200) this.answered.push({ path: call.path, atMs });
    return answer;
  }

  async stream(call: Call, onLine: (line: Json) => void): Promise<LineStream | Answer> {
    await this.#reach(call);
    const refused = this.answer(call) ?? (this.knowsSessions ? null : refusal(410, 'SESSION_EXPIRED'));
    if (refused !== null) return refused;
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const stream: OpenStream = {
      onLine,
      end: () => {
        this.#streams.delete(stream);
        end();
      },
    };
    this.#streams.add(stream);
    return { ended, close: () => stream.end() };
  }

  close(): void {
    this.breakStreams();
  }

  tell(line: Json): void {
    for (const { onLine } of [...this.#streams]) onLine(line);
  }

  breakStreams(): void {
    for (const stream of [...this.#streams]) stream.end();
  }

  /** The call arrives, or never is answered. */
  async #reach(call: Call): Promise<void> {
    this.calls.push({ ...call, atMs: this.runtime.nowMs });
    if (call.signals?.some(({ aborted }) => aborted)) throw new NoAnswerError('aborted', 'given up before');
    if (this.mode === 'refused') throw new NoAnswerError('refused', 'nothing listens there');
    if (this.mode === 'silent') await this.#wait(call, Number.MAX_SAFE_INTEGER);
    await this.#travel(call);
  }

  async #travel(call: Call): Promise<void> {
    if (this.roundTripMs > 0 && call.path.endsWith(this.slowPathEnd))
      await this.#wait(call, this.roundTripMs / 2);
  }

  #wait({ signals = [], limitMs }: Call, delayMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new NoAnswerError('late', 'too late'));
      this.runtime.timers.after(Math.min(delayMs, limitMs), delayMs < limitMs ? resolve : late);
      onAbort(signals, () => reject(new NoAnswerError('aborted', 'given up')));
    });
  }

  #route({ method, path, body = {} }: Call): Answer {
    if (path === '/v1/sessions') {
      this.#sessions++;
      const id = `s-${this.#sessions}`;
      return ok({ session_id: id, ttl_s: TTL_MS / 1_000, keepalive_every_s: KEEPALIVE_MS / 1_000 });
    }
    if (!this.knowsSessions) return refusal(410, 'SESSION_EXPIRED');
    if (method === 'DELETE') {
      this.holders.clear();
      return ok({ closed: true });
    }
    if (path.endsWith('/keepalive')) return ok({ deadline_in_ms: LEASE_MS });
    const name = decodeURIComponent(path.split('/')[3] ?? '');
    if (path.endsWith('/acquire')) return this.#acquire(name);
    const isHeld = this.holders.get(name) === body.token;
    if (!isHeld) return refusal(410, 'NOT_HELD');
    if (path.endsWith('/release')) this.holders.delete(name);
    return ok({ deadline_in_ms: LEASE_MS });
  }

  #acquire(name: string): Answer {
    if (this.holders.has(name)) return refusal(409, 'HELD');
    this.#lastToken++;
    this.holders.set(name, this.#lastToken);
    return ok({ acquired: true, token: this.#lastToken, deadline_in_ms: LEASE_MS });
  }
}

function ok(body: Json): Answer {
  return { status: 200, body };
}

export function refusal(status: number, code: string, details: Json = {}): Answer {
  return { status, body: { code, message: code.toLowerCase(), ...details } };
}

/** A client, its service and their time. */
export function bench(options: ClientOptions = {}) {
  const runtime = new VirtualRuntime();
  const service = new FakeTransport(runtime);
  return { runtime, service, client: new Client({ client: 'test', ...options }, runtime, service) };
}

export function isAcquire({ path }: Call): boolean {
  return path.endsWith('/acquire');
}

/** The first answers to `kind` of call are lost, after the service has done its work. */
export function losing(service: FakeTransport, pathEnd: string, count: number): void {
  const call = service.call.bind(service);
  let left = count;
  service.call = async (given): Promise<Answer> => {
    const answer = await call(given);
    if (!given.path.endsWith(pathEnd) || left === 0) return answer;
    left--;
    throw new NoAnswerError('broken', 'the connection broke');
  };
}

/** What `promise` rejects with. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}
