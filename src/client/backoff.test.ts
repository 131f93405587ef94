/** Full jitter: uniform between 0 and a limit that doubles up to its cap. */
import { expect, test } from 'vitest';
import { fullJitterMs, retryDelayMs } from './backoff.ts';

const BACKOFF = { baseMs: 100, capMs: 5_000 };

function random(fraction: number) {
  return { fraction: () => fraction, hex: () => '' };
}

test('the limit doubles with each attempt up to the cap, also after very many', () => {
  const limits = [0, 1, 2, 5, 6, 50, 5_000].map((attempt) => fullJitterMs(random(1), BACKOFF, attempt));
  expect(limits).toEqual([100, 200, 400, 3_200, 5_000, 5_000, 5_000]);
  expect(fullJitterMs(random(0.25), BACKOFF, 2)).toBe(100);
  expect(fullJitterMs(random(0), BACKOFF, 9)).toBe(0);
});

test('what the service asks for comes on top, so that nobody is early and not all come at once', () => {
  expect(retryDelayMs(random(0), BACKOFF, { attempt: 0, retryAfterMs: 2_000 })).toBe(2_000);
  expect(retryDelayMs(random(0.5), BACKOFF, { attempt: 1, retryAfterMs: 2_000 })).toBe(2_100);
});
