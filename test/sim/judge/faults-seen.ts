/**
 * Which parts of the system were hindered, and until when: strict bounds are judged only where nothing stood in the way,
 * and the checker is told of the rest as pauses.
 */
import type { World } from '../world/world.ts';

interface Hindrance {
  open: number;
  /** Hindrances that overlap and so make one. */
  begun: number;
  sinceUs: number;
  /** End of the one before. */
  beforeUs: number;
  /** End of the last one. */
  clearSinceUs: number;
}

export class FaultsSeen {
  readonly #world: World;
  readonly #parts = new Map<string, Hindrance>();
  readonly #onOver: (part: string, fromMs: number, toMs: number) => void;

  constructor(world: World, onOver: (part: string, fromMs: number, toMs: number) => void) {
    this.#world = world;
    this.#onOver = onOver;
  }

  /** `sinceUs`: when it began, if it is noticed late. */
  begin(part: string, sinceUs = this.#world.nowUs): void {
    const known = this.#parts.get(part) ?? { open: 0, begun: 0, sinceUs: 0, beforeUs: -1, clearSinceUs: -1 };
    if (known.open++ === 0) {
      known.sinceUs = Math.max(sinceUs, known.clearSinceUs);
      known.beforeUs = known.clearSinceUs;
      known.begun = 0;
    }
    known.begun++;
    this.#parts.set(part, known);
  }

  end(part: string): void {
    const known = this.#parts.get(part);
    if (known === undefined || known.open === 0) throw new Error(`no fault of ${part} to end`);
    if (--known.open > 0) return;
    known.clearSinceUs = this.#world.nowUs;
    this.#onOver(part, known.sinceUs / 1_000, this.#world.nowMs);
  }

  /** A hindrance that is noticed when it is over; it may be part of one that is known already. */
  was(part: string, fromUs: number): void {
    const before = this.#parts.get(part);
    const isKnown = before !== undefined && (before.open > 0 || fromUs <= before.clearSinceUs);
    const { sinceUs, beforeUs, begun } = before ?? { sinceUs: fromUs, beforeUs: -1, begun: 0 };
    this.begin(part);
    const known = this.#parts.get(part) as Hindrance;
    known.sinceUs = isKnown ? Math.min(sinceUs, fromUs) : fromUs;
    if (isKnown) {
      known.beforeUs = beforeUs;
      known.begun = begun;
    }
    this.end(part);
  }

  /** How long the part had been clear when it was hindered last, µs; 0 if several things hindered it at once. */
  clearBeforeUs(part: string): number {
    const known = this.#parts.get(part);
    if (known === undefined) return Number.POSITIVE_INFINITY;
    return known.begun === 1 ? known.sinceUs - known.beforeUs : 0;
  }

  /** Whether nothing has hindered any of these parts since then. */
  isClear(parts: readonly string[], sinceUs: number): boolean {
    return parts.every((part) => {
      const known = this.#parts.get(part);
      return known === undefined || (known.open === 0 && known.clearSinceUs < sinceUs);
    });
  }
}
