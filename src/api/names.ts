/**
 * Names of locks: what is allowed, and which bucket a name falls into.
 * A name is any well-formed Unicode text of 1 to 512 bytes of UTF-8. No character is special: no normalisation,
 * no trimming, no case folding, no path rules, so a name means the same to everybody (cases H02, H04, H05, H10).
 */
import { BUCKETS, NAME_BYTES_MAX } from './limits.ts';

/** Length in bytes of UTF-8 without encoding; a lone surrogate counts 3, as its replacement would. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) {
      bytes += 4;
      i++;
    } else bytes += 3;
  }
  return bytes;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** Null when `name` (below its alias) may be locked, else what is wrong with it. */
export function nameProblem(name: string): string | null {
  if (name.length === 0) return 'the name is empty';
  if (name.length > NAME_BYTES_MAX) return `the name is longer than ${NAME_BYTES_MAX} bytes of UTF-8`;
  if (!name.isWellFormed()) return 'the name is not well-formed Unicode (it has a lone surrogate)';
  if (utf8Length(name) > NAME_BYTES_MAX) return `the name is longer than ${NAME_BYTES_MAX} bytes of UTF-8`;
  return null;
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
