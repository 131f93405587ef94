import { expect, test } from 'vitest';
import { APPEND_MS_MIN, Patience, QUICK_ATTEMPTS } from './patience.ts';

let nowMs = 0;
const clock = { monotonicMs: () => nowMs };

test('the first attempts come quickly, later ones after twice as long each', () => {
  const patience = new Patience(clock);
  const quick = Array.from({ length: QUICK_ATTEMPTS }, () => patience.attempt());
  expect(new Set(quick)).toEqual(new Set([APPEND_MS_MIN]));
  expect([patience.attempt(), patience.attempt()]).toEqual([2 * APPEND_MS_MIN, 4 * APPEND_MS_MIN]);
  for (let more = 0; more < 100; more++) expect(patience.attempt()).toBeLessThanOrEqual(5_000);
});

test('an etcd that is slow, not dead, gets one entry in ten twice, not each', () => {
  const patience = new Patience(clock);
  const tookMs = 1.2 * APPEND_MS_MIN;
  let attempts = 0;
  for (let entry = 0; entry < 100; entry++) {
    let waitedMs = 0;
    while (waitedMs < tookMs) {
      const withinMs = patience.attempt();
      nowMs += Math.min(withinMs, tookMs - waitedMs);
      waitedMs += withinMs;
      attempts += 1;
    }
    patience.settled();
  }
  expect(attempts).toBeGreaterThan(100);
  expect(attempts).toBeLessThan(112);
});

test('patience that was won is lost again when all is well', () => {
  const patience = new Patience(clock);
  patience.attempt();
  patience.attempt();
  patience.settled();
  expect(patience.attempt()).toBe(2 * APPEND_MS_MIN);
  patience.settled();
  for (let entry = 0; entry < 20; entry++) {
    patience.attempt();
    patience.settled();
  }
  expect(patience.attempt()).toBe(APPEND_MS_MIN);
});

test('an etcd that answers every call late is found out once, not again every few entries', () => {
  const patience = new Patience(clock);
  const tookMs = 1.2 * APPEND_MS_MIN;
  let attempts = 0;
  for (let entry = 0; entry < 100; entry++) {
    for (let withinMs = 0; withinMs < tookMs; attempts++) {
      withinMs = patience.attempt();
      nowMs += Math.min(withinMs, tookMs);
    }
    patience.settled();
  }
  expect(attempts).toBe(100 + QUICK_ATTEMPTS);
  for (let entry = 0; entry < 20; entry++) {
    patience.attempt();
    patience.settled();
  }
  expect(patience.attempt()).toBe(APPEND_MS_MIN);
});
