/**
 * "Did you mean ...?" for misspelt fields and values, of manifests and of requests. Only a near miss is named: a wrong
 * suggestion costs more time than none.
 */

/** Longer words are not compared: nothing we know is that long, and the comparison is quadratic. */
const WORD_CHARS_MAX = 64;
/** A suggestion may be off by one edit for each so many of its characters, or part of so many. */
const CHARS_PER_EDIT = 3;

/** The candidate that `word` most probably meant, or undefined. Differences of case alone always count as near. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > WORD_CHARS_MAX) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < bestDistance && distance <= Math.ceil(candidate.length / CHARS_PER_EDIT)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      const swapped =
        row > 1 && column > 1 && from[row - 2] === to[column - 1] && from[row - 1] === to[column - 2];
      current[column] = Math.min(
        at(current, column - 1) + 1,
        at(last, column) + 1,
        at(last, column - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
