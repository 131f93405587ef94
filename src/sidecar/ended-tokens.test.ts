/** The last grants that are over: for `already`, and for the metric of work after the lease. */
import { expect, test } from 'vitest';
import { EndedTokens } from './ended-tokens.ts';

const REMEMBERED_MAX = 10_240;

test('a release is known again by name, token and session together', () => {
  const ended = new EndedTokens();
  ended.add({ name: 'a', token: 5, envelope: 's', how: 'released', wasWholeSession: false });
  expect(ended.find({ name: 'a', token: 5, envelope: 's' })?.how).toBe('released');
  expect(ended.find({ name: 'b', token: 5, envelope: 's' })).toBeUndefined();
  expect(ended.find({ name: 'a', token: 6, envelope: 's' })).toBeUndefined();
  expect(ended.find({ name: 'a', token: 5, envelope: 't' })).toBeUndefined();
  expect(ended.countOnce(5)).toBe(false);
});

test('a lost grant counts once, and was not released', () => {
  const ended = new EndedTokens();
  ended.add({ name: 'a', token: 5, envelope: 's', how: 'lost', wasWholeSession: false });
  expect(ended.find({ name: 'a', token: 5, envelope: 's' })?.how).toBe('lost');
  expect([ended.countOnce(5), ended.countOnce(5), ended.countOnce(6)]).toEqual([true, false, false]);
});

test('the oldest are forgotten first, whole, and nothing grows', () => {
  const ended = new EndedTokens();
  for (let token = 1; token <= 3 * REMEMBERED_MAX; token++) {
    ended.add({ name: 'a', token, envelope: 's', how: 'lost', wasWholeSession: false });
    if (token % 2 === 0) ended.countOnce(token);
  }
  const oldest = 2 * REMEMBERED_MAX + 1;
  expect(ended.countOnce(oldest - 2)).toBe(false);
  expect(ended.countOnce(oldest)).toBe(true);
  ended.add({ name: 'a', token: 1, envelope: 's', how: 'lost', wasWholeSession: false });
  expect(ended.countOnce(1)).toBe(true);
});
