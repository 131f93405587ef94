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
  /** Of the acquire that gave it back, or held it when it was lost. */
  readonly key: string;
  /** A re-entrant grant is given back acquire by acquire: of which `request` this was. Null: the token says all. */
  readonly shareOf: string | null;
  /** The application's session. */
  readonly envelope: string;
  readonly how: 'released' | 'lost';
  /** It was all that its session was for, so the session ended with it. */
  readonly wasWholeSession: boolean;
}

/** The end of one acquire's grant. Only a loss ends a re-entrant one as a whole. */
export function endedGrant(
  ended: Omit<EndedGrant, 'shareOf' | 'wasWholeSession'> & {
    readonly reentrant: boolean;
    readonly request: string | null;
  },
  wasWholeSession: boolean,
): EndedGrant {
  const { name, token, key, envelope, how, reentrant, request } = ended;
  const shareOf = reentrant && how === 'released' ? request : null;
  return { name, token, key, shareOf, envelope, how, wasWholeSession };
}

export class EndedTokens {
  readonly #grants = new Map<string, EndedGrant>();
  readonly #counted = new Set<Token>();
  readonly #onSettled: (grant: EndedGrant) => void;

  /** `onSettled`: a lost grant was counted, or is forgotten; nothing needs to be kept of its loss any more. */
  constructor(onSettled: (grant: EndedGrant) => void = () => undefined) {
    this.#onSettled = onSettled;
  }

  add(grant: EndedGrant): void {
    const id = idOf(grant.token, grant.shareOf);
    this.#grants.delete(id);
    this.#grants.set(id, grant);
    if (this.#grants.size <= REMEMBERED_MAX) return;
    const [oldest] = this.#grants;
    if (oldest === undefined) return;
    this.#grants.delete(oldest[0]);
    this.#counted.delete(oldest[1].token);
    if (oldest[1].how === 'lost') this.#onSettled(oldest[1]);
  }

  /** How this session's grant ended, if it is remembered; of a re-entrant one, the share of this `request`. */
  find({
    name,
    token,
    envelope,
    request,
  }: Pick<EndedGrant, 'name' | 'token' | 'envelope'> & { readonly request: string | undefined }):
    | EndedGrant
    | undefined {
    const share = request === undefined ? undefined : this.#grants.get(idOf(token, request));
    const grant = share ?? this.#grants.get(idOf(token, null));
    return grant?.name === name && grant.envelope === envelope ? grant : undefined;
  }

  /** True the first time it is asked for a lost grant: it is worked on after its end. */
  countOnce(token: Token): boolean {
    const grant = this.#grants.get(idOf(token, null));
    if (grant?.how !== 'lost' || this.#counted.has(token)) return false;
    this.#counted.add(token);
    this.#onSettled(grant);
    return true;
  }
}

function idOf(token: Token, request: string | null): string {
  return request === null ? `${token}` : `${token} ${request}`;
}
