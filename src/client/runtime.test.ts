/** Timers of any length, and signals that are listened to no longer than needed. */
import { afterEach, expect, test, vi } from 'vitest';
import { onAbort, pause, systemRuntime } from './runtime.ts';

const DAY_MS = 24 * 3_600_000;

afterEach(() => void vi.useRealTimers());

test('case E02: a timer of 60 days neither fires at once nor spins, and fires when it is due', async () => {
  vi.useFakeTimers();
  const action = vi.fn();
  systemRuntime.timers.after(60 * DAY_MS, action);
  await vi.advanceTimersByTimeAsync(60 * DAY_MS - 1_000);
  expect(action).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(action).toHaveBeenCalledTimes(1);
  const cancelled = systemRuntime.timers.after(60 * DAY_MS, action);
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  cancelled.cancel();
  await vi.advanceTimersByTimeAsync(60 * DAY_MS);
  expect(action).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a pause ends with its time or with a signal, and leaves no listener', async () => {
  const stop = new AbortController();
  const removed = vi.spyOn(stop.signal, 'removeEventListener');
  const from = performance.now();
  await pause(systemRuntime, 20, [stop.signal]);
  expect(performance.now() - from).toBeGreaterThanOrEqual(20);
  expect(removed).toHaveBeenCalledTimes(1);
  const long = pause(systemRuntime, 60_000, [stop.signal]);
  stop.abort();
  await long;
  await pause(systemRuntime, 60_000, [stop.signal]);
  expect(performance.now() - from).toBeLessThan(5_000);
});

test('of several signals the first counts, once, and never inside the caller', async () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const action = vi.fn();
  first.abort();
  onAbort([first.signal, second.signal], action);
  expect(action).not.toHaveBeenCalled();
  await Promise.resolve();
  expect(action).toHaveBeenCalledTimes(1);
  second.abort();
  expect(action).toHaveBeenCalledTimes(1);
  const forget = onAbort([first.signal], action);
  forget();
  await Promise.resolve();
  expect(action).toHaveBeenCalledTimes(1);
});

test('many who wait under one signal cost it one listener, and each is told or forgotten by itself', () => {
  const stop = new AbortController();
  const added = vi.spyOn(stop.signal, 'addEventListener');
  const removed = vi.spyOn(stop.signal, 'removeEventListener');
  const actions = Array.from({ length: 50 }, () => vi.fn());
  const forgets = actions.map((action) => onAbort([stop.signal], action));
  expect(added).toHaveBeenCalledTimes(1);
  for (const forget of forgets.slice(0, 49)) forget();
  expect(removed).not.toHaveBeenCalled();
  stop.abort();
  expect(actions.map(({ mock }) => mock.calls.length)).toEqual([...Array<number>(49).fill(0), 1]);
  expect(removed).toHaveBeenCalledTimes(1);
});

test('whoever is forgotten by another one who is told is not told any more', () => {
  const stop = new AbortController();
  const second = vi.fn();
  onAbort([stop.signal], () => forgetSecond());
  const forgetSecond = onAbort([stop.signal], second);
  stop.abort();
  expect(second).not.toHaveBeenCalled();
});
