/** What a lease is worth to its holder (rules A1, A2). */
import { expect, test } from 'vitest';
import { marginMs, suspendMs } from './lease.ts';

test('rule A1: the margin is a fifth of the TTL, half a second at least', () => {
  expect(marginMs(15_000)).toBe(3_000);
  expect(marginMs(5_000)).toBe(1_000);
  expect(marginMs(60_000)).toBe(12_000);
  expect(marginMs(2_000)).toBe(500);
});

test('rule A2: a suspend that goes unnoticed fits into the margin, at every TTL, with clock rates within 1 % beside it', () => {
  for (let ttlMs = 5_000; ttlMs <= 60_000; ttlMs += 1_000) {
    expect(suspendMs(ttlMs) + ttlMs / 100).toBeLessThan(marginMs(ttlMs));
  }
  expect(suspendMs(15_000)).toBe(2_000);
  expect(suspendMs(60_000)).toBe(2_000);
});
