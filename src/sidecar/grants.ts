/**
 * What one session holds in one namespace, grant by grant, and what it has given up but the group has not confirmed yet.
 * A grant is held by the acquires that it answers: one, or several if it is re-entrant (rule C6). It is over with the last.
 */
import type { RevokeCause, Token } from '../api/entry.ts';
import { LeaseholdError } from '../api/errors.ts';
import { assert } from '../core/index.ts';
import type { AcquireBody } from './acquire-body.ts';
import type { LeaseClock } from './lease-clock.ts';

/** One acquire's share in a grant. */
export interface Hold {
  /** Unique within the session. */
  readonly key: string;
  /** The application's retry key, which also names the share when a re-entrant grant is given back. */
  readonly request: string | undefined;
}

export interface Grant {
  readonly body: AcquireBody;
  readonly token: Token;
  /** By key. */
  readonly holds: Map<string, Hold>;
  /**
   * Set while a revoke runs: why, and the lease as it was, no longer moved by keepalives (rule C9). So what its machine sleeps adds up
   * over all of them, though each sees little (rule A2).
   */
  revoke: { readonly cause: RevokeCause; readonly lease: LeaseClock } | null;
}

/** A share as it is written down. */
export interface GrantedAcquire extends Hold {
  readonly body: AcquireBody;
  readonly token: Token;
}

export class Grants {
  readonly #grants = new Map<Token, Grant>();
  /** Given up and not yet confirmed, by key: no longer held, but the group may still count it. With who waits for that. */
  readonly #givenUp = new Map<string, (() => void)[]>();

  get size(): number {
    return this.#grants.size;
  }

  /** Nothing is on its way that changes what the group counts. */
  get isSettled(): boolean {
    return this.#givenUp.size === 0;
  }

  tokens(): Iterable<Token> {
    return this.#grants.keys();
  }

  /** As it is now: may be gone through while grants end. */
  all(): readonly Grant[] {
    return [...this.#grants.values()];
  }

  /** Those that a revoke runs on. */
  revoking(): readonly Grant[] {
    return this.all().filter(({ revoke }) => revoke !== null);
  }

  get(token: Token): Grant | undefined {
    return this.#grants.get(token);
  }

  find(name: string, token: Token): Grant | undefined {
    const grant = this.#grants.get(token);
    return grant?.body.name === name ? grant : undefined;
  }

  isHeldBy(key: string, token: Token): boolean {
    return this.#grants.get(token)?.holds.has(key) === true;
  }

  /** Adds a share, and the grant with its first one. */
  take({ body, token, key, request }: GrantedAcquire): { readonly grant: Grant; readonly hold: Hold } {
    const hold = { key, request };
    let grant = this.#grants.get(token);
    if (grant === undefined) {
      grant = { body, token, holds: new Map(), revoke: null };
      this.#grants.set(token, grant);
    } else {
      assert(grant.body.reentrant && body.reentrant, `token ${token} is granted twice and not re-entrant`);
      assert(grant.body.name === body.name && !grant.holds.has(key), `token ${token} is of another acquire`);
    }
    grant.holds.set(key, hold);
    return { grant, hold };
  }

  /** Takes a share away. True: it was the last, and the grant is over. */
  drop(grant: Grant, { key }: Hold): boolean {
    assert(this.#grants.get(grant.token) === grant, `token ${grant.token} is not held`);
    assert(grant.holds.has(key), `token ${grant.token} is not held by this acquire`);
    grant.holds.delete(key);
    return grant.holds.size === 0 && this.#grants.delete(grant.token);
  }

  clear(): void {
    this.#grants.clear();
  }

  /** From now on the group is being told that this share is given up. */
  givenUp(key: string): void {
    assert(!this.#givenUp.has(key), 'an acquire is given up twice');
    this.#givenUp.set(key, []);
  }

  isGivenUp(key: string): boolean {
    return this.#givenUp.has(key);
  }

  /** The group has confirmed it. */
  confirmed(key: string): void {
    const waiting = this.#givenUp.get(key) ?? [];
    this.#givenUp.delete(key);
    for (const done of waiting) done();
  }

  /** Calls back when nothing of this share is on its way any more. */
  whenConfirmed(key: string, done: () => void): void {
    const waiting = this.#givenUp.get(key);
    if (waiting === undefined) done();
    else waiting.push(done);
  }
}

/**
 * The share that a release means. A grant that is not re-entrant has only one, so its token is name enough.
 * @throws INVALID, NOT_HELD
 */
export function shareOf({ body, token, holds }: Grant, request: string | undefined): Hold {
  if (!body.reentrant) {
    const [only] = holds.values();
    assert(holds.size === 1 && only !== undefined, `token ${token} is held by ${holds.size} acquires`);
    return only;
  }
  if (request === undefined) {
    const limit = 'the request of the acquire that is given back';
    const reason = 'is required: this grant is re-entrant, and several acquires may hold it';
    const problem = { field: 'request', limit, reason };
    throw new LeaseholdError('INVALID', `request: ${reason}`, { ...problem, problems: [problem], token });
  }
  for (const hold of holds.values()) if (hold.request === request) return hold;
  const message = `token ${token} is held, but by no acquire of this request`;
  throw new LeaseholdError('NOT_HELD', message, { token });
}
