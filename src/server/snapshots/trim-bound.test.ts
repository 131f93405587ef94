/** Rule L4: trimming stays behind those who read, but not for ever. */
import { expect, test } from 'vitest';
import { auditHold, trimBound } from './trim-bound.ts';

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

const NOTHING = { keepFrom: Number.MAX_SAFE_INTEGER, trimTo: Number.MAX_SAFE_INTEGER };
const space = (quotaBytes: number, usedBytes = 0) => ({
  quotaBytes,
  usedBytes,
  fileBytes: usedBytes,
  isFull: false,
  answering: 3,
  corrupt: [],
});

test('for the audit exporter the snapshot stays from which its successor comes to the cursor, and all above it', () => {
  const place = { index: 40, behindBytes: 200 * MIB, basis: { index: 30, bytes: 600 * MIB } };
  expect(auditHold(null, null)).toEqual(NOTHING);
  expect(auditHold(place, null)).toEqual({ keepFrom: 30, trimTo: 30 });
  expect(auditHold({ ...place, behindBytes: 256 * MIB + 1 }, null)).toEqual(NOTHING);
  expect(auditHold({ ...place, basis: { index: 0, bytes: 0 } }, null)).toEqual({ keepFrom: 0, trimTo: 0 });
});

test('where the quota is short only what the running exporter needs stays', () => {
  const place = { index: 40, behindBytes: 3 * MIB, basis: { index: 30, bytes: 8 * MIB } };
  expect(auditHold(place, space(32 * MIB))).toEqual({ keepFrom: 30, trimTo: 30 });
  expect(auditHold(place, space(31 * MIB))).toEqual({ ...NOTHING, trimTo: 40 });
  expect(auditHold(place, space(100 * MIB, 70 * MIB))).toEqual({ ...NOTHING, trimTo: 40 });
  expect(auditHold(place, space(16 * MIB))).toEqual(NOTHING);
});
