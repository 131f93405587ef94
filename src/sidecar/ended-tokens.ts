/**
 * The last 256 grants of a session that are over, and how they ended: so that a repeated release is told `already`, and a
 * call with a lost token counts as work after the lease.
 */
import type { Token } from '../api/entry.ts';

const REMEMBERED_MAX = 256;

export interface EndedGrant {
  readonly name: string;
  readonly token: Token;
  readonly how: 'released' | 'lost';
}

export class EndedTokens {
  readonly #grants = new Map<Token, EndedGrant & { counted: boolean }>();

  add(grant: EndedGrant): void {
    this.#grants.delete(grant.token);
    this.#grants.set(grant.token, { ...grant, counted: false });
    for (const oldest of this.#grants.keys()) {
      if (this.#grants.size <= REMEMBERED_MAX) break;
      this.#grants.delete(oldest);
    }
  }

  get(name: string, token: Token): EndedGrant | undefined {
    const grant = this.#grants.get(token);
    return grant?.name === name ? grant : undefined;
  }

  /** True the first time it is asked for a lost grant: it is worked on after its end. */
  countOnce(token: Token): boolean {
    const grant = this.#grants.get(token);
    if (grant === undefined || grant.how !== 'lost' || grant.counted) return false;
    grant.counted = true;
    return true;
  }
}
