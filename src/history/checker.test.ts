/** The verdict: what it lists, what it counts, when it is final. */
import { expect, it } from 'vitest';
import { HistoryChecker } from './checker.ts';
import { begun, granted, released } from './history.fixture.ts';
import { allProperties } from './properties/all.ts';
import { PROPERTY_NAMES } from './verdict.ts';

it('lists a bounded number of violations and counts all', () => {
  const history = begun();
  for (let i = 0; i < 30; i++) history.entry(released(1_001 + i, 1));
  const verdict = history.check({ violationsMax: 5 });
  expect(verdict.violations).toHaveLength(5);
  expect(verdict.counts.violations).toBe(30);
});

it('shows the events themselves, oldest first, and the name', () => {
  const history = begun().entry(granted(1_001, 1)).pass(100).entry(granted(1_002, 2));
  const [violation] = history.check().violations;
  expect(violation).toMatchObject({ name: 'a', rules: 'promise 1, rule C2' });
  expect(violation?.excerpt.map(({ event, ...place }) => [place.index, place.at, event.type])).toEqual([
    [2, 0, 'granted'],
    [3, 100, 'granted'],
  ]);
});

it('refuses to read on after its verdict', () => {
  const checker = new HistoryChecker();
  checker.finish();
  expect(() => checker.finish()).toThrow('verdict already');
});

it('judges every property there is a name for, once', () => {
  expect(allProperties().map(({ name }) => name)).toEqual(PROPERTY_NAMES);
});
