/** Rule L4: trimming stays behind those who read, but not for ever. */
import { expect, test } from 'vitest';
import { trimBound } from './trim-bound.ts';

const MIB = 1024 * 1024;

test('without readers nothing holds it up', () => {
  expect(trimBound([])).toBe(Number.MAX_SAFE_INTEGER);
});

test('it stays behind the slowest, standby or exporter', () => {
  const readers = [
    { index: 900, behindBytes: MIB },
    { index: 40, behindBytes: 200 * MIB },
    { index: 1_000, behindBytes: 0 },
  ];
  expect(trimBound(readers)).toBe(40);
});

test('whoever is more than 256 MiB behind is not waited for', () => {
  const readers = [
    { index: 900, behindBytes: 256 * MIB },
    { index: 40, behindBytes: 256 * MIB + 1 },
  ];
  expect(trimBound(readers)).toBe(900);
  expect(trimBound(readers.slice(1))).toBe(Number.MAX_SAFE_INTEGER);
});

test('a small quota keeps less', () => {
  const readers = [{ index: 40, behindBytes: 3 * MIB }];
  expect(trimBound(readers, 32 * MIB)).toBe(40);
  expect(trimBound(readers, 16 * MIB)).toBe(Number.MAX_SAFE_INTEGER);
});
