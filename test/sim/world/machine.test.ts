import { describe, expect, it } from 'vitest';
import { Machine } from './machine.ts';
import { VirtualProcess } from './process.ts';
import { World } from './world.ts';

const RATES = [1, 0.99, 1.01, 1.0037];

function setUp(rate = 1) {
  const world = new World(1);
  const machine = new Machine(world, { rate, monotonicAtStartMs: 5_000, wallAtStartMs: 1_000_000 });
  const errors: string[] = [];
  const process = new VirtualProcess(world, {
    name: 'p',
    machine,
    hasJitter: false,
    onError: (_process, message) => errors.push(message),
  });
  return { world, machine, process, errors };
}

describe('clocks of a machine', () => {
  it.each(RATES)('a timer never fires early, at a rate of %f', async (rate) => {
    const { world, machine, process } = setUp(rate);
    const life = process.start();
    const early: number[] = [];
    let fired = 0;
    for (let delayMs = 0; delayMs < 3_000; delayMs += 13.37) {
      const dueMs = machine.monotonicMs() + delayMs;
      life.runtime.timers.after(delayMs, () => {
        fired++;
        if (machine.monotonicMs() < dueMs || machine.monotonicMs() > dueMs + 0.01) early.push(delayMs);
      });
    }
    await world.run();
    expect(early).toEqual([]);
    expect(fired).toBeGreaterThan(200);
  });

  it('sleep: the wall clock goes on, the monotonic one does not, and timers wait for it', async () => {
    const { world, machine, process } = setUp();
    const life = process.start();
    const firedAt: number[] = [];
    life.runtime.timers.after(1_000, () => firedAt.push(world.nowMs));
    world.afterMs(400, () => machine.fallAsleep());
    world.afterMs(10_400, () => {
      expect(machine.monotonicMs()).toBe(5_400);
      expect(machine.wallMs()).toBe(1_010_400);
      machine.wakeUp({ timersFirst: true });
    });
    await world.run();
    expect(firedAt).toEqual([11_000]);
  });

  it('setting the wall clock moves nothing else (case E10)', () => {
    const { machine } = setUp();
    machine.stepWall(-3_600_000);
    expect(machine.wallMs()).toBe(1_000_000 - 3_600_000);
    expect(machine.monotonicMs()).toBe(5_000);
  });
});

describe('a process', () => {
  it('that is stopped runs nothing; what came meanwhile is worked off before anything newer', async () => {
    const { world, process } = setUp();
    const life = process.start();
    const seen: string[] = [];
    const by = {};
    const message = (text: string) => () => process.enter(life, 'message', () => seen.push(text));
    life.runtime.timers.after(50, () => seen.push('timer'));
    world.afterMs(10, () => process.pause(by));
    world.afterMs(20, message('first'));
    world.afterMs(60, message('second'));
    world.afterMs(100, () => process.resume(by, { timersFirst: true }));
    world.afterMs(100, message('third'));
    world.afterMs(99, () => expect(seen).toEqual([]));
    await world.run();
    expect(seen).toEqual(['timer', 'first', 'second', 'third']);
  });

  it('that two have stopped goes on when both let it', async () => {
    const { world, process } = setUp();
    process.start();
    const [one, other] = [{}, {}];
    process.pause(one);
    process.pause(other);
    process.resume(one, { timersFirst: false });
    expect(process.isPaused).toBe(true);
    process.resume(other, { timersFirst: false });
    expect(process.isPaused).toBe(false);
    await world.run();
  });

  it('that was killed does nothing any more, also what was planned in its life', async () => {
    const { world, process } = setUp();
    const life = process.start();
    const seen: string[] = [];
    life.runtime.timers.after(10, () => seen.push('timer'));
    life.runtime.timers.soon(() => seen.push('soon'));
    process.kill();
    process.start().runtime.timers.after(20, () => seen.push('next life'));
    await world.run();
    expect(seen).toEqual(['next life']);
  });

  it('settles its promises before the next step', async () => {
    const { world, process } = setUp();
    const life = process.start();
    const seen: string[] = [];
    const chain = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await Promise.resolve();
      seen.push('promise');
    };
    life.runtime.timers.after(10, () => void chain());
    life.runtime.timers.after(10.001, () => seen.push('next timer'));
    await world.run();
    expect(seen).toEqual(['promise', 'next timer']);
  });

  it('tells of what it logs as an error', () => {
    const { process, errors } = setUp();
    process.start().runtime.logger.error({ a: 1 }, 'it broke');
    expect(errors).toEqual(['it broke']);
  });
});
