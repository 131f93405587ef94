/**
 * Acquires of one session between question and answer. The event stream and the answer travel on different connections: what
 * the stream tells about a grant may be read before the grant itself, and a grant may come for a caller who has given up.
 */
import type { Loss } from './errors.ts';

/** What names a grant at the service. */
export interface GrantReference {
  /** Full name of the lock. */
  readonly name: string;
  readonly token: number;
  /** The retry key of its acquire. */
  readonly request: string;
}

/** Beyond this many the oldest is forgotten: a grant for an abandoned request comes within moments, or never. */
const ABANDONED_MAX = 1_000;

export class Requests {
  /** Under way; with the token that the stream has told, though the answer has not been read. */
  readonly #asking = new Map<string, number | null>();
  /** Ends of grants whose answer has not been read yet, by token. */
  readonly #ends = new Map<number, Loss>();
  /** Given up before their answer was read: request to name. */
  readonly #abandoned = new Map<string, string>();

  asks(request: string): void {
    this.#asking.set(request, null);
  }

  /** The outcome is known. Gives the end that the stream told of `token` meanwhile. */
  answered(request: string, token?: number): Loss | undefined {
    this.#asking.delete(request);
    const end = token === undefined ? undefined : this.#ends.get(token);
    if (this.#asking.size === 0) this.#ends.clear();
    return end;
  }

  /** Nobody wants the lock of `request` any more. Gives the grant that is to be given back, if it is known already. */
  abandon(request: string, name: string): GrantReference | null {
    const token = this.#asking.get(request) ?? null;
    this.answered(request);
    if (token !== null) return { name, token, request };
    this.#abandoned.set(request, name);
    for (const oldest of this.#abandoned.keys()) {
      if (this.#abandoned.size <= ABANDONED_MAX) break;
      this.#abandoned.delete(oldest);
    }
    return null;
  }

  /** The stream tells of a grant. Gives it back if it is for nobody. */
  granted(request: string, token: number): GrantReference | null {
    if (this.#asking.has(request)) this.#asking.set(request, token);
    const name = this.#abandoned.get(request);
    if (name === undefined) return null;
    this.#abandoned.delete(request);
    return { name, token, request };
  }

  /** The stream tells of the end of a grant that nobody here has yet. */
  ended(token: number, loss: Loss): void {
    if (this.#asking.size > 0) this.#ends.set(token, loss);
  }
}
