// Durations: a table of both directions, and the round trip over the whole range.
import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DURATION_CHARS_MAX,
  DURATION_MS_MAX,
  DURATION_PATTERN,
  formatDuration,
  parseDuration,
} from './duration.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));

describe('parseDuration', () => {
  it.each([
    ['0s', 0],
    ['0ms', 0],
    ['500ms', 500],
    ['15s', 15_000],
    ['90s', 90_000],
    ['10m', 600_000],
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['1m1s1ms', 61_001],
    ['720h', 2_592_000_000],
    ['007s', 7_000],
    ['30m1h', 5_400_000],
    ['1s1s', 2_000],
    ['999999h', 3_599_996_400_000],
  ])('reads %s as %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '15',
    '0',
    's',
    '15 s',
    ' 15s',
    '15s ',
    '15s\n',
    '-3s',
    '+3s',
    '1.5h',
    '.5s',
    '1e3s',
    '15S',
    '15sec',
    '1d',
    '2w',
    'P1D',
    'PT15S',
    '1 day',
    '10us',
    '10µs',
    '1000000s',
    '1h1m1s1ms',
    '999999h999999m11s',
    '١٥s',
    '1h\u0000',
    'NaNs',
    'Infinity',
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeNull();
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0s'],
    [1, '1ms'],
    [500, '500ms'],
    [15_000, '15s'],
    [60_000, '60s'],
    [90_000, '90s'],
    [119_999, '119s999ms'],
    [120_000, '2m'],
    [600_000, '10m'],
    [3_600_000, '1h'],
    [5_400_000, '1h30m'],
    [86_400_000, '24h'],
    [3_661_001, '1h1m1001ms'],
    [DURATION_MS_MAX, '9999h59m59999ms'],
  ])('writes %i ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, DURATION_MS_MAX + 1])('refuses %d', (ms) => {
    expect(() => formatDuration(ms)).toThrow(RangeError);
  });

  it(`writes what parseDuration reads back, in the grammar of the CRD (LEASEHOLD_SEED=${seed})`, () => {
    const anyMs = fc.oneof(
      fc.integer({ min: 0, max: 200_000 }),
      fc.integer({ min: 0, max: DURATION_MS_MAX }),
    );
    fc.assert(
      fc.property(anyMs, (ms) => {
        const text = formatDuration(ms);
        expect(text).toMatch(DURATION_PATTERN);
        expect(text.length).toBeLessThanOrEqual(DURATION_CHARS_MAX);
        expect(parseDuration(text)).toBe(ms);
      }),
      { seed, numRuns: 2_000 },
    );
  });

  it(`reads sums of terms, and nothing that is not in the grammar (LEASEHOLD_SEED=${seed})`, () => {
    const term = fc.tuple(fc.nat(99_999), fc.constantFrom('h', 'm', 's', 'ms', 'd', 'H'));
    const msOf = new Map([
      ['h', 3_600_000],
      ['m', 60_000],
      ['s', 1_000],
      ['ms', 1],
    ]);
    fc.assert(
      fc.property(fc.array(term, { maxLength: 4 }), (terms) => {
        const text = terms.map(([count, unit]) => `${count}${unit}`).join('');
        const isKnown = terms.every(([, unit]) => msOf.has(unit));
        const isValid =
          isKnown && terms.length >= 1 && terms.length <= 3 && text.length <= DURATION_CHARS_MAX;
        const sum = terms.reduce((total, [count, unit]) => total + count * (msOf.get(unit) ?? 0), 0);
        expect(parseDuration(text)).toBe(isValid ? sum : null);
      }),
      { seed, numRuns: 1_000 },
    );
  });
});
