import { expect, it } from 'vitest';
import { Fired } from './fired.ts';

function fired(kind: string, runs: number, without: number): Fired {
  const all = new Fired();
  for (let i = 0; i < runs; i++) all.add(kind, i < without ? 'had no effect' : null);
  return all;
}

it('a run without faults, or with a kind that never had an effect, proves nothing', () => {
  expect(new Fired().problems()).toEqual(['no fault was run']);
  expect(fired('compaction', 1, 1).problems()).toEqual(['compaction: 1 of 1 without effect (had no effect)']);
});

it('one in ten of a kind may find nothing to do, and no more', () => {
  expect(fired('a cut', 10, 1).problems()).toEqual([]);
  expect(fired('a cut', 20, 3).problems()).toHaveLength(1);
  expect(fired('a cut', 2, 1).problems()).toHaveLength(1);
});

it('each kind is judged by itself', () => {
  const all = fired('a cut', 100, 0);
  all.add('compaction', 'Error: refused');
  expect(all.problems()).toEqual(['compaction: 1 of 1 without effect (Error: refused)']);
});
