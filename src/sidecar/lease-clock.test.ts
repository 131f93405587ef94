/** How long a session may be believed in: rules A1 and A2 on the clock alone. */
import { describe, expect, test } from 'vitest';
import { LeaseClock, momentOf } from './lease-clock.ts';

const TTL_MS = 15_000;

class HandClock {
  monotonic = 1_000;
  wall = 1_700_000_000_000;
  monotonicMs = (): number => this.monotonic;
  wallMs = (): number => this.wall;

  pass(ms: number): void {
    this.monotonic += ms;
    this.wall += ms;
  }
}

describe('rule A1: the deadline', () => {
  test('is send time + TTL - margin, and passed from that very moment on', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, TTL_MS);
    const sent = momentOf(clock);
    clock.pass(4_000);
    lease.acknowledge(sent);
    expect(lease.deadlineMs).toBe(sent.monotonicMs + 12_000);
    clock.pass(7_999);
    expect(lease.isPassed).toBe(false);
    clock.pass(1);
    expect(lease.isPassed).toBe(true);
  });

  test('is in the past while nothing was acknowledged', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, TTL_MS);
    expect(lease.isPassed).toBe(true);
    expect(lease.deadlineMs).toBeLessThanOrEqual(clock.monotonic);
    expect(lease.giveUpAtMs).toBe(clock.monotonic + 12_000);
    expect(lease.jeopardyAtMs).toBe(clock.monotonic + 7_500);
  });

  test('never goes back when acknowledgements come in another order than they were asked for', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, TTL_MS);
    const first = momentOf(clock);
    clock.pass(3_000);
    const second = momentOf(clock);
    lease.acknowledge(second);
    lease.acknowledge(first);
    expect(lease.deadlineMs).toBe(second.monotonicMs + 12_000);
    expect(lease.silentMs).toBe(0);
  });

  test('ignores the wall clock', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, TTL_MS);
    lease.acknowledge(momentOf(clock));
    const { deadlineMs } = lease;
    clock.wall -= 3_600_000;
    expect(lease.deadlineMs).toBe(deadlineMs);
    expect(lease.isPassed).toBe(false);
    expect(lease.isSuspected).toBe(false);
  });
});

describe('rule A2: a suspend', () => {
  test('of a second is noticed where the TTL is 5 s: the margin is no longer than that', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, 5_000);
    lease.acknowledge(momentOf(clock));
    clock.pass(1_000);
    clock.wall += 1_000;
    expect(lease.isSuspected).toBe(true);
    expect(lease.isPassed).toBe(false);
  });

  test('is suspected when wall time ran ahead by more than two seconds, until the next acknowledgement', () => {
    const clock = new HandClock();
    const lease = new LeaseClock(clock, TTL_MS);
    lease.acknowledge(momentOf(clock));
    clock.pass(1_000);
    clock.wall += 2_000;
    expect(lease.isSuspected).toBe(false);
    clock.wall += 1;
    expect(lease.isSuspected).toBe(true);
    clock.pass(1_000);
    expect(lease.isSuspected).toBe(true);
    lease.acknowledge(momentOf(clock));
    expect(lease.isSuspected).toBe(false);
  });
});
