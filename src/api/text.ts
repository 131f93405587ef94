/**
 * Texts that callers send: well-formed Unicode within a bound of bytes. One check for every way in (HTTP, the frames of the
 * lock protocol, administration), so that what one of them lets pass no other one trips over.
 */

export interface TextBounds {
  /** 1: must not be empty. */
  readonly min: 0 | 1;
  /** Bytes of UTF-8. */
  readonly max: number;
}

/** Null when `value` is well-formed and within its bounds, else the reason: "must be ...", without a subject. */
export function textProblem(value: string, { min, max }: TextBounds): string | null {
  if (value.length < min) return 'must not be empty';
  // A code unit is one to three bytes, so most texts need not be counted, and what is far too long is not even looked at.
  if (value.length > max) return tooLong(max);
  if (!value.isWellFormed()) return 'must be well-formed Unicode (it has a lone surrogate)';
  return 3 * value.length <= max || utf8Length(value) <= max ? null : tooLong(max);
}

function tooLong(max: number): string {
  return `must be at most ${max} bytes of UTF-8`;
}

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
