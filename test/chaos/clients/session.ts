/**
 * A session of one application over HTTP, as a careful program would write it: it calls keepalive every second, believes the deadlines it is
 * told on its own clock and no longer, and repeats with the same key what was not answered.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiAnswer, LockApi } from '../../support/dev/lock-api.ts';
import { fromMonotonicNs, runMs } from '../run-time.ts';
import type { KnownGrant, Ledger } from './ledger.ts';

const KEEPALIVE_MS = 1_000;
const CALL_MS_MAX = 3_000;
const AGAIN_MS = 150;
/** Share of the TTL that a sidecar holds back (rule A1), and its least. */
const marginOf = (ttlMs: number): number => Math.max(500, ttlMs / 5);

export class AppSession {
  readonly id: string;
  readonly #api: LockApi;
  readonly #ledger: Ledger;
  readonly #ttlMs: number;
  readonly #ending = new AbortController();
  readonly #held = new Set<KnownGrant>();
  /** Until then the last answer lets it believe. */
  #deadline: number;
  isLost = false;

  private constructor(id: string, api: LockApi, ledger: Ledger, ttlMs: number) {
    this.id = id;
    this.#api = api;
    this.#ledger = ledger;
    this.#ttlMs = ttlMs;
    this.#deadline = runMs() + ttlMs - marginOf(ttlMs);
    this.#keepAlive().catch((error: unknown) => ledger.complaints.push(`keepalive: ${String(error)}`));
  }

  /** Null: it could not be opened before `ending`. */
  static async open(
    api: LockApi,
    { client, ttlMs, ledger, ending }: { client: string; ttlMs: number; ledger: Ledger; ending: AbortSignal },
  ): Promise<AppSession | null> {
    const body = { client, ttl_s: ttlMs / 1_000, keepalive: 'app' };
    while (!ending.aborted) {
      const answer = await attempt(() => api.client.json(request('/v1/sessions', body, CALL_MS_MAX)));
      ledger.count(`open ${answer?.status ?? 'broken'}`);
      if (answer?.status === 200) return new AppSession(String(answer.body.session_id), api, ledger, ttlMs);
      await pause(AGAIN_MS);
    }
    return null;
  }

  isBelieved(grant: KnownGrant): boolean {
    return !this.isLost && grant.lostAt === null && runMs() < grant.believedUntil;
  }

  /** Null: not granted within the wait. Repeats what was not answered, while the session lives. */
  async acquire(name: string, waitMs: number): Promise<KnownGrant | null> {
    const body = { session_id: this.id, wait_ms: waitMs, request: randomUUID() };
    const giveUpAt = runMs() + waitMs + 2 * this.#ttlMs;
    while (!this.isLost && runMs() < giveUpAt) {
      const path = this.#api.path(name, '/acquire');
      const answer = await attempt(() =>
        this.#api.client.json(request(path, body, waitMs + 3 * CALL_MS_MAX)),
      );
      this.#ledger.count(`acquire ${answer?.status ?? 'broken'}`);
      if (answer?.status === 200) return this.#granted(name, answer.body);
      if (answer?.status === 410) this.#lose();
      if (answer?.status === 409) return null;
      await pause(AGAIN_MS);
    }
    return null;
  }

  async release(grant: KnownGrant): Promise<void> {
    grant.gaveUpAt = runMs();
    grant.believedUntil = Math.min(grant.believedUntil, grant.gaveUpAt);
    this.#held.delete(grant);
    const body = { session_id: this.id, token: grant.token };
    const giveUpAt = runMs() + 2 * this.#ttlMs;
    while (runMs() < giveUpAt) {
      const path = this.#api.path(grant.name, '/release');
      const answer = await attempt(() => this.#api.client.json(request(path, body, CALL_MS_MAX)));
      this.#ledger.count(`release ${answer?.status ?? 'broken'}`);
      if (answer?.status === 200) grant.releasedAt = runMs();
      // 4xx: the session or the grant has ended otherwise.
      if (answer !== null && answer.status < 500 && answer.status !== 429) return;
      await pause(AGAIN_MS);
    }
  }

  /** Ends it as a program ends: everything it has is given up. */
  async close(): Promise<void> {
    this.#ending.abort();
    for (const grant of this.#held) {
      grant.gaveUpAt ??= runMs();
      grant.believedUntil = Math.min(grant.believedUntil, grant.gaveUpAt);
    }
    this.#held.clear();
    for (let tries = 0; tries < 20; tries++) {
      const path = `/v1/sessions/${this.id}`;
      const answer = await attempt(() =>
        this.#api.client.json({ method: 'DELETE', path, signal: AbortSignal.timeout(CALL_MS_MAX) }),
      );
      if (answer !== null && answer.status < 500) return;
      await pause(AGAIN_MS);
    }
  }

  #granted(name: string, body: ApiAnswer['body']): KnownGrant {
    const at = runMs();
    const grant = this.#ledger.granted(name, Number(body.token), this.#ttlMs, at);
    this.#held.add(grant);
    this.#believe(fromMonotonicNs(BigInt(String(body.deadline_monotonic_ns))), [grant]);
    return grant;
  }

  #believe(deadline: number, grants: Iterable<KnownGrant>): void {
    this.#deadline = Math.max(this.#deadline, deadline);
    for (const grant of grants) {
      if (grant.lostAt !== null) continue;
      grant.believedUntil = Math.max(grant.believedUntil, deadline);
      grant.keptAt.push(deadline - this.#ttlMs + marginOf(this.#ttlMs));
    }
  }

  #lose(): void {
    if (this.isLost) return;
    this.isLost = true;
    const at = runMs();
    for (const grant of this.#held) {
      grant.lostAt = at;
      grant.believedUntil = Math.min(grant.believedUntil, at);
    }
    this.#held.clear();
  }

  async #keepAlive(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted && !this.isLost) {
      const path = `/v1/sessions/${this.id}/keepalive`;
      const before = [...this.#held];
      const answer = await attempt(() => this.#api.client.json(request(path, {}, CALL_MS_MAX)));
      this.#ledger.count(`keepalive ${answer?.status ?? 'broken'}`);
      if (signal.aborted) return;
      if (answer?.status === 410 || answer?.status === 404) this.#lose();
      // Only what it had when it asked, and has still, is renewed by the answer.
      if (answer?.status === 200) {
        const deadline = fromMonotonicNs(BigInt(String(answer.body.deadline_monotonic_ns)));
        this.#believe(
          deadline,
          before.filter((grant) => this.#held.has(grant)),
        );
      }
      // No answer needed: what is believed ends by this program's own clock (rule A1).
      if (runMs() >= this.#deadline) this.#lose();
      await pause(KEEPALIVE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

function request(path: string, body: object, limitMs: number) {
  return { method: 'POST', path, body, signal: AbortSignal.timeout(limitMs) };
}

/** Null: no answer came. */
async function attempt(call: () => Promise<ApiAnswer>): Promise<ApiAnswer | null> {
  try {
    return await call();
  } catch {
    return null;
  }
}
