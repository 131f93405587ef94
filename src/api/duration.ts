/**
 * Durations as people write them in manifests: `15s`, `1h30m`, `500ms`.
 * The grammar is the one that the CRD's CEL rule accepts, narrower than Go's: whole numbers only, no sign, no days
 * (a day is not always 24 hours), one to three terms. Terms add up, in any order and also repeated, as in Go.
 */

/** A duration as written: one to three terms of one to six digits and a unit. */
export const DURATION_PATTERN = /^([0-9]{1,6}(ms|s|m|h)){1,3}$/;
/** Characters of a duration, so that the CRD can bound the cost of its rules. */
export const DURATION_CHARS_MAX = 16;
/** The longest duration that `formatDuration` writes: 9999 hours and a bit. */
export const DURATION_MS_MAX = 10_000 * 3_600_000 - 1;

const MS_PER_UNIT = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
type Unit = keyof typeof MS_PER_UNIT;

/** Below this, minutes are not used: people speak of leases of 60 or 90 seconds. */
const MINUTES_FROM_MS = 2 * 60_000;
const TERMS_MAX = 3;

/** Milliseconds of `text`, or null when it is not a duration of this grammar. Exact: never above 2^53. */
export function parseDuration(text: string): number | null {
  if (text.length > DURATION_CHARS_MAX || !DURATION_PATTERN.test(text)) return null;
  let totalMs = 0;
  for (const [, digits, unit] of text.matchAll(/([0-9]+)(ms|s|m|h)/g)) {
    totalMs += Number(digits) * MS_PER_UNIT[unit as Unit];
  }
  return totalMs;
}

/**
 * The shortest usual way to write `durationMs` (a whole number from 0 to `DURATION_MS_MAX`, else RangeError).
 * `parseDuration` of the answer gives `durationMs` again.
 */
export function formatDuration(durationMs: number): string {
  if (!Number.isInteger(durationMs) || durationMs < 0 || durationMs > DURATION_MS_MAX) {
    throw new RangeError(
      `a duration is a whole number of ms from 0 to ${DURATION_MS_MAX}, not ${durationMs}`,
    );
  }
  if (durationMs === 0) return '0s';
  const units: Unit[] = durationMs < MINUTES_FROM_MS ? ['s', 'ms'] : ['h', 'm', 's', 'ms'];
  const terms = splitInto(units, durationMs);
  // All four units at once would be a term too many for the grammar: then the seconds are written in ms.
  return (terms.length <= TERMS_MAX ? terms : splitInto(['h', 'm', 'ms'], durationMs)).join('');
}

function splitInto(units: readonly Unit[], durationMs: number): string[] {
  const terms: string[] = [];
  let restMs = durationMs;
  for (const unit of units) {
    const count = Math.floor(restMs / MS_PER_UNIT[unit]);
    restMs -= count * MS_PER_UNIT[unit];
    if (count > 0) terms.push(`${count}${unit}`);
  }
  return terms;
}
