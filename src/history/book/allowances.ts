/**
 * Time that does not count against the service: stretches without commits, and pauses the run declares.
 * Promise 4 adds them to its bound, so "in time" is measured as elapsed time minus what lies inside such stretches.
 */

/** Stretches kept: those of a day with one a second. What lies among older ones is not judged (`knows`). */
const STRETCHES_MAX = 100_000;

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly extraMs: number;
}

export class Allowances {
  readonly #stretches: Stretch[] = [];
  #forgottenTo = Number.NEGATIVE_INFINITY;

  add(from: number, to: number, extraMs: number): void {
    this.#stretches.push({ from, to, extraMs });
    if (this.#stretches.length <= STRETCHES_MAX) return;
    const forgotten = this.#stretches.splice(0, STRETCHES_MAX / 2);
    this.#forgottenTo = forgotten.reduce(
      (latest, stretch) => Math.max(latest, stretch.to),
      this.#forgottenTo,
    );
  }

  /** Whether every stretch after `from` is still known: without it nobody may be accused of having been late. */
  knows(from: number): boolean {
    return from >= this.#forgottenTo;
  }

  /** Ms inside [from, to] that do not count; overlapping stretches count once, each `extraMs` in full. */
  within(from: number, to: number): number {
    const touching = this.#stretches.filter((stretch) => stretch.from < to && stretch.to > from);
    touching.sort((a, b) => a.from - b.from);
    let allowedMs = 0;
    let reached = from;
    for (const stretch of touching) {
      const start = Math.max(stretch.from, reached);
      const end = Math.min(stretch.to, to);
      if (end > start) allowedMs += end - start;
      reached = Math.max(reached, end);
      allowedMs += stretch.extraMs;
    }
    return allowedMs;
  }
}
