/** What applications know and believe, written down as it happens; the judge compares it with the committed history. */

export interface KnownGrant {
  readonly name: string;
  readonly token: number;
  readonly reportedAt: number;
  /** The application acts as its holder until then; grows with each deadline it is told, ends with loss and release. */
  believedUntil: number;
  gaveUpAt: number | null;
  releasedAt: number | null;
  lostAt: number | null;
  /** When the sidecar sent the keepalives whose acknowledgement the told deadlines rest on. */
  readonly keptAt: number[];
  readonly ttlMs: number;
}

export class Ledger {
  readonly grants: KnownGrant[] = [];
  /** What no application may see. */
  readonly complaints: string[] = [];
  /** Answers by what became of the call. */
  readonly calls = new Map<string, number>();

  granted(name: string, token: number, ttlMs: number, reportedAt: number): KnownGrant {
    const grant: KnownGrant = {
      name,
      token,
      reportedAt,
      believedUntil: reportedAt,
      gaveUpAt: null,
      releasedAt: null,
      lostAt: null,
      keptAt: [],
      ttlMs,
    };
    this.grants.push(grant);
    return grant;
  }

  count(what: string): void {
    this.calls.set(what, (this.calls.get(what) ?? 0) + 1);
  }
}
