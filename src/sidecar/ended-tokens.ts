/**
 * The last grants of a namespace that are over, and how they ended: so that a repeated release is told `already`, and a call
 * with a lost token counts as work after the lease, also when its session is long gone.
 */
import type { Token } from '../api/entry.ts';

/** Of all sessions together: 256 for each of forty busy ones. */
const REMEMBERED_MAX = 10_240;

export interface EndedGrant {
  readonly name: string;
  readonly token: Token;
  /** The application's session. */
  readonly envelope: string;
  readonly how: 'released' | 'lost';
}

export class EndedTokens {
  readonly #grants = new Map<Token, EndedGrant>();
  readonly #counted = new Set<Token>();

  add(grant: EndedGrant): void {
    this.#grants.delete(grant.token);
    this.#grants.set(grant.token, grant);
    for (const oldest of this.#grants.keys()) {
      if (this.#grants.size <= REMEMBERED_MAX) break;
      this.#grants.delete(oldest);
      this.#counted.delete(oldest);
    }
  }

  /** Whether this session has released this grant before. */
  wasReleased({ name, token, envelope }: Omit<EndedGrant, 'how'>): boolean {
    const grant = this.#grants.get(token);
    return grant?.how === 'released' && grant.name === name && grant.envelope === envelope;
  }

  /** True the first time it is asked for a lost grant: it is worked on after its end. */
  countOnce(token: Token): boolean {
    if (this.#grants.get(token)?.how !== 'lost' || this.#counted.has(token)) return false;
    this.#counted.add(token);
    return true;
  }
}
