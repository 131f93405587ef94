import { expect, test } from 'vitest';
import { isPassed, LeaseTime, type Moment, systemMoment } from './lease-time.ts';

const START: Moment = { monotonicMs: 1_000, uptimeMs: 501_000 };

function timeAt(start: Moment) {
  let now = start;
  const time = new LeaseTime(() => now);
  return {
    time,
    set: (monotonicMs: number, uptimeMs: number) => {
      now = { monotonicMs: START.monotonicMs + monotonicMs, uptimeMs: START.uptimeMs + uptimeMs };
    },
  };
}

test('runs with monotonic time; what uptime differs by its steps is no sleep', () => {
  const { time, set } = timeAt(START);
  expect(time.nowMs()).toBe(1_000);
  set(5_000, 5_900);
  expect(time.nowMs()).toBe(6_000);
  set(6_000, 5_100);
  expect(time.nowMs()).toBe(7_000);
});

test('a sleep counts, once, and is not taken back', () => {
  const { time, set } = timeAt(START);
  set(1_000, 31_000);
  expect(time.nowMs()).toBe(1_000 + 31_000);
  set(2_000, 32_000);
  expect(time.nowMs()).toBe(1_000 + 32_000);
  set(3_000, 32_500);
  expect(time.nowMs()).toBe(1_000 + 33_000);
});

test('a deadline told to another process has passed by either clock', () => {
  const { time, set } = timeAt(START);
  const deadline = time.momentOf(time.nowMs() + 4_000);
  expect(deadline).toEqual({ monotonicMs: 5_000, uptimeMs: 505_000 });
  expect(isPassed(deadline, { monotonicMs: 4_999, uptimeMs: 504_999 })).toBe(false);
  expect(isPassed(deadline, { monotonicMs: 5_000, uptimeMs: 505_000 })).toBe(true);
  // Asleep for a minute one second after it was told.
  expect(isPassed(deadline, { monotonicMs: 2_000, uptimeMs: 562_000 })).toBe(true);
  set(1_000, 61_000);
  expect(time.momentOf(time.nowMs() + 4_000)).toEqual({ monotonicMs: 6_000, uptimeMs: 566_000 });
});

test('the clocks of this machine keep the same pace', async () => {
  const before = systemMoment();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const after = systemMoment();
  const parted = after.uptimeMs - before.uptimeMs - (after.monotonicMs - before.monotonicMs);
  expect(after.monotonicMs - before.monotonicMs).toBeGreaterThanOrEqual(299);
  expect(Math.abs(parted)).toBeLessThan(1_000);
});
