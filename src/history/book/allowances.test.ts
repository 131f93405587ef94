/** Time that does not count: stretches are clipped to the bound, overlaps count once. */
import { expect, it } from 'vitest';
import { Allowances } from './allowances.ts';

it('counts what lies inside, once, and each extra in full', () => {
  const allowances = new Allowances();
  expect(allowances.within(0, 1_000)).toBe(0);
  allowances.add(100, 300, 0);
  allowances.add(200, 400, 50);
  allowances.add(250, 260, 0);
  allowances.add(900, 2_000, 0);
  expect(allowances.within(0, 1_000)).toBe(300 + 50 + 100);
  expect(allowances.within(350, 950)).toBe(50 + 50 + 50);
  expect(allowances.within(400, 900)).toBe(0);
  expect(allowances.within(2_000, 3_000)).toBe(0);
});

it('stays bounded: of very many stretches the newest are kept, and it says how far back it knows', () => {
  const allowances = new Allowances();
  expect(allowances.knows(0)).toBe(true);
  for (let at = 0; at < 1_000_000; at += 2) allowances.add(at, at + 1, 0);
  expect(allowances.within(999_000, 1_000_000)).toBe(500);
  expect(allowances.within(0, 1_000_000)).toBeLessThanOrEqual(100_000);
  expect(allowances.knows(0)).toBe(false);
  expect(allowances.knows(999_000)).toBe(true);
});
