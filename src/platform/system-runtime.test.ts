import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSystemRuntime, systemClock, systemRandom, systemTimers } from './system-runtime.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('timers', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    // In this order: restoring a spied fake after the real timers are back would put the fake in their place.
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  test.each([30, 100, 400])('a delay of %s days neither fires at once nor spins (case E02)', (days) => {
    const action = vi.fn();
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    systemTimers.after(days * DAY_MS, action);
    vi.advanceTimersByTime(1_000);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(days * DAY_MS - 2_000);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1_000);
    expect(action).toHaveBeenCalledTimes(1);
    expect(setTimer.mock.calls.length).toBeLessThanOrEqual(Math.ceil(days / 24) + 1);
    for (const [, delayMs] of setTimer.mock.calls) expect(delayMs).toBeLessThan(2 ** 31);
    vi.advanceTimersByTime(100 * DAY_MS);
    expect(action).toHaveBeenCalledTimes(1);
  });

  test('a cancelled timer never fires, also after its first stage', () => {
    const action = vi.fn();
    const timer = systemTimers.after(30 * DAY_MS, action);
    vi.advanceTimersByTime(29 * DAY_MS);
    timer.cancel();
    timer.cancel();
    vi.advanceTimersByTime(10 * DAY_MS);
    expect(action).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('short, zero and negative delays', () => {
    const fired: string[] = [];
    systemTimers.after(20, () => fired.push('20 ms'));
    systemTimers.after(0, () => fired.push('0 ms'));
    systemTimers.after(-5, () => fired.push('-5 ms'));
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(5);
    expect(fired).toEqual(['0 ms', '-5 ms']);
    vi.advanceTimersByTime(15);
    expect(fired).toEqual(['0 ms', '-5 ms', '20 ms']);
  });

  test('a delay that is no number is refused', () => {
    expect(() => systemTimers.after(Number.NaN, () => undefined)).toThrow(RangeError);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a timer that Node fires early waits for the rest', () => {
    const action = vi.fn();
    let now = 1_000;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    systemTimers.after(50, action);
    now = 1_049.4;
    vi.advanceTimersByTime(50);
    expect(action).not.toHaveBeenCalled();
    now = 1_050;
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledTimes(1);
  });
});

test('soon never runs inside the caller, and keeps the order', async () => {
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    systemTimers.soon(() => order.push('first'));
    systemTimers.soon(() => {
      order.push('second');
      resolve();
    });
    order.push('caller');
  });
  expect(order).toEqual(['caller', 'first', 'second']);
});

test('the monotonic clock never goes back, and a timer never fires before its time', async () => {
  const before = systemClock.monotonicMs();
  const fired = await new Promise<number>((resolve) => {
    systemTimers.after(30, () => resolve(systemClock.monotonicMs()));
  });
  expect(fired - before).toBeGreaterThanOrEqual(30);
  expect(Math.abs(systemClock.wallMs() - Date.now())).toBeLessThan(1_000);
});

test('the monotonic clock runs on while the process is stopped', () => {
  // A child stops itself and is continued by a shell that it started half a second earlier.
  const script = `
    import { spawn } from 'node:child_process';
    import { systemClock } from ${JSON.stringify(new URL('./system-runtime.ts', import.meta.url).href)};
    spawn('sh', ['-c', 'sleep 0.5; kill -CONT ' + process.pid], { stdio: 'ignore' }).unref();
    const before = systemClock.monotonicMs();
    process.kill(process.pid, 'SIGSTOP');
    console.log(systemClock.monotonicMs() - before);
  `;
  const { stdout } = spawnSync(execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  expect(Number(stdout)).toBeGreaterThan(400);
});

test('random hex has the length asked for, and fractions lie in [0, 1)', () => {
  expect(systemRandom.hex(16)).toMatch(/^[0-9a-f]{32}$/);
  expect(systemRandom.hex(16)).not.toBe(systemRandom.hex(16));
  const fractions = Array.from({ length: 2_000 }, () => systemRandom.fraction());
  for (const fraction of fractions) expect(fraction >= 0 && fraction < 1).toBe(true);
  const mean = fractions.reduce((sum, fraction) => sum + fraction, 0) / fractions.length;
  expect(mean).toBeGreaterThan(0.4);
  expect(mean).toBeLessThan(0.6);
});

test('the logger writes JSON lines to stderr, from its level up, and survives the end of the process', () => {
  const script = `
    import { createSystemRuntime } from ${JSON.stringify(new URL('./system-runtime.ts', import.meta.url).href)};
    const { logger } = createSystemRuntime({ logLevel: 'info' });
    logger.debug({ session: 1 }, 'not told');
    logger.info({ namespace: 'payouts', epoch: 3 }, 'took over');
    logger.error({ error: new Error('no room') }, 'append failed');
    process.kill(process.pid, 'SIGKILL');
  `;
  const child = spawnSync(execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  const lines = child.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(child.stdout).toBe('');
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatchObject({ level: 'info', namespace: 'payouts', epoch: 3, msg: 'took over' });
  expect(Date.parse(String(lines[0]?.time))).toBeGreaterThan(0);
  expect(lines[1]).toMatchObject({ level: 'error', error: { message: 'no room', type: 'Error' } });
});

test('a runtime has all four ports', () => {
  const runtime = createSystemRuntime({ logLevel: 'silent' });
  expect(Object.keys(runtime).toSorted()).toEqual(['clock', 'logger', 'random', 'timers']);
});

test.skipIf(!existsSync('/dev/full'))(
  'a disk that is full under stderr ends nobody, and lines wait until there is room',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-logger-'));
    const path = join(folder, 'stderr.log');
    const script = `
    import { closeSync, openSync } from 'node:fs';
    import { createSystemRuntime } from ${JSON.stringify(new URL('./system-runtime.ts', import.meta.url).href)};
    const { logger } = createSystemRuntime({ logLevel: 'info' });
    closeSync(2);
    openSync('/dev/full', 'w');
    logger.warn({}, 'the first');
    for (let line = 0; line < 1_000; line++) logger.warn({ text: 'x'.repeat(10_000) }, 'too many');
    console.log('goes on');
    closeSync(2);
    openSync(${JSON.stringify(path)}, 'w');
    for (const message of ['lost, but there is room by now', 'the last'])
      logger.warn({ text: 'x'.repeat(10_000) }, message);
  `;
    const child = spawnSync(execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
    expect(child).toMatchObject({ stdout: 'goes on\n', status: 0 });
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'the first' });
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ msg: 'the last' });
    // What waited is bounded.
    expect(lines.join('').length).toBeLessThan(1_100_000);
    rmSync(folder, { recursive: true });
  },
);
