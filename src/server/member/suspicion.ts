/**
 * When a standby ends the leadership of a leader that seems dead, before its lease in the log runs out (rule S7): only if it hears nothing
 * of the leader on their stream *and* sees no entry of it in the log. Bounded, so that replicas that cannot hear each other do not depose
 * each other for ever.
 */
import { ok as assert } from 'node:assert';

export interface SuspicionSettings {
  /** So long no entry was committed although one was due: with sessions open one is every 250 ms, without them every 2 s. */
  readonly silenceMs: number;
  /** Not more than one suspicion in this time; doubled by each that follows soon after. */
  readonly everyMs: number;
}

export const SUSPICION_DEFAULTS: SuspicionSettings = { silenceMs: 400, everyMs: 30_000 };

/** Longest pause between two suspicions. */
const EVERY_MS_MAX = 3_600_000;
/** A leader has so long to begin, after the log names it. */
const BEGIN_MS = 1_000;
/** The reason in `takeOver` of a leader that got its chance by a suspicion. */
export const SUSPICION_REASON = 'suspicion';

export interface LeaderSigns {
  /** Nothing is heard of the leader on the stream. */
  readonly isUnheard: boolean;
  /** How long no entry has been seen although one was due. */
  readonly silentMs: number;
  /** How long the log has named this leader. */
  readonly epochAgeMs: number;
}

export class Suspicion {
  readonly #settings: SuspicionSettings;
  #lastMs = Number.NEGATIVE_INFINITY;
  #pauseMs: number;

  constructor(settings: SuspicionSettings) {
    assert(settings.silenceMs > 0 && settings.everyMs > 0, 'a suspicion needs silence and pauses');
    this.#settings = settings;
    this.#pauseMs = settings.everyMs;
  }

  /** Whether this leader is to be evicted now. */
  isDue({ isUnheard, silentMs, epochAgeMs }: LeaderSigns, nowMs: number): boolean {
    if (!isUnheard || silentMs < this.#settings.silenceMs || epochAgeMs < BEGIN_MS) return false;
    return nowMs - this.#lastMs >= this.#pauseMs;
  }

  /** A suspicion, of this replica or, by the log, of another. */
  happened(nowMs: number): void {
    const sinceMs = nowMs - this.#lastMs;
    assert(sinceMs >= 0, 'suspicions are counted in order');
    // One event, known twice: by doing it and from the log.
    if (sinceMs < Math.min(BEGIN_MS, this.#settings.everyMs)) return;
    const isSoon = sinceMs < 2 * this.#pauseMs;
    this.#pauseMs = isSoon ? Math.min(2 * this.#pauseMs, EVERY_MS_MAX) : this.#settings.everyMs;
    this.#lastMs = nowMs;
  }
}
