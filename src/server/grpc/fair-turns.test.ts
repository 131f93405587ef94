/** What clients cause is spread over turns of the event loop: nobody's frames keep timers and others' frames waiting for long. */
import { expect, test } from 'vitest';
import { FairTurns } from './fair-turns.ts';

/** A loop whose turns a test makes, and whose clock only work moves. */
function bench() {
  let nowMs = 0;
  let soon: (() => void)[] = [];
  const turns = new FairTurns({
    clock: { monotonicMs: () => nowMs, wallMs: () => nowMs },
    timers: {
      soon: (action) => void soon.push(action),
      after: () => ({ cancel: () => undefined }),
    },
  });
  const done: string[] = [];
  const work = (name: string, costMs: number) => () => {
    nowMs += costMs;
    done.push(name);
  };
  /** The next turn; how long it took. */
  const turn = (): number => {
    const [now, sinceMs] = [soon, nowMs];
    soon = [];
    for (const action of now) action();
    return nowMs - sinceMs;
  };
  return { turns, done, work, turn, isIdle: () => soon.length === 0 };
}

test('what is cheap is done at once, a whole turn long', () => {
  const { turns, done, work, turn, isIdle } = bench();
  for (let frame = 0; frame < 1_000; frame++) expect(turns.run(work('cheap', 0.01))).toBe(true);
  expect(done).toHaveLength(1_000);
  turn();
  expect(isIdle()).toBe(true);
});

test('frames that are costly to read, all there at once, do not hold up the loop for their sum', () => {
  const { turns, done, work, turn, isIdle } = bench();
  const isNow = Array.from({ length: 30 }, (_, frame) => turns.run(work(`${frame}`, 100)));
  expect(isNow.filter((now) => now)).toHaveLength(1);
  const turnsMs: number[] = [];
  while (!isIdle()) turnsMs.push(turn());
  expect(Math.max(...turnsMs)).toBe(100);
  expect(done).toEqual(Array.from({ length: 30 }, (_, frame) => `${frame}`));
});

test('what comes while something waits does not overtake it', () => {
  const { turns, done, work, turn } = bench();
  turns.run(work('a', 50));
  turns.run(work('b', 5));
  turn();
  turns.run(work('c', 50));
  turns.run(work('d', 1));
  turn();
  turn();
  expect(done).toEqual(['a', 'b', 'c', 'd']);
});

test('work that itself asks for a place gets one', () => {
  const { turns, done, work, turn, isIdle } = bench();
  turns.run(() => {
    work('outer', 50)();
    turns.run(work('inner', 1));
  });
  while (!isIdle()) turn();
  expect(done).toEqual(['outer', 'inner']);
});
