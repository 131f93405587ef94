/**
 * What the clients know, put together: every grant that was acknowledged to one of them, and what became of it. It finds by
 * itself what no client alone can see: two who hold one name, tokens that go back, a grant lost while its application lived.
 */
export type GrantState = 'held' | 'givenUp' | 'released' | 'lost';

/** Times are wall clock ms, as in the entries of the log. */
export interface KnownGrant {
  readonly client: string;
  readonly name: string;
  readonly session: string;
  readonly token: number;
  readonly reportedAt: number;
  state: GrantState;
  /** When the client began to release it; it may have ended at any time since. */
  gaveUpAt: number | null;
  releasedAt: number | null;
  /** When the last question that was answered "held" was sent. */
  seenHeldAt: number | null;
}

export interface Outages {
  /** Longest time in ms that nothing was served, of all that touched the time since `sinceMs`. */
  longestSince(sinceMs: number): number;
}

export class Ledger {
  readonly grants: KnownGrant[] = [];
  readonly violations: string[] = [];
  readonly #highest = new Map<string, number>();
  readonly #outages: Outages;
  readonly #survivedMs: number;

  /** `survivedMs`: an outage shorter than this costs a live application nothing (rule A1: TTL - margin). */
  constructor(outages: Outages, survivedMs: number) {
    this.#outages = outages;
    this.#survivedMs = survivedMs;
  }

  violation(what: string): void {
    this.violations.push(what);
  }

  /** A client was told that it holds. */
  granted({ client, name, session, token }: Pick<KnownGrant, 'client' | 'name' | 'session' | 'token'>) {
    const highest = this.#highest.get(name) ?? 0;
    if (token <= highest) {
      this.violation(`${client} was granted token ${token} of ${name} after token ${highest}`);
    }
    this.#highest.set(name, Math.max(highest, token));
    for (const other of this.held()) {
      if (other.name !== name) continue;
      this.violation(
        `${client} was granted ${name} (${token}) while ${other.client} holds it (${other.token})`,
      );
    }
    const grant: KnownGrant = {
      client,
      name,
      session,
      token,
      reportedAt: Date.now(),
      state: 'held',
      gaveUpAt: null,
      releasedAt: null,
      seenHeldAt: null,
    };
    this.grants.push(grant);
    return grant;
  }

  held(): KnownGrant[] {
    return this.grants.filter(({ state }) => state === 'held');
  }

  givesUp(grant: KnownGrant): void {
    if (grant.state !== 'held') return;
    grant.state = 'givenUp';
    grant.gaveUpAt = Date.now();
  }

  /** The release was acknowledged. */
  released(grant: KnownGrant): void {
    grant.state = 'released';
    grant.releasedAt = Date.now();
  }

  /** The client was told, or found, that it does not hold any more. */
  lost(grant: KnownGrant, why: string): void {
    if (grant.state !== 'held') return;
    grant.state = 'lost';
    this.#mustBeExcused(
      grant.reportedAt,
      `${grant.client} lost ${grant.name} (token ${grant.token}): ${why}`,
    );
  }

  sessionLost(client: string, openedAt: number, why: string): void {
    this.#mustBeExcused(openedAt, `${client} lost its session: ${why}`);
    for (const grant of this.held()) if (grant.client === client) this.lost(grant, 'its session is over');
  }

  #mustBeExcused(sinceMs: number, what: string): void {
    const outageMs = this.#outages.longestSince(sinceMs);
    if (outageMs < this.#survivedMs)
      this.violation(`${what}; the longest outage was ${Math.round(outageMs)} ms`);
  }
}
