/** Sends hostile requests to a running service and judges each answer: below 500, well-formed, and in time. */
import fc from 'fast-check';
import { HttpClient } from '../../support/http/client.ts';
import { type HostileRequest, hostileRequest, type Known, operationsOf } from './hostile-requests.ts';

const BATCH = 200;
const AT_ONCE = 24;
const ANSWER_MS_MAX = 20_000;
/** Older ones are left to end by themselves. */
const KNOWN_MAX = 60;

export interface HostileRun {
  readonly port: number;
  readonly seed: number;
  readonly requests: number;
}

export interface HostileOutcome {
  /** Answers by route, then by status. */
  readonly statuses: ReadonlyMap<string, ReadonlyMap<number, number>>;
  /** 503 UNAVAILABLE: not wrong, but to be looked at. */
  readonly unavailable: number;
  readonly sent: number;
}

export class HostileClient {
  readonly #client: HttpClient;
  readonly #sessions: string[] = [];
  readonly #grants: Known['grants'][number][] = [];
  readonly #statuses = new Map<string, Map<number, number>>();
  #unavailable = 0;
  #sent = 0;

  constructor(port: number) {
    this.#client = new HttpClient(port);
  }

  async run({ seed, requests }: Omit<HostileRun, 'port'>): Promise<HostileOutcome> {
    const operations = operationsOf((await this.#client.get('/v1/openapi.json')).body);
    for (let batch = 0; this.#sent < requests; batch++) {
      const known = { sessions: [...this.#sessions], grants: [...this.#grants] };
      const queue = fc.sample(hostileRequest(operations, known), { seed: seed + batch, numRuns: BATCH });
      const sending = Array.from({ length: AT_ONCE }, async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop())
          await this.#send(next, seed + batch);
      });
      await Promise.all(sending);
    }
    return { statuses: this.#statuses, unavailable: this.#unavailable, sent: this.#sent };
  }

  /** Closes what is known to be open. */
  async closeSessions(): Promise<void> {
    for (const id of this.#sessions.splice(0))
      await this.#client.json({ method: 'DELETE', path: `/v1/sessions/${id}` });
  }

  end(): void {
    this.#client.close();
  }

  async #send(request: HostileRequest, seed: number): Promise<void> {
    this.#sent++;
    const shown = () =>
      `seed ${seed}: ${JSON.stringify({ ...request, body: String(request.body).slice(0, 300) })}`;
    const { method, path, headers, body } = request;
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const response = await this.#client
      .open({
        method,
        path,
        headers,
        body: body instanceof Uint8Array ? Buffer.from(body) : (body ?? undefined),
        signal,
      })
      .catch((error) => {
        throw new Error(`no answer to ${shown()}`, { cause: error });
      });
    const status = response.statusCode ?? 0;
    this.#count(request.route, status);
    if (status === 200 && response.headers['content-type'] === 'application/x-ndjson') {
      response.destroy();
      return;
    }
    let text = '';
    for await (const chunk of response) text += String(chunk);
    if (status >= 500 && !(status === 503 && text.includes('"UNAVAILABLE"')))
      throw new Error(`${status} ${text} to ${shown()}`);
    if (status === 503) this.#unavailable++;
    if (status < 200 || (status >= 300 && status < 400)) throw new Error(`${status} to ${shown()}`);
    const isJson = response.headers['content-type']?.startsWith('application/json') === true;
    if (isJson && method !== 'HEAD')
      this.#learn(JSON.parse(text) as Record<string, unknown>, status, request.lock, shown);
  }

  #learn(answer: Record<string, unknown>, status: number, name: string | null, shown: () => string): void {
    if (status >= 400 && (typeof answer.code !== 'string' || typeof answer.message !== 'string'))
      throw new Error(`an answer without code and message to ${shown()}`);
    const { session_id: session, token } = answer;
    if (status !== 200 || typeof session !== 'string') return;
    this.#sessions.push(session);
    if (typeof token === 'number' && name !== null) this.#grants.push({ name, session, token });
    if (this.#sessions.length > KNOWN_MAX) this.#sessions.splice(0, this.#sessions.length - KNOWN_MAX);
    if (this.#grants.length > KNOWN_MAX) this.#grants.splice(0, this.#grants.length - KNOWN_MAX);
  }

  #count(route: string, status: number): void {
    const ofRoute = this.#statuses.get(route) ?? new Map<number, number>();
    this.#statuses.set(route, ofRoute);
    ofRoute.set(status, (ofRoute.get(status) ?? 0) + 1);
  }
}

/** Routes that were never answered with success, or never with a refusal: then the run says little about them. */
export function onesided({ statuses }: HostileOutcome): readonly string[] {
  return [...statuses].flatMap(([route, counts]) => {
    const all = [...counts.keys()];
    const isTwoSided = all.some((status) => status < 400) && all.some((status) => status >= 400);
    return isTwoSided ? [] : [`${route} ${JSON.stringify(Object.fromEntries(counts))}`];
  });
}
