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
  /** It was all that its session was for, so the session ended with it. */
  readonly wasWholeSession: boolean;
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

  /** How this session's grant ended, if it is remembered. */
  find({ name, token, envelope }: Pick<EndedGrant, 'name' | 'token' | 'envelope'>): EndedGrant | undefined {
    const grant = this.#grants.get(token);
    return grant?.name === name && grant.envelope === envelope ? grant : undefined;
  }

  /** True the first time it is asked for a lost grant: it is worked on after its end. */
  countOnce(token: Token): boolean {
    if (this.#grants.get(token)?.how !== 'lost' || this.#counted.has(token)) return false;
    this.#counted.add(token);
    return true;
  }
}
