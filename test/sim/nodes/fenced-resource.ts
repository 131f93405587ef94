/**
 * What the locks protect: a resource that remembers the highest token it has seen of each name and refuses a lower one
 * (promise 6). It notes every write, so that one that came too late shows.
 */
import type { Findings } from '../judge/findings.ts';

export class FencedResource {
  readonly #findings: Findings;
  readonly #highest = new Map<string, number>();
  /** Token of the last write that took effect. */
  readonly #lastWrite = new Map<string, number>();
  writes = 0;
  refusals = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** False: refused, the token is stale. */
  write(name: string, token: number): boolean {
    if (this.isStale(name, token)) {
      this.refusals++;
      return false;
    }
    this.#highest.set(name, Math.max(token, this.#highest.get(name) ?? 0));
    this.writes++;
    const last = this.#lastWrite.get(name) ?? 0;
    if (token < last)
      this.#findings.add('fence', `${name}: a write with token ${token} after one with ${last}`);
    this.#lastWrite.set(name, token);
    return true;
  }

  protected isStale(name: string, token: number): boolean {
    return token < (this.#highest.get(name) ?? 0);
  }
}
