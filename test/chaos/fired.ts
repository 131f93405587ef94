/**
 * Whether the planned faults fired: a run without them proves nothing. Now and then one finds nothing to break (a line that another fault
 * has cut at that moment, a leader that etcd is just electing), which in a run of an hour says nothing about the others of its kind.
 */

/** Of each kind, and never all of them. */
const WITHOUT_EFFECT_SHARE_MAX = 0.1;

export class Fired {
  readonly #kinds = new Map<string, { runs: number; readonly without: string[] }>();

  /** `without`: why it had no effect; null: it had one. */
  add(kind: string, without: string | null): void {
    const known = this.#kinds.get(kind) ?? { runs: 0, without: [] };
    known.runs += 1;
    if (without !== null) known.without.push(without);
    this.#kinds.set(kind, known);
  }

  problems(): string[] {
    if (this.#kinds.size === 0) return ['no fault was run'];
    return [...this.#kinds].flatMap(([kind, { runs, without }]) => {
      const isFew = without.length < runs && without.length <= runs * WITHOUT_EFFECT_SHARE_MAX;
      const reasons = [...new Set(without)].join('; ');
      return isFew || without.length === 0
        ? []
        : [`${kind}: ${without.length} of ${runs} without effect (${reasons})`];
    });
  }
}
