/**
 * Names of locks: what is allowed, and which bucket a name falls into.
 * A name is any well-formed Unicode text of 1 to 512 bytes of UTF-8. No character is special: no normalisation,
 * no trimming, no case folding, no path rules, so a name means the same to everybody (cases H02, H04, H05, H10).
 */
import { BUCKETS, NAME_BYTES_MAX } from './limits.ts';
import { textProblem } from './text.ts';

const NAME_BOUNDS = { min: 1, max: NAME_BYTES_MAX } as const;

/** Null when `name` (below its alias) may be locked, else what is wrong with it. */
export function nameProblem(name: string): string | null {
  const problem = textProblem(name, NAME_BOUNDS);
  return problem === null ? null : `the name ${problem}`;
}

/** Bucket of a name, 0 to 4095: FNV-1a over its UTF-16 units, both bytes of each. Part of the protocol: never change. */
export function bucketOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    const unit = name.charCodeAt(i);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return (hash >>> 0) % BUCKETS;
}

/** Splits `<alias>/<rest>` at the first slash; null when there is no alias or no rest. */
export function splitAlias(fullName: string): { readonly alias: string; readonly rest: string } | null {
  const slash = fullName.indexOf('/');
  if (slash <= 0 || slash === fullName.length - 1) return null;
  return { alias: fullName.slice(0, slash), rest: fullName.slice(slash + 1) };
}
