/** The token bucket of rule S9. */
import { describe, expect, test } from 'vitest';
import { RateLimiter } from './rate-limiter.ts';

describe('so many operations a second', () => {
  test('a new one lets a burst of one second through, and then no more', () => {
    const limiter = new RateLimiter(0);
    for (let i = 0; i < 200; i++) expect(limiter.take(200, 0)).toBe(0);
    expect(limiter.take(200, 0)).toBeCloseTo(5);
  });

  test('it says when the next one is free, and then it is', () => {
    const limiter = new RateLimiter(0);
    for (let i = 0; i < 10; i++) limiter.take(10, 0);
    const waitMs = limiter.take(10, 20);
    expect(waitMs).toBeCloseTo(80);
    expect(limiter.take(10, 20 + waitMs - 1)).toBeGreaterThan(0);
    expect(limiter.take(10, 20 + waitMs)).toBe(0);
  });

  test('over a long time exactly the rate gets through', () => {
    const limiter = new RateLimiter(0);
    let through = 0;
    for (let now = 0; now < 60_000; now++) if (limiter.take(50, now) === 0) through++;
    expect(through).toBeGreaterThanOrEqual(50 + 50 * 59);
    expect(through).toBeLessThanOrEqual(50 + 50 * 60);
  });

  test('rest does not save up more than one second', () => {
    const limiter = new RateLimiter(0);
    let through = 0;
    for (let i = 0; i < 100; i++) if (limiter.take(30, 3_600_000) === 0) through++;
    expect(through).toBe(30);
  });

  test('what is given back can be taken again; a changed limit counts at once', () => {
    const limiter = new RateLimiter(0);
    for (let i = 0; i < 5; i++) expect(limiter.take(5, 0)).toBe(0);
    limiter.giveBack();
    expect(limiter.take(5, 0)).toBe(0);
    expect(limiter.take(5, 0)).toBeGreaterThan(0);
    expect(limiter.take(1, 10_000)).toBe(0);
    expect(limiter.take(1, 10_000)).toBeCloseTo(1_000);
  });
});
