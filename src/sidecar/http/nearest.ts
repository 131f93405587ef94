/** "Did you mean": the known word closest to what somebody typed. */

/** Longer words are not compared: no known word is that long, and the effort grows with the length. */
const WORD_CHARACTERS_MAX = 80;

/** The closest of `known` if it is close enough to be a slip (about a third of it differs), else null. */
export function nearest(typed: string, known: readonly string[]): string | null {
  if (typed.length > WORD_CHARACTERS_MAX) return null;
  let best: { word: string; distance: number } | null = null;
  for (const word of known) {
    const distance = editDistance(typed, word);
    if (best === null || distance < best.distance) best = { word, distance };
  }
  if (best === null || best.distance > Math.ceil(best.word.length / 3)) return null;
  return best.word;
}

/** Levenshtein distance: single-character edits from one word to the other. */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
