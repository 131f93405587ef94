/** Texts within bounds of bytes: the check that every way in shares. */
import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { textProblem, utf8Length } from './text.ts';

describe('a text', () => {
  test.each([
    ['', 0, null],
    ['', 1, 'must not be empty'],
    ['a'.repeat(8), 1, null],
    ['a'.repeat(9), 1, 'must be at most 8 bytes of UTF-8'],
    ['\u00e9'.repeat(4), 0, null],
    [`${'\u00e9'.repeat(4)}a`, 0, 'must be at most 8 bytes of UTF-8'],
    ['\u{1f512}'.repeat(2), 0, null],
    [`${'\u{1f512}'.repeat(2)}a`, 0, 'must be at most 8 bytes of UTF-8'],
    ['\ud800', 0, 'must be well-formed Unicode (it has a lone surrogate)'],
    ['a\udc00', 1, 'must be well-formed Unicode (it has a lone surrogate)'],
  ] as const)('%j, of at least %i: %j', (value, min, problem) => {
    expect(textProblem(value, { min, max: 8 })).toBe(problem);
  });

  test('is accepted exactly when it is well-formed and its bytes are within the bound', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 });
    const any = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      units.map((codes) => String.fromCharCode(...codes)),
    );
    fc.assert(
      fc.property(any, fc.nat(24), (value, max) => {
        const isRight = value.isWellFormed() && Buffer.byteLength(value) <= max;
        expect(textProblem(value, { min: 0, max }) === null).toBe(isRight);
        expect(utf8Length(value)).toBe(Buffer.byteLength(value));
      }),
      { numRuns: 500 },
    );
  });
});
