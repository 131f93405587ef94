/** When a leader has stood still for too long, and hands over (rule S6). */
import { describe, expect, test } from 'vitest';
import { LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import { VirtualGroup } from '../../../test/support/virtual/virtual-group.ts';
import { Stalls } from './stalls.ts';

describe('what is lost', () => {
  test('counts standstills of over 500 ms within 30 s', () => {
    const stalls = new Stalls(0);
    for (let at = 0; at < 20_000; at += 500) stalls.add(500, at);
    expect(stalls.callForHandOver(20_000, 0)).toBe(false);
    stalls.add(900, 21_000);
    stalls.add(1_100, 22_000);
    expect(stalls.callForHandOver(22_000, 0)).toBe(false);
    stalls.add(501, 23_000);
    expect(stalls.callForHandOver(23_000, 0)).toBe(true);
    // 30 s after the first of them too little is left.
    expect(stalls.callForHandOver(51_000, 0)).toBe(true);
    expect(stalls.callForHandOver(51_001, 0)).toBe(false);
  });
});

test('a leader asks to be handed over at most once, and not before two longest TTLs', async () => {
  const asked: number[] = [];
  let answer = false;
  const bench = await LeaderBench.start({
    config: { ttlMsMax: 20_000 },
    beatWhenIdle: true,
    onOverstalled: () => {
      asked.push(bench.runtime.nowMs);
      return answer;
    },
  });
  const startedMs = bench.runtime.nowMs;
  const stall = async (): Promise<void> => {
    bench.runtime.stall(3_000);
    await bench.runtime.pass(2_500);
  };
  for (let i = 0; i < 5; i++) await stall();
  expect(asked).toEqual([]);
  await bench.runtime.pass(startedMs + 40_000 - bench.runtime.nowMs);
  await stall();
  await stall();
  // Nobody to take over: it is asked again.
  expect(asked.length).toBeGreaterThan(1);
  expect(asked[0]).toBeGreaterThanOrEqual(startedMs + 40_000);
  answer = true;
  await stall();
  const times = asked.length;
  await stall();
  await stall();
  expect(asked.length).toBe(times);
});

test('a group is led by another replica when commits of its leader take too long', async () => {
  const group = new VirtualGroup();
  const slow = await group.led();
  slow.pace.latencyMs = 900;
  await group.runtime.pass(100_000);
  // Two longest TTLs are 120 s: a leader is given that time.
  expect(group.leader).toBe(slow);
  await group.runtime.pass(40_000);
  const next = await group.led([slow]);
  expect(next.member.leader?.position.epoch).toBe(2);
  await group.runtime.pass(200_000);
  expect(group.leader).toBe(next);
  expect(next.member.leader?.position.epoch).toBe(2);
  expect(group.servers.flatMap(({ halted }) => halted)).toEqual([]);
  const states = await group.runtime.until(
    Promise.all(group.servers.map(({ member }) => member.status())),
    5_000,
  );
  expect(states.map(({ role }) => role).sort()).toEqual(['following', 'following', 'leading']);
});
