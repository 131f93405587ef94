/** Numbers on the command line: digits, and nothing that JavaScript would take for them. */
import { describe, expect, test } from 'vitest';
import { parseIndex, parseToken, wholeNumber } from './options.ts';

const NO_NUMBERS = [
  '',
  ' ',
  ' 5',
  '5 ',
  '+5',
  '-5',
  '0x5',
  '0b1',
  '1e3',
  '1.0',
  '1_000',
  '5n',
  '٥',
  'NaN',
  'Infinity',
];

describe('a number', () => {
  test.each(NO_NUMBERS)('is not %j', (text) => {
    expect(wholeNumber(text)).toBeNaN();
    expect(() => parseToken(text)).toThrow('a token is a whole number');
    expect(() => parseIndex(text)).toThrow('an index is a whole number');
  });

  test('is taken as it stands, up to 2^53 - 1', () => {
    expect(parseToken('1883228122926548')).toBe(1_883_228_122_926_548);
    expect(parseToken('9007199254740991')).toBe(2 ** 53 - 1);
    // Rounded, these would be other tokens.
    expect(() => parseToken('9007199254740993')).toThrow('a token is a whole number');
    expect(() => parseToken('1883228122926548.00001')).toThrow('a token is a whole number');
  });
});
