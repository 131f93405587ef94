/** What waits for room begins in its turn, once, and never when it was left before. */
import { expect, test } from 'vitest';
import { Window } from './window.ts';

test('begins what there is room for; the rest in its turn, unless it was left before', () => {
  const window = new Window(2);
  const begun: number[] = [];
  const leave = Array.from({ length: 5 }, (_, i) => window.enter(() => void begun.push(i)));
  expect(begun).toEqual([0, 1]);
  leave[2]?.();
  leave[1]?.();
  leave[1]?.();
  expect(begun).toEqual([0, 1, 3]);
  leave[0]?.();
  leave[3]?.();
  expect(begun).toEqual([0, 1, 3, 4]);
  leave[4]?.();
  window.enter(() => void begun.push(5));
  window.enter(() => void begun.push(6));
  window.enter(() => void begun.push(7));
  expect(begun).toEqual([0, 1, 3, 4, 5, 6]);
});
