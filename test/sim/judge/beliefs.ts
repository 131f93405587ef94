/**
 * What clients believe, on its way to the checker. Of some grants somebody else takes the end on himself: who breaks a lock `--now` (rule
 * C9), or a second one with the session's secret who gives it back (rule C7). What its holder believes after that is nobody's fault. Such an
 * end counts from when its entry was built and is known when that is durable, so beliefs wait for what is under way.
 */
import type { Token } from '../../../src/api/entry.ts';
import type { ClientRecord } from '../../../src/history/records.ts';

export type Belief = Extract<ClientRecord, { type: 'heldInterval' }>;

export class Beliefs {
  readonly #pass: (belief: Belief) => void;
  readonly #freedByOthersMs = new Map<Token, number>();
  #waiting: Belief[] = [];

  constructor(pass: (belief: Belief) => void) {
    this.#pass = pass;
  }

  freedByAnother(token: Token, builtMs: number): void {
    this.#freedByOthersMs.set(token, builtMs);
  }

  add(belief: Belief): void {
    this.#waiting.push(belief);
  }

  /** An entry built at `builtMs` is durable: nothing that is still under way was built before. */
  settle(builtMs = Number.POSITIVE_INFINITY): void {
    if (this.#waiting.length === 0) return;
    const settled = this.#waiting.filter(({ to }) => to <= builtMs);
    this.#waiting = this.#waiting.filter(({ to }) => to > builtMs);
    for (const belief of settled) {
      const freedMs = this.#freedByOthersMs.get(belief.token) ?? Number.POSITIVE_INFINITY;
      if (belief.from < freedMs) this.#pass({ ...belief, to: Math.min(belief.to, freedMs) });
    }
  }
}
