/**
 * Which acquire belongs to which `request` of the application, so that a repeat is answered from how it stands (rule C4):
 * while it is under way, while its grant is held, and for a while after that.
 */
import type { Attempt } from './attempt.ts';

/** Requests whose grant is over that are still answered from memory. */
const SETTLED_MAX = 256;

export class RequestMemory {
  readonly #byRequest = new Map<string, Attempt>();
  /** Granted once and over by now; the oldest is forgotten first. */
  readonly #settled = new Set<Attempt>();

  find(request: string | undefined): Attempt | undefined {
    return request === undefined ? undefined : this.#byRequest.get(request);
  }

  add(attempt: Attempt): void {
    if (attempt.request !== undefined) this.#byRequest.set(attempt.request, attempt);
  }

  /** Its grant is over. Returns the oldest of those, forgotten now, if this one was one too many. */
  settle(attempt: Attempt): Attempt | undefined {
    this.#settled.add(attempt);
    if (this.#settled.size <= SETTLED_MAX) return undefined;
    const [oldest] = this.#settled;
    if (oldest !== undefined) this.forget(oldest);
    return oldest;
  }

  forget(attempt: Attempt): void {
    this.#settled.delete(attempt);
    if (attempt.request !== undefined) this.#byRequest.delete(attempt.request);
  }

  clear(): void {
    this.#byRequest.clear();
    this.#settled.clear();
  }
}
