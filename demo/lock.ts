/**
 * The lock as a program without any library uses it: a few HTTP calls to localhost. The session lives by the keepalive
 * calls of this process, so it ends when the process dies or stands still.
 */
const CALL_MS_MAX = 5_000;

/** An answer other than 2xx: `{code, message, ...}`. */
export class Refusal extends Error {
  readonly code: string;
  readonly holder: { readonly owner: string; readonly token: number } | null;

  constructor(body: {
    readonly code: string;
    readonly message: string;
    readonly holder?: Refusal['holder'];
  }) {
    super(body.message);
    this.name = 'Refusal';
    this.code = body.code;
    this.holder = body.holder ?? null;
  }
}

interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly body?: object;
  readonly timeoutMs?: number;
}

async function call<Answer>({ method, url, body, timeoutMs = CALL_MS_MAX }: Call): Promise<Answer> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Refusal(answer as ConstructorParameters<typeof Refusal>[0]);
  return answer as Answer;
}

interface OpenedSession {
  readonly session_id: string;
  readonly keepalive_every_s: number;
}

interface Deadline {
  readonly deadline_monotonic_ns: string;
}

interface Granted extends Deadline {
  readonly token: number;
}

export interface LockOptions {
  /** Where the lock API is, without a path. */
  readonly url: string;
  /** `<alias>/<rest>`. */
  readonly name: string;
  readonly client: string;
  readonly ttlSeconds: number;
}

export class Lock {
  readonly #lockUrl: string;
  readonly #sessionUrl: string;
  readonly #sessionId: string;
  readonly #keepalives: NodeJS.Timeout;
  #token = 0;
  /** On the monotonic clock that all processes of a machine share; 0n = over for good. */
  #deadlineNs = 0n;

  private constructor({ url, name }: LockOptions, { session_id, keepalive_every_s }: OpenedSession) {
    this.#lockUrl = `${url}/v1/locks/${encodeURIComponent(name)}`;
    this.#sessionUrl = `${url}/v1/sessions/${session_id}`;
    this.#sessionId = session_id;
    this.#keepalives = setInterval(() => void this.#keepAlive(), keepalive_every_s * 1_000);
  }

  static async open(options: LockOptions): Promise<Lock> {
    const body = { client: options.client, ttl_s: options.ttlSeconds, keepalive: 'app' };
    const opened = await call<OpenedSession>({ method: 'POST', url: `${options.url}/v1/sessions`, body });
    return new Lock(options, opened);
  }

  /** Resolves with the token. Rejects with the Refusal HELD (`waitMs` 0) or WAIT_TIMEOUT. */
  async acquire(waitMs: number): Promise<number> {
    const granted = await call<Granted>({
      method: 'POST',
      url: `${this.#lockUrl}/acquire`,
      body: { session_id: this.#sessionId, wait_ms: waitMs, purpose: 'nightly payouts' },
      timeoutMs: waitMs + CALL_MS_MAX,
    });
    this.#token = granted.token;
    this.#deadlineNs = BigInt(granted.deadline_monotonic_ns);
    return granted.token;
  }

  /** By the clock alone. True is a fact about this moment only: the process may stand still right after it. */
  get isHeld(): boolean {
    if (process.hrtime.bigint() >= this.#deadlineNs) this.#deadlineNs = 0n;
    return this.#deadlineNs !== 0n;
  }

  /** The resource has refused our token: Leasehold counts and records it. */
  async reportStale(resource: string): Promise<void> {
    await call({
      method: 'POST',
      url: `${this.#lockUrl}/stale-reports`,
      body: { token: this.#token, resource },
    });
  }

  /** Gives the lock back. Resolves with `released`, or with the code that says why there was nothing to give back. */
  async release(): Promise<string> {
    try {
      const body = { session_id: this.#sessionId, token: this.#token };
      await call({ method: 'POST', url: `${this.#lockUrl}/release`, body });
      return 'released';
    } catch (error) {
      if (error instanceof Refusal) return error.code;
      throw error;
    }
  }

  /** Who has the lock now, and under which token. */
  async holder(): Promise<{ readonly owner: string; readonly token: number } | null> {
    const { holder } = await call<{ readonly holder: Refusal['holder'] }>({
      method: 'GET',
      url: this.#lockUrl,
    });
    return holder;
  }

  /** Ends the session, and with it all that it holds; one that has ended already is as good. */
  async close(): Promise<void> {
    clearInterval(this.#keepalives);
    try {
      await call({ method: 'DELETE', url: this.#sessionUrl });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }

  async #keepAlive(): Promise<void> {
    try {
      const answer = await call<Deadline>({ method: 'POST', url: `${this.#sessionUrl}/keepalive` });
      if (this.#deadlineNs !== 0n) this.#deadlineNs = BigInt(answer.deadline_monotonic_ns);
    } catch (error) {
      // Told that the session is over: at once. No answer: the deadline decides.
      if (error instanceof Refusal) this.#deadlineNs = 0n;
    }
  }
}
